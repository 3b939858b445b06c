#include "daemon/session/session_collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

using attach::CollectState;

// The result of an option by a process that does not serve it, the worst first.
struct StateResult {
  std::optional<CollectState> state;  // nothing: it has not answered yet
  v1::Outcome::Result result;
};
constexpr StateResult kStates[] = {
    {CollectState::kFailed, v1::Outcome::RESULT_FAILED},
    {CollectState::kBusy, v1::Outcome::RESULT_BUSY},
    {CollectState::kUnsupported, v1::Outcome::RESULT_UNSUPPORTED},
    {CollectState::kOff, v1::Outcome::RESULT_OFF},
    {CollectState::kWaiting, v1::Outcome::RESULT_WAITING},
    {std::nullopt, v1::Outcome::RESULT_WAITING},
};

size_t Badness(std::optional<CollectState> state) {
  return static_cast<size_t>(std::ranges::find(kStates, state, &StateResult::state) - std::begin(kStates));
}

bool Collects(CollectState state) {
  return state == CollectState::kOn || state == CollectState::kPartial || state == CollectState::kSilent ||
         state == CollectState::kStopping;
}

std::string StateText(const TrainingProcess& process, std::optional<CollectState> state, std::string_view detail) {
  const std::string who =
      process.rank ? fmt::format("rank {}", *process.rank) : fmt::format("process {}", process.pid);
  return fmt::format("{}: {}{}{}", who, state ? WordOf(*state) : "no answer yet", detail.empty() ? "" : ": ", detail);
}

}  // namespace

bool LeftIncompleteFiles(const attach::CollectorReport& report) {
  return report.state == CollectState::kFiles && (report.code != 0 || !report.detail.empty());
}

SessionCollect::SessionCollect(std::map<std::string, attach::CollectKinds> kinds,
                               std::optional<attach::AclprofRequest> aclprof)
    : kinds_(std::make_move_iterator(kinds.begin()), std::make_move_iterator(kinds.end())),
      aclprof_(std::move(aclprof)) {}

attach::CollectRequest SessionCollect::Request() const {
  attach::CollectRequest request;
  for (const auto& [option, of_option] : kinds_) request.kinds |= of_option;
  request.provider = aclprof_ ? attach::CollectProvider::kAclprof : attach::CollectProvider::kMspti;
  request.aclprof = aclprof_;
  return request;
}

bool SessionCollect::Process::collects() const { return !ended && Collects(report.state); }

v1::ProcessCollector::State SessionCollect::Process::state() const {
  return ended ? v1::ProcessCollector::STATE_ENDED : EnumOf<v1::ProcessCollector::State>(WordOf(report.state));
}

void SessionCollect::OnReport(const TrainingProcess& process, const attach::CollectorReport& report) {
  Process& known = processes_[process.pid];
  if (ending_ && report.state == CollectState::kOff) {
    known.ended = true;
    return;
  }
  known.report = report;
  // Its files are the last it delivers.
  known.ended = report.state == CollectState::kFiles;
}

bool SessionCollect::OnGone(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return false;
  const bool collecting = found->second.collects();
  found->second.ended = true;
  return collecting;
}

bool SessionCollect::AllEnded() const {
  return std::ranges::none_of(processes_, [](const auto& process) { return process.second.collects(); });
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
  size_t complete = 0;
  size_t part = 0;
  std::string others;  // the first that does not serve it, and why
  size_t badness = 0;
};

SessionCollect::Served SessionCollect::CountServed(attach::CollectKinds kinds, std::span<const TrainingProcess> processes,
                                                   bool over) const {
  Served served;
  for (const TrainingProcess& process : processes) {
    const auto known = processes_.find(process.pid);
    const bool was_asked = known != processes_.end();
    if (!was_asked && !process.attached()) continue;
    ++served.all;
    const std::optional<CollectState> state = was_asked ? std::optional(known->second.report.state) : std::nullopt;
    size_t badness = Badness(state);
    const bool no_files = over && leaves_files() && was_asked && Collects(known->second.report.state);
    if (no_files) {
      badness = Badness(CollectState::kFailed);
    } else if (badness == std::size(kStates) && leaves_files()) {
      const bool complete = state != CollectState::kPartial && !LeftIncompleteFiles(known->second.report);
      ++(complete ? served.complete : served.part);
      // What is wrong with files is reported with the files.
      if (complete || state == CollectState::kFiles) continue;
    } else if (badness == std::size(kStates)) {  // on, partial, silent
      const attach::CollectKinds has = kinds & known->second.report.kinds;
      if (has.empty() && (kinds & known->second.report.left_out).empty()) {
        badness = Badness(CollectState::kUnsupported);
      } else {
        const bool complete = has == kinds && state != CollectState::kSilent;
        ++(complete ? served.complete : served.part);
        if (complete) continue;
      }
    }
    if (!served.others.empty() && badness >= served.badness) continue;
    served.badness = badness;
    served.others = no_files ? StateText(process, CollectState::kFailed, "it left no files")
                             : StateText(process, state, was_asked ? known->second.report.detail : "");
  }
  return served;
}

void SessionCollect::Fill(std::string_view option, std::span<const TrainingProcess> processes, bool over,
                          v1::Outcome* out) const {
  const auto found = kinds_.find(option);
  if (found == kinds_.end()) return;
  const Served served = CountServed(found->second, processes, over);
  if (served.all == 0) return;
  if (served.complete == served.all) {
    out->set_result(over ? v1::Outcome::RESULT_FINISHED : v1::Outcome::RESULT_RUNNING);
  } else if (served.complete + served.part > 0) {
    out->set_result(v1::Outcome::RESULT_PARTIAL);
  } else {
    out->set_result(kStates[served.badness].result);
  }
  std::string detail = fmt::format("served by {} of {} process{}", served.complete + served.part, served.all,
                                   served.all == 1 ? "" : "es");
  if (!served.others.empty()) detail += "; " + served.others;
  out->set_detail(detail);
}

void SessionCollect::Fill(pid_t pid, v1::SessionProcess* out) const {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  const attach::CollectorReport& report = found->second.report;
  v1::ProcessCollector& wire = *out->mutable_collector();
  wire.set_provider(EnumOf<v1::SessionSpec::Provider>(WordOf(report.provider)));
  wire.set_state(found->second.state());
  if (report.code != 0) wire.set_code(report.code);
  wire.set_detail(report.detail);
  wire.set_version(report.version);
  report.kinds.ForEach([&wire](attach::CollectKind kind) { wire.add_kinds(EnumOf<v1::ProcessCollector::Kind>(WordOf(kind))); });
}

void SessionCollect::Describe(ManifestProcess* process) const {
  const auto found = processes_.find(process->pid);
  if (found == processes_.end()) return;
  const attach::CollectorReport& report = found->second.report;
  process->provider = WordOf(report.provider);
  process->collector_state = EnumWord(found->second.state());
  process->collector_detail = report.detail;
  process->collector_version = report.version;
}

}  // namespace profd
