// start on many nodes: clock offsets, one instant for all, and no session left behind unnoticed.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "client/commands/start.h"
#include "client/fleet/fleet.h"

namespace profd::client {
namespace {

constexpr int64_t kLeastMarginNs = 2 * kNsPerSecond;
// Beyond this, "the same instant" is worth a warning.
constexpr int64_t kLooseBoundNs = 5 * kNsPerMs;
std::string RandomId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

class Starter {
 public:
  Starter(Fleet* fleet, const FleetStart& wanted)
      : fleet_(*fleet),
        wanted_(wanted),
        request_(wanted.request),
        id_(RandomId()),
        report_(fleet->NewReport("start", wanted.request.target().job_id())),
        took_ns_(report_.nodes.size(), 0),
        sent_(report_.nodes.size(), 0) {}

  FleetReport Run() {
    report_.interrupted = !Measure();
    std::vector<size_t> reached = Reached();
    bool missing = reached.size() < report_.nodes.size();
    if (report_.interrupted || (wanted_.all_or_nothing && missing)) {
      NothingStarted(reached);
      return std::move(report_);
    }
    if (request_.schedule().start_in_steps() != 0 && !ChooseStep(reached)) {
      NothingStarted(reached);
      return std::move(report_);
    }
    ChooseInstant(reached.size());
    report_.interrupted = !Start(reached);
    bool failed = std::ranges::any_of(report_.nodes, [](const NodeResult& result) { return !result.status.ok(); });
    if ((report_.interrupted && !wanted_.keep) || (wanted_.all_or_nothing && failed)) Undo();
    Judge();
    if (std::ranges::any_of(reached, [this](size_t node) { return MayRun(node); })) report_.fleet_id = id_;
    return std::move(report_);
  }

 private:
  bool Measure() {
    return fleet_.ForAll("measuring clocks", [this](size_t node, NodeCall* call) {
      auto offset = MeasureOffset(call->api(), fleet_.clock());
      NodeResult& result = report_.nodes[node];
      result.status = call->Explain(offset.status());
      if (offset.ok()) result.offset = *offset;
      took_ns_[node] = call->elapsed_ns();
    });
  }

  std::vector<size_t> Reached() const {
    std::vector<size_t> reached;
    for (size_t i = 0; i < report_.nodes.size(); ++i) {
      if (report_.nodes[i].status.ok()) reached.push_back(i);
    }
    return reached;
  }

  // The same step for all: so many after the one the leading rank is in. False when no rank counts
  // steps.
  bool ChooseStep(const std::vector<size_t>& reached) {
    v1::ListJobsRequest list;
    list.set_job_id(request_.target().job_id());
    std::vector<int64_t> steps(report_.nodes.size(), -1);
    report_.interrupted = !fleet_.ForEach("asking", reached, [&](size_t node, NodeCall* call) {
      auto jobs = call->api().ListJobs(list);
      if (!jobs.ok()) return;
      for (const v1::Job& job : jobs->jobs()) {
        for (const v1::JobProcess& process : job.processes()) {
          if (process.has_step()) steps[node] = std::max(steps[node], process.step());
        }
      }
    });
    const int64_t present = *std::ranges::max_element(steps);
    if (report_.interrupted) return false;
    if (present < 0) {
      report_.warnings.push_back(fmt::format(
          "no attached process of job {} has begun a step: name the step with --start-step N",
          request_.target().job_id()));
      return false;
    }
    request_.mutable_schedule()->set_start_step(present + request_.schedule().start_in_steps());
    return true;
  }

  void NothingStarted(const std::vector<size_t>& reached) {
    for (size_t node : reached) {
      report_.nodes[node].status =
          Aborted(report_.interrupted                     ? "not started: interrupted"
                  : request_.schedule().start_in_steps() != 0 ? "not started: no step to count from"
                                                   : "not started: another node could not be reached");
    }
  }

  // Late enough for every node to have its request, by what the measuring took.
  int64_t MarginNs(size_t reached) const {
    int64_t slowest = 0;
    for (size_t i = 0; i < report_.nodes.size(); ++i) {
      if (report_.nodes[i].status.ok()) slowest = std::max(slowest, took_ns_[i]);
    }
    auto turns = static_cast<int64_t>((reached + kNodesAtOnce - 1) / kNodesAtOnce);
    return std::max(kLeastMarginNs, slowest * turns);
  }

  void ChooseInstant(size_t reached) {
    const v1::SessionSpec& request = request_;
    // Steps begin at the job's report, and the past is each node's own.
    if (request.schedule().has_start_step() || request.schedule().since_ms() > 0) return;
    int64_t now = fleet_.clock().WallNs();
    if (request.schedule().start_at_ns() > 0) {
      report_.common_start_ns = request.schedule().start_at_ns();
    } else if (request.schedule().start_in_ms() > 0) {
      report_.common_start_ns =
          now + static_cast<int64_t>(std::min<uint64_t>(request.schedule().start_in_ms(), 1'000'000'000)) *
                    kNsPerMs;
    } else {
      report_.common_start_ns = now + MarginNs(reached);
    }
  }

  v1::SessionSpec RequestFor(size_t node) const {
    v1::SessionSpec request = request_;
    const ClockOffset& offset = *report_.nodes[node].offset;
    auto& metadata = *request.mutable_metadata();
    metadata["clock_offset_ns"] = std::to_string(offset.offset_ns);
    metadata["clock_offset_error_ns"] = std::to_string(offset.error_ns);
    metadata["fleet_nodes"] = std::to_string(report_.nodes.size());
    metadata["fleet_node"] = report_.nodes[node].node.substr(0, 256);
    metadata[kFleetId] = id_;
    if (report_.common_start_ns == 0) return request;
    metadata["common_start_ns"] = std::to_string(report_.common_start_ns);
    request.mutable_schedule()->set_start_at_ns(report_.common_start_ns + offset.offset_ns);
    return request;
  }

  bool Start(const std::vector<size_t>& reached) {
    for (size_t node : reached) {
      report_.nodes[node].status = {StatusCode::kCancelled, "not started: interrupted"};
    }
    return fleet_.ForEach("starting", reached, [this](size_t node, NodeCall* call) {
      v1::SessionSpec request = RequestFor(node);
      NodeResult& result = report_.nodes[node];
      sent_[node] = 1;
      auto session = call->api().StartSession(request);
      if (session.status().code() == StatusCode::kInvalidArgument && IsPast() && wanted_.request.schedule().start_at_ns() == 0) {
        // A node refuses an instant that is long ago. This one was our choice, and the node was slow to reach.
        request.mutable_schedule()->clear_start_at_ns();
        session = call->api().StartSession(request);
      }
      result.status = call->Explain(session.status());
      if (!session.ok()) return;
      result.late = IsPast();
      result.partial = ExitForStarted(request, *session) != kExitOk &&
                       session->status().state() != v1::Session::STATE_SCHEDULED;
      result.sessions.push_back(std::move(*session));
    });
  }

  bool IsPast() const { return report_.common_start_ns != 0 && fleet_.clock().WallNs() > report_.common_start_ns; }

  // True when the node may have a session of ours: a call that got no answer may have been heard.
  bool MayRun(size_t node) const {
    const NodeResult& result = report_.nodes[node];
    if (!result.sessions.empty()) return true;
    StatusCode code = result.status.code();
    return sent_[node] != 0 &&
           (code == StatusCode::kCancelled || code == StatusCode::kDeadlineExceeded ||
            code == StatusCode::kUnavailable);
  }

  // Sessions of this very start that have not ended.
  Result<std::vector<std::string>> Ours(NodeCall* call) const {
    v1::ListSessionsRequest request;
    request.set_job_id(wanted_.request.target().job_id());
    request.set_active_only(true);
    auto list = call->api().ListSessions(request);
    if (!list.ok()) return list.status();
    std::vector<std::string> ids;
    for (const v1::Session& session : list->sessions()) {
      auto id = session.spec().metadata().find(kFleetId);
      if (id != session.spec().metadata().end() && id->second == id_) ids.push_back(session.session_id());
    }
    return ids;
  }

  void UndoOn(size_t node, NodeCall* call) {
    NodeResult& result = report_.nodes[node];
    std::vector<std::string> ids;
    if (!result.sessions.empty()) {
      ids.push_back(result.sessions.front().session_id());
    } else if (auto ours = Ours(call); ours.ok()) {
      ids = std::move(*ours);
    } else {
      result.note = "a session may be starting there all the same";
      return;
    }
    for (const std::string& id : ids) {
      auto stopped = call->api().StopSession(id);
      if (!stopped.ok() && stopped.status().code() != StatusCode::kNotFound) {
        result.note = fmt::format("session {} could not be stopped again: {}", id,
                                  call->Explain(stopped.status()).message());
        return;
      }
      result.undone = true;
      if (stopped.ok()) result.sessions = {std::move(*stopped)};
    }
  }

  void Undo() {
    std::vector<size_t> which;
    for (size_t node = 0; node < report_.nodes.size(); ++node) {
      if (!MayRun(node)) continue;
      which.push_back(node);
      if (!report_.nodes[node].sessions.empty()) report_.nodes[node].note = "was not stopped again";
    }
    fleet_.ForEach("stopping again", which, [this](size_t node, NodeCall* call) {
      report_.nodes[node].note.clear();
      UndoOn(node, call);
      if (report_.nodes[node].undone) report_.nodes[node].note = "stopped again";
    });
  }

  void Judge() {
    std::vector<std::string> loose;
    for (size_t node = 0; node < report_.nodes.size(); ++node) {
      NodeResult& result = report_.nodes[node];
      if (result.status.code() == StatusCode::kDeadlineExceeded && sent_[node] != 0 &&
          result.note.empty()) {
        result.note = "a session may be starting there all the same";
      }
      if (result.sessions.empty() || result.undone) continue;
      if (result.late) {
        result.note = "answered after the common start";
        report_.warnings.push_back(fmt::format(
            "{} answered after the common start: its data may begin later", result.node));
      }
      if (report_.common_start_ns != 0 && result.offset->error_ns > kLooseBoundNs) {
        report_.warnings.push_back(fmt::format(
            "the clock of {} is known to +-{:.1f} ms only: its data may begin that far from the "
            "others'", result.node, static_cast<double>(result.offset->error_ns) / 1e6));
      }
    }
  }

  Fleet& fleet_;
  const FleetStart& wanted_;
  v1::SessionSpec request_;
  const std::string id_;
  FleetReport report_;
  // Of the measuring, by node.
  std::vector<int64_t> took_ns_;
  // Whether StartSession was sent, by node. Not vector<bool>: its elements share bytes, and workers
  // write theirs at the same time.
  std::vector<char> sent_;
};

}  // namespace

FleetReport StartOnAll(Fleet* fleet, const FleetStart& wanted) {
  return Starter(fleet, wanted).Run();
}

}  // namespace profd::client
