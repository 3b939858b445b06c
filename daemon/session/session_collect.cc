#include "daemon/session/session_collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace profd {
namespace {

// The result of an option that no process serves, by what the processes report; the worst is first.
struct StateResult {
  std::string_view state;
  v1::Outcome::Result result;
};
constexpr StateResult kStates[] = {
    {"failed", v1::Outcome::RESULT_FAILED},           {"busy", v1::Outcome::RESULT_BUSY},
    {"unsupported", v1::Outcome::RESULT_UNSUPPORTED}, {"off", v1::Outcome::RESULT_OFF},
    {"waiting", v1::Outcome::RESULT_WAITING},         {"ordered", v1::Outcome::RESULT_WAITING},
};
constexpr std::string_view kOrdered = "ordered";  // not answered yet

size_t Badness(std::string_view state) {
  return static_cast<size_t>(std::ranges::find(kStates, state, &StateResult::state) - std::begin(kStates));
}

bool Contains(const std::vector<std::string>& kinds, const std::string& kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

std::string WhoSays(const TrainingProcess& process, std::string_view state, std::string_view detail) {
  const std::string who =
      process.rank ? fmt::format("rank {}", *process.rank) : fmt::format("process {}", process.pid);
  return fmt::format("{}: {}{}{}", who, state, detail.empty() ? "" : ": ", detail);
}

}  // namespace

SessionCollect::SessionCollect(std::map<std::string, std::vector<std::string>> kinds,
                               std::optional<attach::AclprofOrder> aclprof)
    : kinds_(std::make_move_iterator(kinds.begin()), std::make_move_iterator(kinds.end())),
      aclprof_(std::move(aclprof)) {}

attach::CollectOrder SessionCollect::Order() const {
  attach::CollectOrder order;
  std::set<std::string> kinds;
  for (const auto& [option, of_option] : kinds_) kinds.insert(of_option.begin(), of_option.end());
  order.kinds.assign(kinds.begin(), kinds.end());
  order.provider = aclprof_ ? "aclprof" : "mspti";
  order.aclprof = aclprof_;
  return order;
}

bool SessionCollect::Process::collects() const {
  return !ended && (report.state == "on" || report.state == "partial" || report.state == "silent" ||
                    report.state == "stopping");
}

const std::string& SessionCollect::Process::state() const {
  static const std::string kEnded = "ended";
  return ended ? kEnded : report.state;
}

void SessionCollect::OnReport(const TrainingProcess& process, const attach::CollectorReport& report) {
  Process& known = processes_[process.pid];
  if (ending_ && report.state == "off") {
    known.ended = true;
    return;
  }
  known.report = report;
  // Its files are the last it delivers.
  known.ended = report.state == "files";
}

bool SessionCollect::OnGone(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return false;
  const bool collecting = found->second.collects();
  found->second.ended = true;
  return collecting;
}

bool SessionCollect::AllEnded() const {
  return std::none_of(processes_.begin(), processes_.end(),
                      [](const auto& process) { return process.second.collects(); });
}

std::vector<pid_t> SessionCollect::Unended() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : processes_) {
    if (process.collects()) pids.push_back(pid);
  }
  return pids;
}

struct SessionCollect::Served {
  size_t all = 0;   // processes that were requested to collect
  size_t whole = 0;
  size_t part = 0;
  std::string others;  // the first that does not serve it, and why
  size_t badness = 0;
};

SessionCollect::Served SessionCollect::CountServed(const std::vector<std::string>& kinds,
                                                   std::span<const TrainingProcess> processes) const {
  Served served;
  for (const TrainingProcess& process : processes) {
    const auto known = processes_.find(process.pid);
    const bool was_asked = known != processes_.end();
    if (!was_asked && !process.attached()) continue;
    ++served.all;
    const std::string_view state = was_asked ? std::string_view(known->second.report.state) : kOrdered;
    size_t badness = Badness(state);
    if (badness == std::size(kStates) && leaves_files()) {
      ++(state == "partial" ? served.part : served.whole);
      if (state != "partial") continue;
    } else if (badness == std::size(kStates)) {  // on, partial, silent
      const auto has = static_cast<size_t>(std::count_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
        return Contains(known->second.report.kinds, kind);
      }));
      const bool left_out = std::any_of(kinds.begin(), kinds.end(), [&](const auto& kind) {
        return Contains(known->second.report.left_out, kind);
      });
      if (has == 0 && !left_out) {
        badness = Badness("unsupported");
      } else {
        ++(has == kinds.size() ? served.whole : served.part);
        if (has == kinds.size() && state != "silent") continue;
      }
    }
    if (!served.others.empty() && badness >= served.badness) continue;
    served.badness = badness;
    served.others = WhoSays(process, state, was_asked ? known->second.report.detail : "");
  }
  return served;
}

void SessionCollect::Fill(std::string_view option, std::span<const TrainingProcess> processes, bool over,
                          v1::Outcome* out) const {
  const auto found = kinds_.find(option);
  if (found == kinds_.end()) return;
  const Served served = CountServed(found->second, processes);
  if (served.all == 0) return;
  if (served.whole == served.all) {
    out->set_result(over ? v1::Outcome::RESULT_FINISHED : v1::Outcome::RESULT_RUNNING);
  } else if (served.whole + served.part > 0) {
    out->set_result(v1::Outcome::RESULT_PARTIAL);
  } else {
    out->set_result(kStates[served.badness].result);
  }
  std::string detail = fmt::format("served by {} of {} process{}", served.whole + served.part, served.all,
                                   served.all == 1 ? "" : "es");
  if (!served.others.empty()) detail += "; " + served.others;
  out->set_detail(detail);
}

void SessionCollect::Fill(pid_t pid, v1::SessionProcess* out) const {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  const attach::CollectorReport& report = found->second.report;
  v1::ProcessCollector& wire = *out->mutable_collector();
  wire.set_provider(report.provider);
  wire.set_state(found->second.state());
  wire.set_code(report.code);
  wire.set_detail(report.detail);
  wire.set_version(report.version);
  for (const std::string& kind : report.kinds) wire.add_kinds(kind);
}

void SessionCollect::Describe(ManifestProcess* process) const {
  const auto found = processes_.find(process->pid);
  if (found == processes_.end()) return;
  const attach::CollectorReport& report = found->second.report;
  process->provider = report.provider;
  process->collector_state = found->second.state();
  process->collector_detail = report.detail;
  process->collector_version = report.version;
}

}  // namespace profd
