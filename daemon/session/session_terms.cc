// A session and time: starts to come, and what it is tied to.
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

// The order is answered now; WatchSession reports what becomes of it.
void Session::Schedule() {
  SetState(v1::Session::STATE_SCHEDULED);
  if (spec_.schedule().has_start_step()) {
    processes_->Arm();
  } else {
    wait_ = std::make_unique<Timer>(deps_.control);
    WaitForStart();
  }
  if (started_) std::exchange(started_, nullptr)(Status::Ok());
}

void Session::WaitForStart() {
  if (state_ != v1::Session::STATE_SCHEDULED) return;
  // Once the dump has its start, a clock that is set does not change it.
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

// The dump has the requested start from the beginning.
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
  SetState(v1::Session::STATE_STARTING);
  if (!opening_) GatherClocks();
}

void Session::OnStartStep() {
  if (state_ == v1::Session::STATE_SCHEDULED) Begin();
}

// Whatever it was tied to is still there; otherwise it is stopped.
bool Session::StillWanted() {
  SessionJob* const job = processes_->job();
  if (job != nullptr) job->Refresh();
  if (const pid_t pid = spec_.schedule().end_with_pid(); pid != 0) {
    if (deps_.processes.StartTimeOf(pid) != end_pid_start_) {
      Stop(fmt::format("process {} ended", pid));
      return false;
    }
  }
  bool tied = false;
  if (job != nullptr && job->any()) {
    const SessionTargets& targets = job->targets();
    tied = targets.bound || !targets.pids.empty() || !targets.unknown_pids.empty();
  }
  if (!tied && !spec_.has_lease()) return true;
  bool alive = job != nullptr && job->AnyAlive();
  if (tied && !alive) {
    Stop("all processes of the job have ended");
    return false;
  }
  if (!spec_.has_lease()) return true;
  const bool starter = starter_.pid != 0 && deps_.processes.StartTimeOf(starter_.pid) == starter_.start_ticks;
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
  if (state_ == v1::Session::STATE_SCHEDULED) begin = spec_.schedule().start_at_ns();
  return begin == 0 ? 0 : begin + LeftMs() * kNsPerMs;
}

// As SessionDump has it: a device without clocks is given the host's.
SessionMarks::Device Session::MarksOf(const DeviceInfo& info) const {
  auto clock = clocks_.find(info.id);
  const bool known = clock != clocks_.end();
  return {info.id, static_cast<uint32_t>(info.chip_id), info.counter_hz,
          known ? clock->second.host_ns : host_clock_.host_ns,
          known ? clock->second.device_count : host_clock_.host_count};
}

}  // namespace profd
