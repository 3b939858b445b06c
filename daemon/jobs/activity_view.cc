#include "daemon/jobs/activity_view.h"

#include <algorithm>
#include <string>

#include "profd/v1/profd.pb.h"
#include "proto/attach/cut_text.h"

namespace profd {
namespace {

std::string NameOf(const LiveActivity& live, uint32_t id) {
  return std::string(attach::CutText(std::string(live.names->Find(id)).c_str(), kMaxShownNameBytes));
}

void Fill(const ActivityAccount& account, const LiveActivity& live, v1::ActivitySpan* out) {
  out->set_begin_ns(account.begin_ns);
  out->set_end_ns(account.end_ns);
  out->set_devices(account.devices);
  out->set_computation_ratio(account.computation);
  out->set_communication_ratio(account.communication);
  out->set_not_overlapped_ratio(account.not_overlapped);
  out->set_free_ratio(account.free);
  out->set_kernels(account.kernels);
  out->set_steps(account.steps);
  out->set_lost_records(account.lost);
  if (account.kernels == 0) return;
  out->set_longest_kernel_ns(account.longest_ns);
  out->set_longest_kernel(NameOf(live, account.longest_name));
}

void FillKernels(const LiveActivity& live, uint32_t most, v1::ProcessActivity* out) {
  const ActivityWindow::Hottest hottest = live.window->HottestKernels(most);
  out->set_kernels_span_ns(hottest.span_ns);
  out->set_kernels_total_ns(hottest.total_ns);
  for (const ActivityWindow::HotKernel& kernel : hottest.kernels) {
    v1::HotKernel& hot = *out->add_kernels();
    hot.set_name(NameOf(live, kernel.name));
    hot.set_total_ns(kernel.total_ns);
    hot.set_count(kernel.count);
  }
}

bool IsWanted(const v1::GetActivityRequest& request, const TrainingProcess& process) {
  if (!request.job_id().empty() && process.job_id != request.job_id()) return false;
  const auto& pids = request.pids();
  return pids.empty() || std::ranges::find(pids, process.pid) != pids.end();
}

}  // namespace

Status DescribeActivity(const Peer& peer, const v1::GetActivityRequest& request_untrusted,
                        std::span<const TrainingProcess> processes,
                        const std::function<LiveActivity(uint64_t attach_id)>& find,
                        v1::GetActivityResponse* out) {
  if (request_untrusted.kernels() > kMaxHotKernels) {
    return {StatusCode::kInvalidArgument, Problem{.field = "kernels",
                                                  .value = std::to_string(request_untrusted.kernels()),
                                                  .text = "must be 0.." + std::to_string(kMaxHotKernels)}};
  }
  for (const TrainingProcess& process : processes) {
    if (!peer.Sees(process.uid) || !IsWanted(request_untrusted, process)) continue;
    const LiveActivity live = find(process.attach_id);
    if (live.window == nullptr) continue;
    v1::ProcessActivity& activity = *out->add_processes();
    activity.set_pid(process.pid);
    activity.set_uid(process.uid);
    activity.set_job_id(process.job_id);
    if (process.rank) activity.set_rank(*process.rank);
    if (request_untrusted.has_from_ns()) {
      for (const ActivityAccount& second : live.window->SecondsFrom(request_untrusted.from_ns())) {
        Fill(second, live, activity.add_spans());
      }
    } else if (const ActivityAccount account = live.window->Last(); !account.empty()) {
      Fill(account, live, activity.add_spans());
    }
    if (request_untrusted.kernels() > 0) FillKernels(live, request_untrusted.kernels(), &activity);
    activity.set_lost_records(process.lost_activity);
    activity.set_lost_bytes(process.lost_activity_bytes);
    activity.set_unreadable_bytes(process.unreadable_activity_bytes);
  }
  return Status::Ok();
}

}  // namespace profd
