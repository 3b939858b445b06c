// A session's dealings with time and with its processes: starts to come, steps, leases, marks.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/session/session.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// The dump of a start to come is made this long before it, so that the start itself is short.
constexpr int64_t kPrepareNs = kNsPerSecond;
// The wall clock may be set while a session waits for an instant of it.
constexpr int64_t kLookAgainNs = kNsPerSecond;

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
  events.on_gone = [this](const TrainingProcess& process) { OnProcessGone(process); };
  events.on_come = [this] {
    deps_.control.Post([self = shared_from_this()] { self->JoinDevices(); });
  };
  job_->Watch(std::move(events), [this] {
    // The step to start at may be seen in a ring before the process has reported it.
    return taking_marks_ || (state_ == SessionState::kScheduled && terms_.start_step);
  });
}

// The order is answered now; WatchSession reports what becomes of it.
void Session::Schedule() {
  SetState(SessionState::kScheduled);
  if (terms_.start_step) {
    attach::SessionNotice notice;
    notice.state = "armed";
    notice.start_step = terms_.start_step;
    notice.steps = terms_.steps;
    notice.options = plan_.application_options;
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
                           : terms_.start_at_ns - deps_.host.clock.WallNs();
  if (left <= 0) {
    Launch();
    return;
  }
  int64_t pause = left;
  if (!plan_.no_dump && !prepared_) {
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
  start_wall_ns_ = terms_.start_at_ns;
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

void Session::OnProcessGone(const TrainingProcess& process) {
  DCHECK_ON(deps_.control);
  if (marks_ != nullptr) marks_->OnGone(process.pid);
  if (!terms_.needs_steps() || job_->CountingProcess() != nullptr) return;
  if (state_ == SessionState::kScheduled) {
    StopLater(fmt::format("no attached process is left to begin step {}", *terms_.start_step));
  } else if (terms_.steps != 0) {
    StopLater("no attached process is left to count steps");
  }
}

// Whatever it was tied to is still there; otherwise it is stopped.
bool Session::StillWanted() {
  if (job_ != nullptr) job_->Refresh();
  if (plan_.end_with_pid != 0) {
    std::optional<uint64_t> begin = deps_.process_start_time(plan_.end_with_pid);
    if (!begin || *begin != end_pid_start_) {
      Stop(fmt::format("process {} ended", plan_.end_with_pid));
      return false;
    }
  }
  bool tied = false;
  if (job_ != nullptr && job_->any()) {
    const SessionTargets& targets = job_->targets();
    tied = targets.bound || !targets.pids.empty() || !targets.unknown_pids.empty();
  }
  if (!tied && terms_.lease_ms == 0) return true;
  bool alive = job_ != nullptr && job_->AnyAlive();
  if (tied && !alive) {
    Stop("all processes of the job have ended");
    return false;
  }
  if (terms_.lease_ms == 0) return true;
  bool starter = false;
  if (terms_.starter.pid != 0) {
    std::optional<uint64_t> begin = deps_.process_start_time(terms_.starter.pid);
    starter = begin && *begin == terms_.starter.start_ticks;
  }
  const int64_t now = deps_.host.clock.SteadyNs();
  lease_.Look(now, alive || starter);
  if (!lease_.expired(now)) return true;
  const pid_t pid = terms_.starter.pid;
  Stop(fmt::format("lease expired: not renewed for {} ms after the caller{} exited",
                   terms_.lease_ms, pid != 0 ? fmt::format(" (process {})", pid) : ""));
  return false;
}

int64_t Session::RenewLease() {
  DCHECK_ON(deps_.control);
  if (terms_.lease_ms == 0) return 0;
  lease_.Renew(deps_.host.clock.SteadyNs());
  return terms_.lease_ms;
}

int64_t Session::KnownEndWallNs() const {
  if (plan_.duration_ms == 0 || finished()) return 0;
  int64_t begin = ordered_wall_ns_ != 0 ? ordered_wall_ns_ : start_wall_ns_;
  if (state_ == SessionState::kScheduled) begin = terms_.start_at_ns;
  return begin == 0 ? 0 : begin + plan_.duration_ms * kNsPerMs;
}

// The session runs: its processes are notified and their marks are taken.
void Session::TakeMarks() {
  if (job_ == nullptr) return;
  if (!terms_.start_step || (continues_ && continues_->started)) steps_.Open(std::nullopt);
  if (dump_ != nullptr) {
    std::vector<SessionMarks::Device> devices;
    for (const DeviceInfo& info : deps_.host.devices) {
      if (std::find(plan_.devices.begin(), plan_.devices.end(), info.id) != plan_.devices.end()) {
        devices.push_back(MarksOf(info));
      }
    }
    marks_ = std::make_unique<SessionMarks>(dump_, std::move(devices), start_raw_ns_,
                                            !plan_.takes_marks);
    if (launch_step_.first != 0) marks_->NoteRunningStep(launch_step_.first, launch_step_.second);
  }
  taking_marks_ = dump_ != nullptr || terms_.needs_steps();
  attach::SessionNotice notice;
  notice.state = "running";
  notice.start_step = terms_.start_step;
  notice.steps = terms_.steps;
  notice.options = plan_.application_options;
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
  if (taking_marks_) job_->Drain();
  taking_marks_ = false;
  if (marks_ != nullptr) marks_->Flush();
  attach::SessionNotice notice;
  notice.state = "ended";
  job_->Tell(std::move(notice));
}

void Session::LeaveJob() {
  if (job_ == nullptr) return;
  // The directory may be what called us.
  deps_.control.Post([self = shared_from_this()] { self->job_->Leave(); });
}

void Session::DescribeOrder(Manifest* manifest) const {
  manifest->metadata = terms_.metadata;
  manifest->start_step = terms_.start_step;
  manifest->steps = terms_.steps;
  manifest->steps_done = steps_.done();
  if (job_ == nullptr) return;
  manifest->processes.clear();
  for (const TrainingProcess& process : job_->Processes()) {
    manifest->processes.push_back(
        {process.pid, process.rank, process.attached(), process.devices, process.command});
  }
}

void Session::FillOrder(v1::Session* out) const {
  if (state_ == SessionState::kScheduled) out->set_started_ns(0);
  out->set_start_at_ns(terms_.start_at_ns);
  if (terms_.start_step) out->set_start_step(*terms_.start_step);
  out->set_steps(terms_.steps);
  out->set_steps_done(steps_.done());
  out->set_priority(terms_.priority);
  for (const auto& [name, value] : terms_.metadata) (*out->mutable_metadata())[name] = value;
  if (terms_.lease_ms != 0) {
    out->set_lease_ms(static_cast<uint64_t>(terms_.lease_ms));
    out->set_lease_left_ms(
        finished() ? 0 : static_cast<uint64_t>(lease_.left_ms(deps_.host.clock.SteadyNs())));
  }
  if (marks_ != nullptr) {
    out->set_marks(marks_->written());
    out->set_dropped_marks(marks_->dropped());
  }
  if (job_ != nullptr) job_->Fill(out);
}

}  // namespace profd
