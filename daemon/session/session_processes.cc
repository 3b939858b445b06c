#include "daemon/session/session_processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "daemon/jobs/process_facts.h"
#include "daemon/session/aclprof_plan.h"

namespace profd {
namespace {

// A process hands over its last records within a second (client/libprofd/mspti), but for those that MSPTI itself
// delivers seconds late (in-application 9.2).
constexpr int64_t kLastRecordsNs = 10 * kNsPerSecond;
// The vendor's profiler that leaves files may write them for half a minute; then they are copied.
constexpr int64_t kLastFilesNs = 100 * kNsPerSecond;

std::string NameOf(const TrainingProcess& process) {
  return fmt::format("{}{}", process.pid, process.rank ? fmt::format(" (rank {})", *process.rank) : "");
}

// What the session's records are of. Those of aclprof are in its files, and only what is missing of them is noted by kind.
attach::CollectKinds KindsOf(const SessionPlan& plan) {
  attach::CollectKinds kinds;
  for (const auto& [option, of_option] : plan.collect) {
    kinds |= of_option;
    const auto value = plan.application_options.find(option);
    if (plan.aclprof && value != plan.application_options.end()) kinds |= CollectKindsOf(option, value->second);
  }
  // They come along with what is counted of them.
  if (plan.aclprof && Serves(*plan.aclprof, "task_time")) kinds |= attach::CollectKind::kKernel;
  return kinds;
}

}  // namespace

SessionProcesses::SessionProcesses(const Deps& deps, Request request)
    : deps_(deps),
      spec_(request.spec),
      plan_(request.plan),
      owner_(request.owner),
      resumed_(request.resumed),
      launchers_([this](uint64_t attach_id, std::function<void(Result<ProcessThreads>)> done) {
        deps_.jobs_or_null->LookupThreads(attach_id, std::move(done));  // no other source of activity
      }),
      steps_(StartStepOf(spec_), spec_.schedule().steps()),
      collect_(plan_.collect, plan_.aclprof) {
  steps_.Restore(request.steps_done);
  if (!request.targets.any()) return;
  job_ = std::make_unique<SessionJob>(deps_.jobs_or_null, std::move(request.targets), deps_.processes, request.session_id);
}

void SessionProcesses::Watch(std::weak_ptr<Listener> listener) {
  session_ = std::move(listener);
  if (job_ == nullptr) return;
  if (!spec_.no_dump() && !spec_.schedule().has_since_ms()) {
    early_ = std::make_unique<SessionEarly>(resumed_ ? std::nullopt : StartStepOf(spec_));
  }
  job_->Watch(this);
}

void SessionProcesses::OnCome() {
  Post([](Listener& session) { session.OnProcessCame(); });
}

void SessionProcesses::Post(std::function<void(Listener&)> call) {
  deps_.control.Post([session = session_, call = std::move(call)] {
    if (const auto alive = session.lock()) call(*alive);
  });
}

bool SessionProcesses::WantsRings() const {
  const auto session = session_.lock();
  if (session == nullptr) return false;
  // The step to start at may be seen in a ring before the process has reported it.
  const bool scheduled = session->state() == v1::Session::STATE_SCHEDULED;
  return taking_marks_ || handing_over_ || (scheduled ? spec_.schedule().has_start_step() : early_ != nullptr);
}

void SessionProcesses::Arm() {
  attach::SessionNotice notice{.state = "armed", .start_step = StartStepOf(spec_), .steps = spec_.schedule().steps(),
                               .options = plan_.application_options, .marks = plan_.takes_marks};
  // What writes files has no part of a step.
  if (!collect_.empty() && !collect_.leaves_files()) notice.collect = collect_.Request();
  job_->Notify(std::move(notice));
}

void SessionProcesses::OnStep(const TrainingProcess& process, int64_t step, bool begin, bool last) {
  DCHECK_ON(deps_.control);
  const auto session = session_.lock();
  if (session == nullptr || session->stopping()) return;
  if (session->state() == v1::Session::STATE_SCHEDULED && !start_step_seen_) {
    if (!begin || !steps_.Begins(step)) return;
    start_step_seen_ = true;
    steps_.Open(step);
    start_step_ = {process.pid, step};
    Post([](Listener& listener) { listener.OnStartStep(); });
    return;
  }
  // What its ring still holds came before, and shows which steps they were.
  if (last && taking_marks_ && spec_.schedule().steps() != 0 && !steps_.over()) deps_.jobs_or_null->Drain(process.attach_id);
  begin ? steps_.OnBegin(step) : steps_.OnEnd(step);
  if (last) steps_.OnLastEnd();
  if (!steps_.over() || session->state() != v1::Session::STATE_RUNNING) return;
  Post([reason = steps_.Text()](Listener& listener) { listener.OnWantsToEnd(reason); });
}

void SessionProcesses::CountStep(const Mark& mark) {
  if (mark.kind == attach::MarkKind::kStepBegin) steps_.OnBegin(mark.value);
  if (mark.kind == attach::MarkKind::kStepEnd) steps_.OnEnd(mark.value);
}

void SessionProcesses::OnMarks(const TrainingProcess& process, const MarkBatch& batch) {
  DCHECK_ON(deps_.control);
  if (early_ != nullptr) early_->Take(process, batch);
  const auto session = session_.lock();
  if (session == nullptr || (!taking_marks_ && session->state() != v1::Session::STATE_SCHEDULED)) return;
  if (marks_ != nullptr) marks_->Take(process, batch);
  const TrainingProcess* counting = job_->CountingProcess();
  if (counting == nullptr || counting->pid != process.pid) return;
  for (const Mark& mark : batch.marks) {
    // A step that began before the session is none of its steps.
    if (mark.time_ns < start_raw_ns_) continue;
    if (session->stopping()) {  // the last ones: in the dump, so they count
      CountStep(mark);
      continue;
    }
    if (mark.kind == attach::MarkKind::kStepBegin) OnStep(process, mark.value, true, false);
    if (mark.kind == attach::MarkKind::kStepEnd) OnStep(process, mark.value, false, false);
  }
}

void SessionProcesses::OnActivity(const ActivityBatch& batch) {
  launchers_.Take(batch, deps_.host.clock.SteadyNs());
  if (activity_ != nullptr) {
    // With aclprof they are another session's.
    if (!collect_.leaves_files()) activity_->Take(batch);
  } else if (early_ != nullptr) {
    early_->Take(batch);
  }
}

void SessionProcesses::OnActivityGivenUp(const TrainingProcess& process, const Status& why) {
  DCHECK_ON(deps_.control);
  if (activity_ == nullptr) return;
  activity_->OnGivenUp(process.attach_id);
  const auto session = session_.lock();
  if (session != nullptr) session->Warn(fmt::format("process {}: its records are not read any more: {}", NameOf(process), why.message()));
}

void SessionProcesses::OnCollector(const TrainingProcess& process, const attach::CollectorReport& report) {
  DCHECK_ON(deps_.control);
  const bool collected = std::ranges::count(collect_.Unended(), process.pid) > 0;
  collect_.OnReport(process, report);
  if (activity_ != nullptr) {
    const int64_t now_ns = deps_.host.clock.MonotonicRawNs();
    activity_->OnLeftOut(process.attach_id, report.left_out, now_ns);
    // The last "off" of a session has no reason.
    const bool refuses = report.state == attach::CollectState::kOff && !report.detail.empty();
    if (!refuses || collected) activity_->OnBusy(process.attach_id, refuses || report.state == attach::CollectState::kBusy, now_ns);
    if (handing_over_ && std::ranges::count(collect_.Unended(), process.pid) == 0) {
      deps_.jobs_or_null->Drain(process.attach_id);  // the report comes behind its last records
      activity_->OnHandedOver(process.attach_id);
    }
  }
  WhenHandedOver();
}

bool SessionProcesses::OnFiles(const TrainingProcess& process, const attach::CollectorReport& report,
                               std::shared_ptr<UniqueFd> directory) {
  DCHECK_ON(deps_.control);
  if (files_ == nullptr) return false;
  collect_.OnReport(process, report);
  if (const auto session = session_.lock(); LeftIncompleteFiles(report) && session != nullptr) {
    session->Warn(fmt::format("process {}: its files are not complete: {}", NameOf(process),
                              report.detail.empty() ? fmt::format("aclprof: {}", report.code) : report.detail));
  }
  files_->Take(process, report, std::move(directory));
  return true;
}

void SessionProcesses::OnGone(const TrainingProcess& process, uint64_t attach_id, bool in_good_order) {
  DCHECK_ON(deps_.control);
  if (marks_ != nullptr) marks_->OnGone(process.pid);
  if (early_ != nullptr) early_->OnGone(attach_id, process.pid);
  const bool lost = collect_.OnGone(process.pid) && !in_good_order;
  if (activity_ != nullptr) activity_->OnGone(attach_id, !lost || collect_.leaves_files(), deps_.host.clock.MonotonicRawNs());
  const auto session = session_.lock();
  if (session == nullptr) return;
  if (lost && (activity_ != nullptr || files_ != nullptr)) {
    session->Warn(fmt::format("process {} ended without handing over its {}", NameOf(process),
                              files_ != nullptr ? "files" : "last records"));
  }
  WhenHandedOver();
  EndUnlessCounted();
}

void SessionProcesses::Tick() {
  DCHECK_ON(deps_.control);
  if (job_ == nullptr) return;
  job_->Refresh();
  if (job_->ForgetEnded()) EndUnlessCounted();
}

// No process is left whose steps begin or end the session, or may be again.
void SessionProcesses::EndUnlessCounted() {
  const auto session = session_.lock();
  if (session == nullptr || !NeedsSteps(spec_) || job_->CountingProcess() != nullptr || job_->AwaitsReturn()) return;
  std::string reason;
  if (session->state() == v1::Session::STATE_SCHEDULED) {
    reason = fmt::format("no attached process is left to begin step {}", spec_.schedule().start_step());
  } else if (spec_.schedule().has_steps()) {
    reason = "no attached process is left to count steps";
  } else {
    return;
  }
  Post([reason = std::move(reason)](Listener& listener) { listener.OnWantsToEnd(reason); });
}

void SessionProcesses::MakeFiles() {
  const bool possible = dump_ != nullptr && deps_.jobs_or_null != nullptr && deps_.copier_or_null != nullptr;
  if (!possible || !collect_.leaves_files()) return;
  files_ = std::make_shared<SessionFiles>(SessionFiles::Deps{
      deps_.control, deps_.host.clock, *deps_.jobs_or_null, *deps_.copier_or_null, dump_, owner_, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->WhenHandedOver();
      }});
}

void SessionProcesses::Begin(std::shared_ptr<WriterSession> dump, std::vector<SessionMarks::Device> devices, int64_t start_raw_ns) {
  dump_ = std::move(dump);
  start_raw_ns_ = start_raw_ns;
  if (job_ == nullptr) return;
  // What is in the rings by now belongs to the time before.
  if (early_ != nullptr) job_->Drain();
  const std::unique_ptr<SessionEarly> early = std::move(early_);
  if (!spec_.schedule().has_start_step() || resumed_) steps_.Open(std::nullopt);
  if (dump_ != nullptr) {
    marks_ = std::make_unique<SessionMarks>(dump_, std::move(devices), start_raw_ns_, !plan_.takes_marks);
    if (plan_.application_options.contains(std::string(kStacksOption))) marks_->TakeStacks();
    const bool seen = early != nullptr && early->BeginOf(start_step_.first);
    if (start_step_.first != 0 && !seen) marks_->NoteRunningStep(start_step_.first, start_step_.second);
  }
  MakeFiles();
  if (dump_ != nullptr && !collect_.empty() && (files_ != nullptr || !collect_.leaves_files())) {
    activity_ = std::make_unique<SessionActivity>(dump_, KindsOf(plan_), start_raw_ns_, deps_.jobs_or_null->memory(), owner_.uid);
  }
  if (early != nullptr) {
    CountEarlySteps(*early);
    early->HandOver(marks_.get(), collect_.leaves_files() ? nullptr : activity_.get());
  }
  ReplayActivity();
  taking_marks_ = dump_ != nullptr || NeedsSteps(spec_);
  attach::SessionNotice notice{.state = "running", .start_step = StartStepOf(spec_), .steps = spec_.schedule().steps(),
                               .options = plan_.application_options, .marks = plan_.takes_marks};
  if (!collect_.empty()) notice.collect = collect_.Request();
  job_->Notify(std::move(notice));
  if (steps_.over()) Post([reason = steps_.Text()](Listener& listener) { listener.OnWantsToEnd(reason); });
}

// Those of the counting process that go into the dump with what was kept until it was there.
void SessionProcesses::CountEarlySteps(const SessionEarly& early) {
  const TrainingProcess* counting = job_->CountingProcess();
  if (counting == nullptr) return;
  const int64_t from_ns = early.BeginOf(counting->pid).value_or(start_raw_ns_);
  for (const Mark& mark : early.StepsOf(counting->pid)) {
    if (mark.time_ns >= from_ns) CountStep(mark);
  }
}

void SessionProcesses::AddDevice(SessionMarks::Device device) {
  if (marks_ != nullptr) marks_->AddDevice(device);
}

// Of the session's processes that are here; what the rings have by now is in the recorder, what arrives later is not.
void SessionProcesses::ReplayActivity() {
  if (!spec_.schedule().has_since_ms() || activity_ == nullptr || collect_.leaves_files()) return;
  job_->Drain();
  past_activity_ = deps_.history_or_null->ActivitySince(
      start_raw_ns_, [this](const TrainingProcess& process) { return job_->IsHere(process.attach_id); });
  if (past_activity_ == nullptr) return;
  // A process hands over its records within some seconds.
  constexpr int64_t kSlackNs = kNsPerSecond;
  const int64_t late = past_activity_->HeldFrom() - start_raw_ns_;
  if (const auto session = session_.lock(); late > kSlackNs && session != nullptr) {
    session->Warn(fmt::format("of what processes did before the request, the first {:.3f} s are not held any more",
                              static_cast<double>(late) / 1e9));
  }
  TakePastActivity(0);
}

// In turns, so that others get theirs: a block has up to 256 KiB.
void SessionProcesses::TakePastActivity(size_t batches) {
  for (; past_activity_ != nullptr && batches > 0; --batches) {
    const ActivityBatch* const batch = past_activity_->Next();
    if (batch == nullptr) {
      for (const MissingTime& missing : past_activity_->Missing()) activity_->AddMissing(missing);
      past_activity_ = nullptr;
    } else {
      activity_->Take(*batch);
    }
  }
  if (past_activity_ == nullptr) return;
  deps_.control.Post([self = shared_from_this()] {
    constexpr size_t kTurn = 2;
    self->TakePastActivity(kTurn);
  });
}

bool SessionProcesses::AllHandedOver() const { return collect_.AllEnded() && (files_ == nullptr || files_->idle()); }

int64_t SessionProcesses::HandOverNs() const {
  if (!handing_over_) return 0;
  return files_ != nullptr ? kLastFilesNs : kLastRecordsNs;
}

void SessionProcesses::WhenHandedOver() {
  if (!handing_over_) return;
  if (AllHandedOver()) {
    deps_.control.Post([self = shared_from_this()] { self->Finish(); });
  } else if (const auto session = session_.lock(); files_ != nullptr && session != nullptr) {
    session->OnHandingOver();
  }
}

// The last marks, before anything is closed.
void SessionProcesses::End() {
  if (job_ == nullptr) return;
  early_.reset();
  if (taking_marks_) job_->Drain();
  taking_marks_ = false;
  if (marks_ != nullptr) marks_->Flush();
  collect_.End();
  handing_over_ = (activity_ != nullptr || files_ != nullptr) && !AllHandedOver();
  attach::SessionNotice notice;
  notice.state = "ended";
  job_->Notify(std::move(notice));
  if (!handing_over_) return;
  const int64_t patience_ns = HandOverNs();
  hand_over_until_ns_ = deps_.host.clock.SteadyNs() + patience_ns;
  if (const auto session = session_.lock()) session->OnHandingOver();
  hand_over_deadline_ = std::make_unique<Timer>(deps_.control);
  hand_over_deadline_->After(patience_ns, [this] {
    const std::vector<pid_t> unended = collect_.Unended();
    if (const auto session = session_.lock()) {
      session->Warn(fmt::format("process{} {} did not hand over {} in time", unended.size() == 1 ? "" : "es", fmt::join(unended, ", "),
                                files_ != nullptr ? "its files" : "the last records"));
    }
    Finish();
  });
}

void SessionProcesses::SetEnd(int64_t end_raw_ns) {
  if (activity_ != nullptr) activity_->Stop(end_raw_ns);
}

// All that the processes recorded up to the stop is in their rings, or as much of it as will come.
void SessionProcesses::Finish() {
  const bool awaited = handing_over_;
  if (awaited) job_->Drain();
  if (awaited && activity_ != nullptr && files_ == nullptr) {
    const int64_t now_ns = deps_.host.clock.MonotonicRawNs();
    const std::vector<pid_t> unended = collect_.Unended();
    for (const TrainingProcess& process : job_->Processes()) {
      if (std::ranges::count(unended, process.pid) > 0) activity_->OnNotHandedOver(process.attach_id, now_ns);
    }
  }
  handing_over_ = false;
  hand_over_deadline_.reset();
  if (files_ != nullptr) files_->Abandon();
  if (activity_ != nullptr && !std::exchange(activity_ended_, true)) {
    TakePastActivity(std::numeric_limits<size_t>::max());
    activity_->End(deps_.host.clock.MonotonicRawNs());
    const std::string names = activity_->NamesText();
    if (const auto session = session_.lock(); session != nullptr && !names.empty()) session->Warn(names);
  }
  if (const auto session = session_.lock(); awaited && session != nullptr) session->OnHandedOver();
}

void SessionProcesses::Leave() {
  if (job_ == nullptr) return;
  // The directory may be what called us.
  deps_.control.Post([self = shared_from_this()] { self->job_->Leave(); });
}

void SessionProcesses::Describe(Manifest* manifest) const {
  manifest->steps_done = steps_.done();
  if (job_ == nullptr) return;
  manifest->expected_ranks = job_->ExpectedRanks();
  const std::vector<ManifestProcess> before = std::exchange(manifest->processes, {});
  for (const TrainingProcess& process : job_->Processes()) {
    // Frameworks bind their threads while they run. One that has ended keeps what it had.
    std::string cpus = StatusField(deps_.host.proc, process.pid, "Cpus_allowed_list");
    const auto known = std::ranges::find(before, process.pid, &ManifestProcess::pid);
    if (cpus.empty() && known != before.end()) cpus = known->cpus;
    manifest->processes.push_back({process.pid, process.rank, process.attached(), process.devices, process.command, std::move(cpus),
                                   launchers_.CpusOf(process.pid)});
    if (start_raw_ns_ != 0 && process.attached_raw_ns > start_raw_ns_) manifest->processes.back().joined_raw_ns = process.attached_raw_ns;
    collect_.Describe(&manifest->processes.back());
    if (activity_ != nullptr) manifest->processes.back().collector_cpu_ns = activity_->CostOf(process.pid);
  }
}

void SessionProcesses::EditManifest(Manifest* manifest) const {
  if (marks_ != nullptr) marks_->EditManifest(manifest);
  SessionActivity::EditManifest(manifest);
}

void SessionProcesses::SetPlaced(std::vector<ManifestProcessFiles> placed) {
  if (files_ != nullptr) files_->SetPlaced(std::move(placed));
}

}  // namespace profd
