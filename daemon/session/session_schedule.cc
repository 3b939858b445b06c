#include "daemon/session/session_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/duration_text.h"
#include "base/problem.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/session/session_plan.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr uint64_t kMinLeaseMs = 1000;
// What profctl requests if its user does not: no limit of durations refuses that.
constexpr uint64_t kUsualLeaseMs = 60'000;
// A session is kept with its spec, also when it has ended. Above what 64 entries of metadata and all options take.
constexpr size_t kMaxSpecBytes = 128 << 10;
constexpr int kMaxMetadata = 64;
constexpr size_t kMaxMetadataValue = 1024;
constexpr uint32_t kMaxUserPriority = kDefaultPriority;

// Gathers problems instead of stopping at the first.
class TermsCheck {
 public:
  TermsCheck(const TermsContext& context, v1::SessionSpec* spec)
      : context_(context), spec_(*spec), schedule_(spec->schedule()) {}

  Result<ProcessId> Run() {
    if (const size_t bytes = spec_.ByteSizeLong(); bytes > kMaxSpecBytes) {
      Refuse("spec", "", fmt::format("has {} bytes, at most {}", bytes, kMaxSpecBytes));
    }
    CheckStart();
    CheckSteps();
    CheckLease();
    CheckPriority();
    CheckMetadata();
    if (!denied_.empty()) {
      denied_.Append(problems_);
      return Status(StatusCode::kPermissionDenied, std::move(denied_).Take());
    }
    if (!problems_.empty()) return Status(StatusCode::kInvalidArgument, std::move(problems_).Take());
    return starter_;
  }

 private:
  template <class Value>
  void Refuse(std::string_view field, const Value& value, std::string text) {
    problems_.Add({.field = std::string(field), .value = fmt::format("{}", value), .text = std::move(text)});
  }
  void Conflict(std::string_view field, std::string text) {
    problems_.Add({.kind = Problem::Kind::kConflict, .field = std::string(field), .text = std::move(text)});
  }
  template <class Value>
  void Deny(std::string_view field, const Value& value, std::string text) {
    denied_.Add({.kind = Problem::Kind::kDenied,
                 .field = std::string(field),
                 .value = fmt::format("{}", value),
                 .text = std::move(text)});
  }

  void CheckStart() {
    const uint64_t max_ms = static_cast<uint64_t>(context_.config.max_start_delay_s) * 1000;
    if (schedule_.start_case() != v1::SessionSpec::Schedule::START_NOT_SET && schedule_.has_since_ms()) {
      Conflict("since_ms", "goes with a start now, not with a start to come");
    }
    if (schedule_.has_start_in_ms()) {
      const uint64_t in_ms = schedule_.start_in_ms();
      if (in_ms > max_ms) {
        Refuse("start_in_ms", in_ms, fmt::format("at most {} ahead here (limits.max_start_delay_s)", ExactDuration(max_ms)));
      } else {
        spec_.mutable_schedule()->set_start_at_ns(context_.wall_ns + static_cast<int64_t>(in_ms) * kNsPerMs);
      }
    } else if (schedule_.has_start_at_ns()) {
      CheckInstant(schedule_.start_at_ns(), max_ms);
    }
    if (schedule_.has_start_step() && schedule_.start_step() < 0) {
      Refuse("start_step", schedule_.start_step(), "must not be negative");
    }
  }

  // A little late is the way requests travel; more is a mistake (a clock, a zone).
  void CheckInstant(int64_t at_ns, uint64_t max_ms) {
    if (at_ns <= 0) {
      Refuse("start_at_ns", at_ns, "must be an instant, in ns since the epoch");
      return;
    }
    int64_t ahead = at_ns - context_.wall_ns;
    if (ahead <= -kNsPerSecond) {
      Refuse("start_at_ns", at_ns, FormatSpan(-ahead) + " ago by this node's clock");
    } else if (ahead > static_cast<int64_t>(max_ms) * kNsPerMs) {
      Refuse("start_at_ns", at_ns,
             fmt::format("{} ahead by this node's clock, at most {} (limits.max_start_delay_s)", FormatSpan(ahead), ExactDuration(max_ms)));
    }
  }

  void CheckSteps() {
    if (schedule_.has_steps() && schedule_.steps() == 0) Refuse("steps", 0, "must be above zero");
    if (NeedsSteps(spec_) && spec_.target().job_id().empty() && spec_.target().pids().empty()) {
      Conflict(schedule_.has_start_step() ? "start_step" : "steps",
               "needs {job_id} or {pids}: steps are counted on a process");
    }
  }

  void CheckLease() {
    if (!spec_.has_lease()) return;
    const uint64_t max_ms = std::max(static_cast<uint64_t>(context_.config.max_duration_s) * 1000, kUsualLeaseMs);
    const uint64_t lease = spec_.lease().lease_ms();
    if (lease < kMinLeaseMs || lease > max_ms) {
      Refuse("lease_ms", lease,
             fmt::format("must be {}..{}", ExactDuration(kMinLeaseMs), ExactDuration(max_ms)));
      return;
    }
    pid_t pid = context_.peer.pid;
    if (spec_.lease().has_starter_pid()) {
      pid = spec_.lease().starter_pid();
      if (pid <= 0) {
        Refuse("starter_pid", pid, "must be a process id");
        return;
      }
      CheckStarter(pid);
    }
    // A caller that has gone already does not renew; the lease runs from now on.
    std::optional<uint64_t> begin = pid > 0 ? context_.processes.StartTimeOf(pid) : std::nullopt;
    if (begin) starter_ = {pid, *begin};
  }

  void CheckStarter(pid_t pid) {
    Result<uint32_t> owner = context_.processes.OwnerOf(pid);
    if (!owner.ok()) {
      const bool hidden = owner.status().code() == StatusCode::kPermissionDenied;
      Refuse("starter_pid", pid,
             WhyNoOwner(owner.status()) +
                 (hidden ? ", to watch who starts a session; a session without a lease (detached) is not watched"
                         : ""));
    } else if (!context_.peer.Owns(*owner)) {
      Deny("starter_pid", pid,
           fmt::format("the process belongs to uid {}, you are uid {}", *owner, context_.peer.uid));
    }
  }

  void CheckPriority() {
    const uint32_t priority = PriorityOf(spec_);
    if (priority > kMaxPriority) {
      Refuse("priority", priority, fmt::format("must be 0..{}", kMaxPriority));
    } else if (priority > kMaxUserPriority && !context_.peer.admin) {
      Deny("priority", priority, fmt::format("only administrators may request more than {}", kMaxUserPriority));
    }
    spec_.set_priority(priority);
    if (spec_.preempt() && !context_.peer.admin) Deny("preempt", "", "only administrators may end sessions of others");
  }

  void CheckMetadata() {
    if (spec_.metadata_size() > kMaxMetadata) {
      Refuse("metadata", "", fmt::format("{} entries, at most {}", spec_.metadata_size(), kMaxMetadata));
      return;
    }
    for (const auto& [name, value] : spec_.metadata()) {
      if (!IsJobId(name)) {
        Refuse("metadata", name, "a name is at most 128 letters, digits and any of . _ - : /");
      } else if (value.size() > kMaxMetadataValue) {
        Refuse("metadata", name, fmt::format("{} bytes, at most {}", value.size(), kMaxMetadataValue));
      }
    }
  }

  const TermsContext& context_;
  v1::SessionSpec& spec_;
  const v1::SessionSpec::Schedule schedule_;  // as it was sent
  ProcessId starter_;
  ProblemList problems_;
  ProblemList denied_;
};

}  // namespace

Result<ProcessId> AdmitTerms(const TermsContext& context, v1::SessionSpec* spec_untrusted) {
  return TermsCheck(context, spec_untrusted).Run();
}

Status JoinProblems(const Status& a, const Status& b) {
  if (a.ok()) return b;
  if (b.ok()) return a;
  const auto is_first = [&](StatusCode code) { return a.code() != code && b.code() == code; };
  const bool b_first = is_first(StatusCode::kPermissionDenied) ||
                       (is_first(StatusCode::kInvalidArgument) && a.code() != StatusCode::kPermissionDenied);
  const StatusCode code = b_first ? b.code() : a.code();
  ProblemList all;
  for (const Status& status : b_first ? std::array{b, a} : std::array{a, b}) {
    if (status.problems().empty()) {
      all.Add({.text = status.message()});
    } else {
      all.Append(status.problems());
    }
  }
  return {code, std::move(all).Take()};
}

void StepCounter::Open(std::optional<int64_t> running_step) {
  if (open_) return;
  open_ = true;
  by_number_ = start_step_ && !running_step;
  if (running_step) OnBegin(*running_step);
}

void StepCounter::OnBegin(int64_t step) {
  if (!open_ || over_) return;
  if (begun_ && step <= *begun_) return;
  // A process that begins the step after the last one has ended that, reported or not.
  if (steps_ != 0 && (by_number_ ? step >= *start_step_ + steps_ : begins_ >= steps_)) {
    if (!by_number_) {
      ended_ = begun_;
      done_ = steps_;
    }
    over_ = true;
    return;
  }
  begun_ = step;
  ++begins_;
  if (!first_) first_ = step;
}

void StepCounter::OnEnd(int64_t step) {
  if (!open_ || over_ || !first_ || step < *first_) return;
  if (ended_ && step <= *ended_) return;
  ended_ = step;
  ++done_;
  if (steps_ == 0) return;
  over_ = by_number_ ? step >= *start_step_ + steps_ - 1 : done_ >= steps_;
}

void StepCounter::OnLastEnd() {
  if (!open_ || over_ || steps_ == 0) return;
  // The process counts from when it is notified, maybe a step later than what was seen first: the numbers are not known.
  if (done_ < steps_ && !start_step_) first_.reset();
  done_ = std::max(done_, steps_);
  over_ = true;
}

std::string StepCounter::Text() const {
  if (!first_ || !ended_) return fmt::format("{} steps", done_);
  return fmt::format("{} {} ({}..{})", done_, done_ == 1 ? "step" : "steps", *first_, *ended_);
}

}  // namespace profd
