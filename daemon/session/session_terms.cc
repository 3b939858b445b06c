#include "daemon/session/session_terms.h"

#include <fmt/format.h>

namespace profd {

SessionTerms::SessionTerms(const v1::SessionSpec& spec, ProcessId starter, const NodeProcesses& processes, const Clock& clock)
    : spec_(spec), starter_(starter), processes_(processes), clock_(clock) {}

Status SessionTerms::Begin() {
  if (const pid_t pid = spec_.schedule().end_with_pid(); pid != 0) {
    const std::optional<uint64_t> begin = processes_.StartTimeOf(pid);
    if (!begin) return NotFound(fmt::format("process {} has already ended", pid));
    end_pid_start_ = *begin;
  }
  Renew();
  return Status::Ok();
}

std::optional<std::string> SessionTerms::WhyOver(const SessionJob* job) {
  if (const pid_t pid = spec_.schedule().end_with_pid(); pid != 0) {
    if (processes_.StartTimeOf(pid) != end_pid_start_) return fmt::format("process {} ended", pid);
  }
  bool tied = false;
  if (job != nullptr && job->any()) {
    const SessionTargets& targets = job->targets();
    tied = targets.bound || !targets.pids.empty() || !targets.unknown_pids.empty();
  }
  if (!tied && !spec_.has_lease()) return std::nullopt;
  const bool alive = job != nullptr && job->AnyAlive();
  if (tied && !alive) return "all processes of the job have ended";
  if (!spec_.has_lease()) return std::nullopt;
  const pid_t pid = starter_.pid;
  kept_ = alive || (pid != 0 && processes_.StartTimeOf(pid) == starter_.start_ticks);
  if (kept_) Renew();
  if (clock_.SteadyNs() < until_ns_) return std::nullopt;
  return fmt::format("lease expired: not renewed for {} ms after the caller{} exited", spec_.lease().lease_ms(),
                     pid != 0 ? fmt::format(" (process {})", pid) : "");
}

std::optional<uint64_t> SessionTerms::Renew() {
  if (!spec_.has_lease()) return std::nullopt;
  until_ns_ = clock_.SteadyNs() + static_cast<int64_t>(spec_.lease().lease_ms()) * kNsPerMs;
  return spec_.lease().lease_ms();
}

int64_t SessionTerms::left_ms() const {
  const int64_t left_ns = until_ns_ - clock_.SteadyNs();
  return kept_ || left_ns < 0 ? 0 : left_ns / kNsPerMs;
}

}  // namespace profd
