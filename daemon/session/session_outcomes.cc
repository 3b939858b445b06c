// What a session reports of its training processes, and what became of each option of the application.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/session/option_plan.h"
#include "daemon/session/outcome_counts.h"
#include "daemon/session/session_files.h"
#include "daemon/session/session_processes.h"

namespace profd {

struct SessionProcesses::ProcessReports {
  std::vector<TrainingProcess> processes;
  bool over = false;      // the session is
  bool served = false;    // a process is here and counts
  bool attached = false;  // a process is, or was
  bool takes_marks = false;
  bool has_stacks = false;

  bool AreMarks(std::string_view option) const { return takes_marks && option == kMarksOption; }
  bool AreStacks(std::string_view option) const { return has_stacks && option == kStacksOption; }
};

void SessionProcesses::Fill(v1::SessionStatus* out) const {
  out->set_steps_done(steps_.done());
  if (handing_over_ && files_ != nullptr) {
    v1::CollectingFiles& collecting = *out->mutable_collecting_files();
    collecting.set_processes(static_cast<uint32_t>(collect_.Unended().size() + files_->pending()));
    const int64_t left_ns = hand_over_until_ns_ - deps_.host.clock.SteadyNs();
    collecting.set_left_ms(static_cast<uint64_t>(std::max<int64_t>(left_ns, 0) / kNsPerMs));
  }
  if (marks_ != nullptr) {
    out->set_marks(marks_->written());
    out->set_dropped_marks(marks_->dropped());
  }
  if (job_ != nullptr) job_->Fill(out);
  for (v1::SessionProcess& process : *out->mutable_processes()) collect_.Fill(process.pid(), &process);
}

std::vector<std::string> SessionProcesses::Written() const {
  std::vector<std::string> keys;
  if (plan_.takes_marks && marks_ != nullptr && marks_->written() > 0) keys.emplace_back(kMarksOption);
  if (marks_ != nullptr && marks_->stacks_written() > 0) keys.emplace_back(kStacksOption);
  return keys;
}

std::vector<std::string> SessionProcesses::Served() const {
  std::vector<std::string> keys = Written();
  if (!collect_.heard()) return keys;
  for (const auto& [key, kinds] : plan_.collect) keys.push_back(key);
  return keys;
}

SessionProcesses::ProcessReports SessionProcesses::Reports(v1::Session::State state) const {
  ProcessReports seen;
  seen.over = IsFinal(state);
  const bool here = job_ != nullptr && job_->CountingProcess() != nullptr;
  seen.served = here && !seen.over;
  const bool has_marks = marks_ != nullptr && marks_->written() > 0;
  seen.takes_marks = marks_ != nullptr ? has_marks || seen.served : seen.served && state == v1::Session::STATE_SCHEDULED && !spec_.no_dump();
  seen.has_stacks = marks_ != nullptr && marks_->stacks_written() > 0;
  seen.attached = here || collect_.heard() || has_marks;  // also after its end
  if (job_ != nullptr) seen.processes = job_->Processes();
  return seen;
}

std::vector<std::string> SessionProcesses::OptionKeys() const {
  std::vector<std::string> keys = plan_.awaited_options;
  for (const auto& [key, kinds] : plan_.collect) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

// Those in force lose the note that they need a process once one serves them; the requested ones are outcomes.
void SessionProcesses::FillOptions(v1::SessionStatus* out) const {
  const auto session = session_.lock();
  const ProcessReports seen = Reports(session == nullptr ? v1::Session::STATE_DONE : session->state());
  const std::vector<std::string> served_keys = Served();
  for (v1::EffectiveOption& effective : *out->mutable_effective_options()) {
    const bool late = seen.AreMarks(effective.key()) || (seen.served && collect_.Has(effective.key())) ||
                      std::ranges::find(served_keys, effective.key()) != served_keys.end();
    if (late && effective.note() == kNeedsProcess) effective.clear_note();
  }
  for (const std::string& key : OptionKeys()) {
    v1::Outcome& outcome = *out->add_outcomes();
    FillOption(key, seen, &outcome);
    Count(key, seen, &outcome);
  }
  // All that the processes' profilers recorded, once.
  for (size_t i = 0; activity_ != nullptr && i < kActivityFiles; ++i) {
    const SessionActivity::Count count = activity_->CountOf(static_cast<ActivityFileId>(i));
    AddRecords(count.records, count.lost, out);
  }
}

std::vector<v1::Outcome> SessionProcesses::OptionOutcomes() const {
  const ProcessReports seen = Reports(v1::Session::STATE_DONE);
  std::vector<v1::Outcome> outcomes;
  for (const std::string& key : OptionKeys()) FillOption(key, seen, &outcomes.emplace_back());
  return outcomes;
}

void SessionProcesses::FillOption(const std::string& key, const ProcessReports& seen, v1::Outcome* out) const {
  out->set_collector(key);
  if (seen.AreMarks(key) || seen.AreStacks(key)) {
    out->set_result(seen.over ? v1::Outcome::RESULT_FINISHED : v1::Outcome::RESULT_RUNNING);
    out->set_detail(std::string(seen.AreMarks(key) ? kMarksDetail : kStacksDetail));
    return;
  }
  out->set_result(v1::Outcome::RESULT_NEEDS_PROCESS);
  out->set_detail(std::string(kNeedsProcess));
  if (collect_.Has(key)) {
    collect_.Fill(key, seen.processes, seen.over, out);
    const std::string busy = activity_ == nullptr ? "" : activity_->BusyText();
    if (!busy.empty()) out->set_detail(out->detail() + (out->detail().empty() ? "" : "; ") + busy);
  } else if (key != kMarksOption && key != kStacksOption) {
    const auto found = plan_.application_options.find(key);
    const std::string_view value = found == plan_.application_options.end() ? std::string_view() : found->second;
    if (!seen.attached && !options::NamesRegisters(key, value)) return;
    const NotServed not_served = WhyNotServed(key, value, spec_);
    out->set_result(not_served.steps ? v1::Outcome::RESULT_PARTIAL : v1::Outcome::RESULT_UNSUPPORTED);
    out->set_detail(std::string(not_served.why));
  }
}

// What an option brought into the dump. Records that several options ask for count for each of them.
void SessionProcesses::Count(const std::string& option, const ProcessReports& seen, v1::Outcome* out) const {
  if (seen.AreMarks(option) || seen.AreStacks(option)) {
    if (marks_ == nullptr) return;
    out->set_records(seen.AreMarks(option) ? marks_->written() : marks_->stacks_written());
    if (seen.AreMarks(option)) out->set_dropped_records(marks_->dropped());
    return;
  }
  if (!collect_.Has(option)) return;
  if (activity_ != nullptr) {
    for (ActivityFileId file : FilesOfKinds(plan_.collect.at(option))) {
      const SessionActivity::Count count = activity_->CountOf(file);
      AddRecords(count.records, count.lost, out);
      out->set_bytes(out->bytes() + count.bytes);
    }
  }
  if (files_ != nullptr) AddFiles(files_->results(), out);
}

void AddFiles(std::span<const ManifestProcessFiles> files, v1::Outcome* out) {
  uint64_t bytes = 0;
  std::string detail = out->detail();
  for (const ManifestProcessFiles& of_process : files) {
    bytes += of_process.bytes;
    const std::string where = of_process.layout == "merged" ? "among the dump's" : "in " + of_process.directory;
    detail += fmt::format("; process {}: {} files {}", of_process.pid, of_process.files, where);
    if (!of_process.problem.empty()) detail += " (" + of_process.problem + ")";
  }
  out->set_bytes(bytes);
  out->set_detail(detail);
}

}  // namespace profd
