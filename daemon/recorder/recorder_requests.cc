// Requests for dumps of the recorder: what a caller may have.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/duration_text.h"
#include "base/log.h"
#include "base/strand.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/recorder/flight_recorder.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr int kMaxWriting = 4;
constexpr uint64_t kMostLastMs = 86'400'000;

}  // namespace

Result<std::vector<int>> FlightRecorder::DevicesFor(const Peer& peer,
                                                    const v1::DumpRecorderRequest& request) {
  std::set<int> of_job;
  if (!request.job_id().empty()) {
    if (jobs_ == nullptr) return FailedPrecondition("jobs are not known on this node");
    std::set<std::string> jobs;
    bool found = false;
    for (const TrainingProcess& process : jobs_->Processes()) {
      if (!peer.Owns(process.uid) || process.job_id.empty()) continue;
      jobs.insert(process.job_id);
      if (process.job_id != request.job_id()) continue;
      found = true;
      of_job.insert(process.devices.begin(), process.devices.end());
    }
    if (!found) {
      return NotFound(fmt::format("job {} not found, or not owned by you; {}", log::Quote(request.job_id()),
                                  jobs.empty() ? "there is none"
                                               : fmt::format("there are {}", fmt::join(jobs, ", "))));
    }
  }
  std::set<int> named;
  for (uint32_t id : request.devices()) named.insert(static_cast<int>(std::min(id, 1u << 20)));
  std::vector<int> devices;
  for (const DeviceInfo& device : deps_.session.host.devices) {
    bool is_named = named.erase(device.id) > 0;
    if (!is_named && !request.devices().empty()) continue;
    if (!request.job_id().empty() && !of_job.contains(device.id)) continue;
    Status may = deps_.session.devices.MayUse(peer, device);
    if (!may.ok() && is_named) return may;
    if (may.ok()) devices.push_back(device.id);
  }
  if (!named.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  Problem{.field = "devices", .text = fmt::format("no device {} on this node", fmt::join(named, ", "))});
  }
  return devices;
}

Status CheckLast(const v1::DumpRecorderRequest& request_untrusted) {
  const uint64_t last_ms = request_untrusted.last_ms();
  if (last_ms <= kMostLastMs && (last_ms > 0 || !request_untrusted.has_last_ms())) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, Problem{.field = "last_ms",
                                                      .value = std::to_string(last_ms),
                                                      .text = fmt::format("must be {}..{}", ExactDuration(1), ExactDuration(kMostLastMs))});
}

void FlightRecorder::Dump(const Peer& peer, const v1::DumpRecorderRequest& request_untrusted,
                          SessionReply reply) {
  DCHECK_ON(deps_.session.control);
  Status wrong;
  if (ended_) {
    wrong = Unavailable("profd is stopping");
  } else if (peer.viewer) {
    wrong = PermissionDenied("a viewer's certificate allows looking only");
  } else if (Status reason = CheckLabel(request_untrusted.reason()); !reason.ok()) {
    wrong = {StatusCode::kInvalidArgument, Problem{.field = "reason", .text = reason.message()}};
  } else if (Status label = CheckLabel(request_untrusted.label()); !label.ok()) {
    wrong = {StatusCode::kInvalidArgument, Problem{.field = "label", .text = label.message()}};
  } else if (request_untrusted.label().starts_with(kTriggerLabel)) {
    wrong = {StatusCode::kInvalidArgument,
             Problem{.field = "label", .value = request_untrusted.label(),
                     .text = fmt::format("must not begin with \"{}\", as those of triggers' dumps do", kTriggerLabel)}};
  } else if (!request_untrusted.job_id().empty() && !IsJobId(request_untrusted.job_id())) {
    wrong = InvalidArgument("job_id: letters, digits, '.', '_', '-', ':', '/', at most 128");
  } else if (Status last = CheckLast(request_untrusted); !last.ok()) {
    wrong = last;
  } else if (writing_.contains(peer.uid) || writing_.size() >= kMaxWriting) {
    wrong = ResourceExhausted("a dump of the flight recorder is being written; try again");
  }
  Result<std::vector<int>> devices =
      wrong.ok() ? DevicesFor(peer, request_untrusted) : Result<std::vector<int>>(wrong);
  if (!devices.ok()) {
    reply(devices.status());
    return;
  }
  RecorderDumpRequest request{.uid = peer.uid, .gid = peer.gid, .pid = peer.pid,
                              .last_ns = static_cast<int64_t>(request_untrusted.last_ms()) * kNsPerMs,
                              .devices = std::move(devices).value(), .job_id = request_untrusted.job_id(),
                              .label = request_untrusted.label(), .reason = request_untrusted.reason()};
  request.counted = "request";
  request.may_hold = [peer, job = request.job_id, named = !request_untrusted.devices().empty(),
                    devices = request.devices](const TrainingProcess& process) {
    if (!peer.Owns(process.uid) || (!job.empty() && process.job_id != job)) return false;
    return !named || std::ranges::any_of(process.devices, [&devices](int device) {
      return std::ranges::find(devices, device) != devices.end();
    });
  };
  Write(std::move(request), std::move(reply));
}

}  // namespace profd
