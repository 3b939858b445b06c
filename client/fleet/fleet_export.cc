// export into the nodes' databases: each node is requested to queue what it has, its own profctl archive loads it, and this
// waits until the database has confirmed it. No dump passes through this machine, and no node is given an address to connect to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "client/clickhouse/url.h"
#include "client/commands/export.h"
#include "client/fleet/fleet.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {
namespace {

using Archived = v1::ArchiveState;

constexpr int64_t kLongestPauseMs = 5'000;

bool IsPending(const NodeResult& node) {
  return std::ranges::any_of(node.archived, [](const v1::Dump& dump) { return dump.archive().state() == Archived::STATE_WAITING; });
}

// Why a node's dumps still wait, as far as it knows.
std::string WhyWaiting(const v1::ArchiveStatus& archive, int64_t since_ns) {
  if (archive.has_failing_since_ns()) return archive.problem();
  if (!archive.has_asked_ns()) return "profctl archive has not connected yet: systemctl enable --now profd-archive there";
  if (archive.asked_ns() < since_ns) return "profctl archive has not connected since: systemctl status profd-archive there";
  return "";
}

class Exporter {
 public:
  Exporter(Fleet* fleet, const FleetExport& wanted) : fleet_(*fleet), wanted_(wanted), report_(fleet->NewReport("export", wanted.job_id)) {
    request_.set_job_id(wanted.job_id);
    request_.mutable_ids()->Assign(wanted.ids.begin(), wanted.ids.end());
    request_.set_to(wanted.to);
    request_.set_run(wanted.run);
    status_.resize(report_.nodes.size());
  }

  FleetReport Run() {
    report_.interrupted = !fleet_.ForAll("asking", [this](size_t node, NodeCall* call) { Ask(node, call); });
    request_.set_only_look(true);
    if (wanted_.wait && !report_.interrupted) Wait();
    for (size_t node = 0; node < report_.nodes.size(); ++node) Judge(node);
    Warn();
    return std::move(report_);
  }

 private:
  void Ask(size_t node, NodeCall* call) {
    NodeResult& result = report_.nodes[node];
    auto answer = call->api().ArchiveDumps(request_);
    result.status = call->Explain(answer.status());
    if (answer.status().code() == StatusCode::kUnimplemented) {
      result.status = Unimplemented("its profd is too old for this: update it, or fetch the dumps and export them");
    }
    result.none = answer.status().code() == StatusCode::kNotFound;
    if (result.none) {
      result.note = result.status.message();
      result.status = Status::Ok();
    }
    if (!answer.ok()) return;
    result.archived.assign(answer->dumps().begin(), answer->dumps().end());
    status_[node] = answer->archive();
    if (answer->unfinished().empty()) return;
    result.partial = true;
    result.note = fmt::format("session {} has not ended, or its dump is not complete yet: profctl stop {}, then again",
                              fmt::join(answer->unfinished(), ", "), answer->unfinished(0));
  }

  // What became of those that wait. A node that does not answer now may the next time.
  void Look(size_t node, NodeCall* call) {
    NodeResult& result = report_.nodes[node];
    auto answer = call->api().ArchiveDumps(request_);
    const bool gone = answer.status().code() == StatusCode::kNotFound;
    if (!answer.ok() && !gone) {
      last_error_[node] = call->Explain(answer.status());
      return;
    }
    last_error_[node] = Status::Ok();
    std::map<std::string, const v1::Dump*> now;
    if (answer.ok()) {
      for (const v1::Dump& dump : answer->dumps()) now[dump.name()] = &dump;
      status_[node] = answer->archive();
    }
    for (v1::Dump& dump : result.archived) {
      auto found = now.find(dump.name());
      if (found != now.end()) {
        *dump.mutable_archive() = found->second->archive();
      } else if (dump.archive().state() == Archived::STATE_WAITING) {
        dump.mutable_archive()->set_state(Archived::STATE_LOST);
        dump.mutable_archive()->set_problem("it was removed before it was loaded");
      }
    }
  }

  void Wait() {
    last_error_.resize(report_.nodes.size());
    const int64_t until_ns = fleet_.clock().SteadyNs() + wanted_.timeout_ns;
    for (int64_t pause_ms = wanted_.first_pause_ms;; pause_ms = std::min(pause_ms * 2, kLongestPauseMs)) {
      std::vector<size_t> pending;
      for (size_t node = 0; node < report_.nodes.size(); ++node) {
        if (IsPending(report_.nodes[node])) pending.push_back(node);
      }
      if (pending.empty()) return;
      const int64_t left_ms = (until_ns - fleet_.clock().SteadyNs()) / kNsPerMs;
      expired_ = left_ms <= 0;
      if (expired_) return;
      report_.interrupted = !fleet_.Pause(Progress(), std::min(left_ms, pause_ms)) ||
                            !fleet_.ForEach("looking", pending, [this](size_t node, NodeCall* call) { Look(node, call); });
      if (report_.interrupted) return;
    }
  }

  std::string Progress() const {
    size_t all = 0;
    size_t loaded = 0;
    for (const NodeResult& node : report_.nodes) {
      all += node.archived.size();
      loaded += static_cast<size_t>(std::ranges::count_if(node.archived, [](const v1::Dump& dump) { return dump.archive().state() == Archived::STATE_LOADED; }));
    }
    return fmt::format("waiting for the database: {} of {} loaded", loaded, CountText(all, "dump is", "dumps are"));
  }

  // What the table's remarks and the exit code say of a node.
  void Judge(size_t node) {
    NodeResult& result = report_.nodes[node];
    for (const v1::Dump& dump : result.archived) {
      const bool waits = dump.archive().state() == Archived::STATE_WAITING;
      waiting_ += waits ? 1 : 0;
      const bool damaged = dump.archive().state() == Archived::STATE_LOADED && !dump.archive().problem().empty();
      if (dump.archive().state() == Archived::STATE_LOST || damaged || (waits && wanted_.wait)) result.partial = true;
      if (damaged && result.note.empty()) result.note = dump.archive().problem();
      if (!waits) continue;
      std::string why = WhyWaiting(status_[node], dump.archive().since_ns());
      if (!last_error_.empty() && !last_error_[node].ok()) why = "the node does not answer any more: " + last_error_[node].message();
      if (!why.empty() && result.note.empty()) result.note = why;
    }
  }

  void Warn() {
    if (waiting_ == 0 || !wanted_.wait) return;
    const std::string_view whether = expired_ ? "did not confirm them in time (--timeout waits longer)" : "has not confirmed them yet";
    report_.warnings.push_back(fmt::format("dumps that wait: {}. The database {}; they stay in the queues of their nodes and are loaded "
                                           "without this command. The same command once more shows how far they are",
                                           waiting_, whether));
  }

  Fleet& fleet_;
  const FleetExport& wanted_;
  FleetReport report_;
  v1::ArchiveDumpsRequest request_;
  std::vector<v1::ArchiveStatus> status_;
  std::vector<Status> last_error_;
  size_t waiting_ = 0;
  bool expired_ = false;
};

// The run of --run, or of the address; empty: the nodes name it.
std::string RunOf(const ExportCommand& command) {
  auto url = ParseClickHouseUrl(command.to.value_or(""));
  return command.run_name ? *command.run_name : url.ok() ? url->run : "";
}

bool HasPassword(const std::string& address) {
  const std::string authority = address.substr(0, address.find('/', address.find("://") + 3));
  const size_t at = authority.rfind('@');
  return at != std::string::npos && authority.rfind(':', at) > authority.find("://");
}

}  // namespace

FleetExport BuildFleetExport(const ExportCommand& command, const FleetExportArgs& args, std::vector<std::string>* problems) {
  FleetExport wanted;
  wanted.ids = command.dumps;
  wanted.job_id = wanted.ids.empty() ? args.job.value_or(args.source_job) : "";
  wanted.wait = !args.no_wait;
  if (!command.to || !IsClickHouseUrl(*command.to)) {
    problems->push_back("on many nodes each loads its dumps into its own database ([archive]): give --to clickhouse://HOST[:PORT]/DATABASE; for files, "
                        "fetch the dumps and export them here");
    return wanted;
  }
  if ((!wanted.ids.empty() && args.job) || (wanted.ids.empty() && wanted.job_id.empty() && !args.has_source_job)) {
    problems->push_back("give --job JOB, or ids of sessions, fleets or dumps");
  }
  auto url = ParseClickHouseUrl(*command.to);
  if (!url.ok()) {
    problems->push_back(url.status().message());
  } else if (HasPassword(*command.to)) {
    problems->push_back("leave the password out of --to: the nodes have their own (/etc/profd/archive.env)");
  }
  wanted.to = url.ok() ? url->Shown() : "";
  wanted.run = RunOf(command);
  if (command.run_name && !IsRunName(*command.run_name)) problems->push_back("--run: a name has 1 to 200 bytes and no control characters");
  if (const auto unfit = UnfitForStore(command)) problems->push_back(*unfit);
  if (command.cluster) problems->push_back("--cluster is for dumps of this machine; on nodes it is archive.cluster");
  if (command.resume) problems->push_back("--resume is for dumps of this machine; what is loaded is not loaded again on nodes");
  const auto ms = ReadFlag("--timeout", args.timeout, ParseDurationMs, problems);
  if (ms) wanted.timeout_ns = static_cast<int64_t>(*ms) * kNsPerMs;
  return wanted;
}

FleetReport ExportOnAll(Fleet* fleet, const FleetExport& wanted) { return Exporter(fleet, wanted).Run(); }

}  // namespace profd::client
