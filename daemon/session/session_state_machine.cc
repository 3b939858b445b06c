// A session's dealings with time and with its processes: starts to come, steps, leases, marks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/jobs/process_facts.h"
#include "daemon/session/session.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// The dump of a start to come is made this long before it, so that the start itself is short.
constexpr int64_t kPrepareNs = kNsPerSecond;
// The wall clock may be set while a session waits for an instant of it.
constexpr int64_t kLookAgainNs = kNsPerSecond;
// A process hands over its last records within a second (client/libprofd/mspti), or does not.
constexpr int64_t kLastRecordsNs = 2 * kNsPerSecond;
// The vendor's profiler that leaves files may write them for half a minute; then they are copied.
constexpr int64_t kLastFilesNs = 100 * kNsPerSecond;

}  // namespace

void Session::BeginJob() {
  lease_.Renew(deps_.host.clock.SteadyNs());
  if (job_ == nullptr) return;
  SessionJob::Events events;
  events.on_step = [this](const TrainingProcess& process, int64_t step, bool begin, bool last) {
    OnStep(process, step, begin, last);
  };
  events.on_marks = [this](const TrainingProcess& process, const MarkBatch& batch) {
    OnMarks(process, batch);
  };
  events.on_activity = [this](const ActivityBatch& batch) {
    launchers_.Take(batch, deps_.host.clock.SteadyNs());
    if (activity_ != nullptr) {
      activity_->Take(batch);
    } else if (early_ != nullptr) {
      early_->Take(batch);
    }
  };
  events.on_collector = [this](const TrainingProcess& process, const attach::CollectorReport& report) {
    OnCollector(process, report);
  };
  events.on_files = [this](const TrainingProcess& process, const attach::CollectorReport& report,
                           std::shared_ptr<UniqueFd> directory) {
    return OnFiles(process, report, std::move(directory));
  };
  events.on_gone = [this](const TrainingProcess& process, uint64_t attach_id, bool in_good_order) {
    OnProcessGone(process, attach_id, in_good_order);
  };
  events.on_come = [this] {
    deps_.control.Post([self = shared_from_this()] { self->JoinDevices(); });
  };
  if (!spec_.no_dump() && !spec_.schedule().has_since_ms()) {
    const bool goes_on = continues_ && continues_->started;
    early_ = std::make_unique<SessionEarly>(goes_on ? std::nullopt : StartStepOf(spec_));
  }
  job_->Watch(std::move(events), [this] {
    // The step to start at may be seen in a ring before the process has reported it.
    const bool scheduled = state_ == SessionState::kScheduled;
    return taking_marks_ || ending_activity_ || (scheduled ? spec_.schedule().has_start_step() : early_ != nullptr);
  });
}

// The order is answered now; WatchSession reports what becomes of it.
void Session::Schedule() {
  SetState(SessionState::kScheduled);
  if (spec_.schedule().has_start_step()) {
    attach::SessionNotice notice;
    notice.state = "armed";
    notice.start_step = StartStepOf(spec_);
    notice.steps = spec_.schedule().steps();
    notice.options = plan_.application_options;
    // What writes files has no part of a step.
    if (!collect_.empty() && !collect_.leaves_files()) notice.collect = collect_.Order();
    job_->Tell(std::move(notice));
  } else {
    wait_ = std::make_unique<Timer>(deps_.control);
    WaitForStart();
  }
  if (started_) std::exchange(started_, nullptr)(Status::Ok());
}

void Session::WaitForStart() {
  if (state_ != SessionState::kScheduled) return;
  // Once the dump says when it starts, a clock that is set does not change it.
  int64_t left = prepared_ ? start_raw_ns_ - deps_.host.clock.MonotonicRawNs()
                           : spec_.schedule().start_at_ns() - deps_.host.clock.WallNs();
  if (left <= 0) {
    Launch();
    return;
  }
  int64_t pause = left;
  if (!spec_.no_dump() && !prepared_) {
    if (left <= kPrepareNs) {
      Prepare(left);
    } else {
      pause = left - kPrepareNs;
    }
  }
  wait_->After(std::min(pause, kLookAgainNs), [this] { WaitForStart(); });
}

// The dump says from the beginning that it starts at the instant ordered.
void Session::Prepare(int64_t left_ns) {
  prepared_ = true;
  SetStart();
  start_wall_ns_ = spec_.schedule().start_at_ns();
  start_raw_ns_ += left_ns;
  OpenDump();
}

void Session::Launch() {
  wait_.reset();
  if (!prepared_) {
    Begin();
    return;
  }
  SetState(SessionState::kStarting);
  if (!opening_) GatherClocks();
}

void Session::StopLater(std::string reason) {
  DCHECK_ON(deps_.control);
  // Not in the middle of the directory's own doing: ending asks it for the last marks.
  deps_.control.Post([self = shared_from_this(), reason = std::move(reason)] {
    self->Stop(reason);
  });
}

void Session::OnStep(const TrainingProcess& process, int64_t step, bool begin, bool last) {
  DCHECK_ON(deps_.control);
  if (stop_requested_) return;
  if (state_ == SessionState::kScheduled && !launching_) {
    if (!begin || !steps_.Begins(step)) return;
    launching_ = true;
    steps_.Open(step);
    launch_step_ = {process.pid, step};
    deps_.control.Post([self = shared_from_this()] {
      if (self->state_ == SessionState::kScheduled) self->Begin();
    });
    return;
  }
  begin ? steps_.OnBegin(step) : steps_.OnEnd(step);
  if (last) steps_.OnLastEnd();
  if (steps_.over() && state_ == SessionState::kRunning) StopLater(steps_.Text());
}

void Session::OnMarks(const TrainingProcess& process, const MarkBatch& batch) {
  DCHECK_ON(deps_.control);
  if (early_ != nullptr) early_->Take(process, batch);
  if (!taking_marks_ && state_ != SessionState::kScheduled) return;
  if (marks_ != nullptr) marks_->Take(process, batch);
  const TrainingProcess* counting = job_->CountingProcess();
  if (counting == nullptr || counting->pid != process.pid) return;
  for (const Mark& mark : batch.marks) {
    // A step that began before the session is none of its steps.
    if (mark.time_ns < start_raw_ns_) continue;
    if (mark.kind == attach::MarkKind::kStepBegin) OnStep(process, mark.value, true, false);
    if (mark.kind == attach::MarkKind::kStepEnd) OnStep(process, mark.value, false, false);
  }
}

void Session::OnCollector(const TrainingProcess& process, const attach::CollectorReport& report) {
  DCHECK_ON(deps_.control);
  collect_.OnReport(process, report);
  if (activity_ != nullptr) activity_->OnLeftOut(process.attach_id, report.left_out, deps_.host.clock.MonotonicRawNs());
  WhenHandedOver();
}

bool Session::OnFiles(const TrainingProcess& process, const attach::CollectorReport& report,
                      std::shared_ptr<UniqueFd> directory) {
  DCHECK_ON(deps_.control);
  if (files_ == nullptr) return false;
  collect_.OnReport(process, report);
  files_->Take(process, report, std::move(directory));
  return true;
}

void Session::MakeFiles() {
  const bool possible = dump_ != nullptr && deps_.jobs_or_null != nullptr && deps_.copier_or_null != nullptr;
  if (!possible || !collect_.leaves_files()) return;
  SessionFiles::Deps deps{deps_.control, deps_.host.clock, *deps_.jobs_or_null, *deps_.copier_or_null, {}, {}, nullptr};
  deps.dump.begin = [dump = dump_](ManifestProcessFiles facts, std::function<void(Result<UniqueFd>)> done) {
    dump->BeginProcessFiles(std::move(facts), std::move(done));
  };
  deps.dump.reserve = [dump = dump_](uint64_t bytes, int64_t until_steady_ns) {
    return dump->ReserveForFiles(bytes, until_steady_ns);
  };
  deps.dump.end = [dump = dump_](ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) {
    dump->EndProcessFiles(std::move(facts), unused, std::move(files));
  };
  deps.owner = {owner_.uid, owner_.gid};
  deps.on_idle = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->WhenHandedOver();
  };
  files_ = std::make_shared<SessionFiles>(std::move(deps));
}

bool Session::AllHandedOver() const { return collect_.AllEnded() && (files_ == nullptr || files_->idle()); }

void Session::WhenHandedOver() {
  if (!ending_activity_) return;
  if (!AllHandedOver()) {
    if (files_ != nullptr) on_change_(*this);
    return;
  }
  deps_.control.Post([self = shared_from_this()] { self->EndActivity(); });
}

int64_t Session::HandOverNs() const { return ending_activity_ && files_ != nullptr ? kLastFilesNs : 0; }

void Session::OnProcessGone(const TrainingProcess& process, uint64_t attach_id, bool in_good_order) {
  DCHECK_ON(deps_.control);
  if (marks_ != nullptr) marks_->OnGone(process.pid);
  if (early_ != nullptr) early_->OnGone(attach_id, process.pid);
  const bool lost = collect_.OnGone(process.pid) && !in_good_order;
  if (activity_ != nullptr) activity_->OnGone(attach_id, !lost, deps_.host.clock.MonotonicRawNs());
  if (lost && (activity_ != nullptr || files_ != nullptr)) {
    warnings_.push_back(fmt::format("process {}{} ended without handing over its {}", process.pid,
                                    process.rank ? fmt::format(" (rank {})", *process.rank) : "",
                                    files_ != nullptr ? "files" : "last records"));
  }
  WhenHandedOver();
  if (!NeedsSteps(spec_) || job_->CountingProcess() != nullptr) return;
  if (state_ == SessionState::kScheduled) {
    StopLater(fmt::format("no attached process is left to begin step {}", spec_.schedule().start_step()));
  } else if (spec_.schedule().has_steps()) {
    StopLater("no attached process is left to count steps");
  }
}

// Whatever it was tied to is still there; otherwise it is stopped.
bool Session::StillWanted() {
  if (job_ != nullptr) job_->Refresh();
  if (const pid_t pid = spec_.schedule().end_with_pid(); pid != 0) {
    std::optional<uint64_t> begin = deps_.process_start_time(pid);
    if (!begin || *begin != end_pid_start_) {
      Stop(fmt::format("process {} ended", pid));
      return false;
    }
  }
  bool tied = false;
  if (job_ != nullptr && job_->any()) {
    const SessionTargets& targets = job_->targets();
    tied = targets.bound || !targets.pids.empty() || !targets.unknown_pids.empty();
  }
  if (!tied && !spec_.has_lease()) return true;
  bool alive = job_ != nullptr && job_->AnyAlive();
  if (tied && !alive) {
    Stop("all processes of the job have ended");
    return false;
  }
  if (!spec_.has_lease()) return true;
  bool starter = false;
  if (starter_.pid != 0) {
    std::optional<uint64_t> begin = deps_.process_start_time(starter_.pid);
    starter = begin && *begin == starter_.start_ticks;
  }
  const int64_t now = deps_.host.clock.SteadyNs();
  lease_.Look(now, alive || starter);
  if (!lease_.expired(now)) return true;
  const pid_t pid = starter_.pid;
  Stop(fmt::format("lease expired: not renewed for {} ms after the caller{} exited",
                   spec_.lease().lease_ms(), pid != 0 ? fmt::format(" (process {})", pid) : ""));
  return false;
}

std::optional<uint64_t> Session::RenewLease() {
  DCHECK_ON(deps_.control);
  if (!spec_.has_lease()) return std::nullopt;
  lease_.Renew(deps_.host.clock.SteadyNs());
  return spec_.lease().lease_ms();
}

int64_t Session::LeftMs() const {
  return continues_ ? continues_->left_ms : static_cast<int64_t>(spec_.schedule().duration_ms());
}

int64_t Session::KnownEndWallNs() const {
  if (!spec_.schedule().has_duration_ms() || finished()) return 0;
  int64_t begin = ordered_wall_ns_ != 0 ? ordered_wall_ns_ : start_wall_ns_;
  if (state_ == SessionState::kScheduled) begin = spec_.schedule().start_at_ns();
  return begin == 0 ? 0 : begin + LeftMs() * kNsPerMs;
}

// The session runs: its processes are notified and their marks are taken.
void Session::TakeMarks() {
  if (job_ == nullptr) return;
  // What is in the rings by now belongs to the time before.
  if (early_ != nullptr) job_->Drain();
  const std::unique_ptr<SessionEarly> early = std::move(early_);
  if (!spec_.schedule().has_start_step() || (continues_ && continues_->started)) steps_.Open(std::nullopt);
  if (dump_ != nullptr) {
    std::vector<SessionMarks::Device> devices;
    for (const DeviceInfo& info : deps_.host.devices) {
      if (std::find(plan_.devices.begin(), plan_.devices.end(), info.id) != plan_.devices.end()) {
        devices.push_back(MarksOf(info));
      }
    }
    marks_ = std::make_unique<SessionMarks>(dump_, std::move(devices), start_raw_ns_,
                                            !plan_.takes_marks);
    if (plan_.application_options.contains(std::string(kStacksOption))) marks_->TakeStacks();
    const bool seen = early != nullptr && early->BeginOf(launch_step_.first);
    if (launch_step_.first != 0 && !seen) marks_->NoteRunningStep(launch_step_.first, launch_step_.second);
  }
  MakeFiles();
  if (dump_ != nullptr && !collect_.empty() && !collect_.leaves_files()) {
    activity_ = std::make_unique<SessionActivity>(dump_, collect_.Order().kinds, start_raw_ns_);
  }
  if (early != nullptr) early->HandOver(marks_.get(), activity_.get());
  ReplayActivity();
  taking_marks_ = dump_ != nullptr || NeedsSteps(spec_);
  attach::SessionNotice notice;
  notice.state = "running";
  notice.start_step = StartStepOf(spec_);
  notice.steps = spec_.schedule().steps();
  notice.options = plan_.application_options;
  if (!collect_.empty()) notice.collect = collect_.Order();
  job_->Tell(std::move(notice));
  if (steps_.over()) StopLater(steps_.Text());
}

// As SessionDump has it: a device without clocks is given the host's.
SessionMarks::Device Session::MarksOf(const DeviceInfo& info) const {
  auto clock = clocks_.find(info.id);
  const bool known = clock != clocks_.end();
  return {info.id, static_cast<uint32_t>(info.chip_id), info.counter_hz,
          known ? clock->second.host_ns : host_clock_.host_ns,
          known ? clock->second.device_count : host_clock_.host_count};
}

// The last marks, before anything is closed.
void Session::EndMarks() {
  if (job_ == nullptr) return;
  early_.reset();
  if (taking_marks_) job_->Drain();
  taking_marks_ = false;
  if (marks_ != nullptr) marks_->Flush();
  collect_.End();
  ending_activity_ = (activity_ != nullptr || files_ != nullptr) && !AllHandedOver();
  attach::SessionNotice notice;
  notice.state = "ended";
  job_->Tell(std::move(notice));
  if (!ending_activity_) return;
  const int64_t patience_ns = files_ != nullptr ? kLastFilesNs : kLastRecordsNs;
  hand_over_until_ns_ = deps_.host.clock.SteadyNs() + patience_ns;
  on_change_(*this);
  activity_deadline_ = std::make_unique<Timer>(deps_.control);
  activity_deadline_->After(patience_ns, [this] {
    warnings_.push_back(fmt::format("process{} {} did not hand over {} in time",
                                    collect_.Unended().size() == 1 ? "" : "es", fmt::join(collect_.Unended(), ", "),
                                    files_ != nullptr ? "its files" : "the last records"));
    EndActivity();
  });
}

// All that the processes recorded up to the stop is in their rings, or as much of it as will come.
void Session::EndActivity() {
  const bool awaited = ending_activity_;
  if (awaited) job_->Drain();
  ending_activity_ = false;
  activity_deadline_.reset();
  if (files_ != nullptr) files_->Abandon();
  if (activity_ != nullptr && !std::exchange(activity_ended_, true)) {
    TakePastActivity(std::numeric_limits<size_t>::max());
    activity_->End(deps_.host.clock.MonotonicRawNs());
  }
  if (awaited) OnReleased();
}

void Session::LeaveJob() {
  if (job_ == nullptr) return;
  // The directory may be what called us.
  deps_.control.Post([self = shared_from_this()] { self->job_->Leave(); });
}

void Session::DescribeProgress(Manifest* manifest) const {
  manifest->steps_done = steps_.done();
  if (job_ == nullptr) return;
  const std::vector<ManifestProcess> before = std::exchange(manifest->processes, {});
  for (const TrainingProcess& process : job_->Processes()) {
    // Frameworks bind their threads while they run. One that has ended keeps what it had.
    std::string cpus = StatusField(deps_.host.proc, process.pid, "Cpus_allowed_list");
    const auto known = std::ranges::find(before, process.pid, &ManifestProcess::pid);
    if (cpus.empty() && known != before.end()) cpus = known->cpus;
    manifest->processes.push_back(
        {process.pid, process.rank, process.attached(), process.devices, process.command, std::move(cpus),
         launchers_.CpusOf(process.pid)});
    collect_.Describe(&manifest->processes.back());
    if (activity_ != nullptr) manifest->processes.back().collector_cpu_ns = activity_->CostOf(process.pid);
  }
}

void Session::FillProgress(v1::SessionStatus* out) const {
  out->set_steps_done(steps_.done());
  if (const int64_t left_ms = lease_.left_ms(deps_.host.clock.SteadyNs()); left_ms > 0 && !finished()) {
    out->set_lease_left_ms(static_cast<uint64_t>(left_ms));
  }
  if (ending_activity_ && files_ != nullptr) {
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

}  // namespace profd
