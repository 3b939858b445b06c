#include "daemon/session/session_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/duration_text.h"
#include "base/problem.h"
#include "daemon/session/session_plan.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr uint64_t kMinLeaseMs = 1000;
constexpr int kMaxMetadata = 64;
constexpr size_t kMaxMetadataValue = 1024;
constexpr uint32_t kMaxUserPriority = kDefaultPriority;

// Gathers problems instead of stopping at the first.
class TermsPlanner {
 public:
  TermsPlanner(const v1::StartSessionRequest& request, const TermsContext& context)
      : request_(request), context_(context) {}

  Result<SessionTerms> Run() {
    CheckStart();
    CheckSteps();
    CheckLease();
    CheckPriority();
    CheckMetadata();
    if (!denied_.empty()) return Status(StatusCode::kPermissionDenied, std::move(denied_).Take());
    if (!problems_.empty()) return Status(StatusCode::kInvalidArgument, std::move(problems_).Take());
    return std::move(terms_);
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
    if (request_.start_case() != v1::StartSessionRequest::START_NOT_SET && request_.since_ms() != 0) {
      Conflict("since_ms", "goes with a start now, not with a start to come");
    }
    const int64_t max_s = context_.config.max_start_delay_s;
    if (request_.start_in_ms() > static_cast<uint64_t>(max_s) * 1000) {
      Refuse("start_in_ms", request_.start_in_ms(),
             fmt::format("at most {} ahead here", ExactDuration(static_cast<uint64_t>(max_s) * 1000)));
    } else if (request_.start_in_ms() != 0) {
      terms_.start_at_ns =
          context_.wall_ns + static_cast<int64_t>(request_.start_in_ms()) * kNsPerMs;
    }
    if (request_.start_at_ns() < 0) {
      Refuse("start_at_ns", request_.start_at_ns(), "must be an instant, in ns since the epoch");
    } else if (request_.start_at_ns() != 0) {
      CheckInstant(request_.start_at_ns(), max_s);
    }
    if (request_.has_start_step()) {
      terms_.start_step = request_.start_step();
      if (*terms_.start_step < 0) Refuse("start_step", *terms_.start_step, "must not be negative");
    }
  }

  // A little late is the way orders travel; more is a mistake (a clock, a zone).
  void CheckInstant(int64_t at_ns, int64_t max_s) {
    int64_t ahead = at_ns - context_.wall_ns;
    if (ahead <= -kNsPerSecond) {
      Refuse("start_at_ns", at_ns, FormatSpan(-ahead) + " ago by this node's clock");
    } else if (ahead > max_s * kNsPerSecond) {
      Refuse("start_at_ns", at_ns,
             fmt::format("{} ahead by this node's clock, at most {}", FormatSpan(ahead),
                         ExactDuration(static_cast<uint64_t>(max_s) * 1000)));
    } else {
      terms_.start_at_ns = at_ns;
    }
  }

  void CheckSteps() {
    terms_.steps = request_.steps();
    if (terms_.needs_steps() && request_.job_id().empty() && request_.pids().empty()) {
      Conflict(terms_.start_step ? "start_step" : "steps",
               "needs {job_id} or {pids}: steps are counted on a process");
    }
  }

  void CheckLease() {
    const auto max_ms = static_cast<uint64_t>(context_.config.max_duration_s) * 1000;
    const uint64_t lease = request_.lease_ms();
    if (lease != 0 && (lease < kMinLeaseMs || lease > max_ms)) {
      Refuse("lease_ms", lease,
             fmt::format("must be {}..{}", ExactDuration(kMinLeaseMs), ExactDuration(max_ms)));
      return;
    }
    terms_.lease_ms = static_cast<int64_t>(lease);
    pid_t pid = request_.starter_pid();
    if (pid < 0) {
      Refuse("starter_pid", pid, "must be a process id");
      return;
    }
    if (pid != 0 && lease == 0) Conflict("starter_pid", "needs {lease_ms} (it would do nothing)");
    if (lease == 0) return;
    if (pid != 0) CheckStarter(pid);
    if (pid == 0) pid = context_.peer.pid;
    // A caller that has gone already does not renew; the lease runs from now on.
    std::optional<uint64_t> begin = pid > 0 ? context_.process_start_time(pid) : std::nullopt;
    if (begin) terms_.starter = {pid, *begin};
  }

  void CheckStarter(pid_t pid) {
    Result<uint32_t> owner = context_.owner_of(pid);
    if (!owner.ok()) {
      const bool hidden = owner.status().code() == StatusCode::kPermissionDenied;
      Refuse("starter_pid", pid,
             WhyNoOwner(owner.status()) +
                 (hidden ? ", to watch who starts a session; profctl start --detach is not watched" : ""));
    } else if (!context_.peer.Owns(*owner)) {
      Deny("starter_pid", pid,
           fmt::format("the process belongs to uid {}, you are uid {}", *owner, context_.peer.uid));
    }
  }

  void CheckPriority() {
    uint32_t priority = request_.priority();
    if (priority > kMaxPriority) {
      Refuse("priority", priority, fmt::format("must be 0..{}", kMaxPriority));
    } else if (priority > kMaxUserPriority && !context_.peer.admin) {
      Deny("priority", priority, fmt::format("above {} is for administrators", kMaxUserPriority));
    }
    if (priority != 0) terms_.priority = priority;
    if (request_.preempt() && !context_.peer.admin) {
      Deny("preempt", "", "is for administrators");
    }
    terms_.preempt = request_.preempt();
  }

  void CheckMetadata() {
    if (request_.metadata_size() > kMaxMetadata) {
      Refuse("metadata", "", fmt::format("{} entries, at most {}", request_.metadata_size(), kMaxMetadata));
      return;
    }
    for (const auto& [name, value] : request_.metadata()) {
      if (!IsValidJobId(name)) {
        Refuse("metadata", name, "a name is at most 128 letters, digits and any of . _ - : /");
      } else if (value.size() > kMaxMetadataValue) {
        Refuse("metadata", name, fmt::format("{} characters, at most {}", value.size(), kMaxMetadataValue));
      } else {
        terms_.metadata.emplace(name, value);
      }
    }
  }

  const v1::StartSessionRequest& request_;
  const TermsContext& context_;
  SessionTerms terms_;
  ProblemList problems_;
  ProblemList denied_;
};

}  // namespace

Result<SessionTerms> PlanTerms(const v1::StartSessionRequest& request_untrusted,
                               const TermsContext& context) {
  return TermsPlanner(request_untrusted, context).Run();
}

Status JoinProblems(const Status& a, const Status& b) {
  if (a.ok()) return b;
  if (b.ok()) return a;
  if (a.code() != b.code()) return b.code() == StatusCode::kPermissionDenied ? b : a;
  ProblemList all;
  for (const Status& status : {a, b}) {
    if (status.problems().empty()) {
      all.Add({.text = status.message()});
    } else {
      all.Append(status.problems());
    }
  }
  return {a.code(), std::move(all).Take()};
}

void StepCounter::Open(std::optional<int64_t> running_step) {
  open_ = true;
  begun_ = running_step;
  if (running_step) first_ = running_step;
}

void StepCounter::OnBegin(int64_t step) {
  if (!open_ || over_) return;
  // A process that begins the step after the last one has ended that, reported or not.
  if (steps_ != 0 && start_step_ && step >= *start_step_ + steps_) {
    over_ = true;
    return;
  }
  if (begun_ && step <= *begun_) return;
  begun_ = step;
  if (!first_) first_ = step;
}

void StepCounter::OnEnd(int64_t step) {
  if (!open_ || over_ || !first_ || step < *first_) return;
  if (ended_ && step <= *ended_) return;
  ended_ = step;
  ++done_;
  if (steps_ == 0) return;
  over_ = start_step_ ? step >= *start_step_ + steps_ - 1 : done_ >= steps_;
}

void StepCounter::OnLastEnd() {
  if (!open_ || steps_ == 0) return;
  done_ = std::max(done_, steps_);
  over_ = true;
}

std::string StepCounter::Text() const {
  if (!first_ || !ended_) return fmt::format("{} steps", done_);
  return fmt::format("{} {} ({}..{})", done_, done_ == 1 ? "step" : "steps", *first_, *ended_);
}

}  // namespace profd
