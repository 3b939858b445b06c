// The callers' side of Library: they queue packets and wait with a deadline.
#include <algorithm>
#include <string_view>

#include "client/libprofd/library.h"

namespace profd::lib {
namespace {

constexpr size_t kMaxPending = 64;
// Steps come at most a few times a second and a call is a packet: a daemon that takes none of so
// many is stuck.
constexpr size_t kMaxQueued = 256;
constexpr std::chrono::seconds kCollectorWithin{2};
// The daemon refuses sessions with other names.
constexpr std::string_view kMetadataCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/";

int CodeOf(const attach::Reply& reply, int if_not_found) {
  switch (static_cast<StatusCode>(reply.code)) {
    case StatusCode::kOk:
      return PROFD_OK;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return PROFD_INVALID;
    case StatusCode::kDeadlineExceeded:
      return PROFD_TIMEOUT;
    case StatusCode::kNotFound:
      return if_not_found;
    default:
      return PROFD_REFUSED;
  }
}

}  // namespace

Answer Library::NotAttached() const {
  switch (phase_) {
    case Phase::kStopped:
      return {PROFD_DISABLED, "profd_shutdown was called"};
    case Phase::kGreeting:
      return {PROFD_TIMEOUT, "the daemon has not answered in time"};
    case Phase::kRefused:
      return {PROFD_REFUSED, why_not_attached_};
    default:
      return {PROFD_NO_DAEMON, why_not_attached_};
  }
}

Answer Library::NoSession() const {
  return {PROFD_NO_SESSION, own_refusal_.empty() ? "this process has started no session" : "PROFILING_OPTIONS was refused: " + own_refusal_};
}

Answer Library::WaitAttached(Deadline deadline) {
  MutexLock lock(mutex_);
  ++waiters_;
  descriptors_.Wake();
  changed_.WaitUntil(lock, deadline, [this]() REQUIRES(mutex_) {
    return phase_ == Phase::kAttached || phase_ == Phase::kStopped || phase_ == Phase::kRefused;
  });
  --waiters_;
  return phase_ == Phase::kAttached ? Answer{} : NotAttached();
}

bool Library::Queue(const attach::ToDaemon& message, int fd) {
  if (outbox_.size() >= kMaxQueued) return false;
  outbox_.push_back({attach::Encode(message), fd});
  if (outbox_.back().packet.size() > attach::kMaxPacket) {
    outbox_.pop_back();
    return false;
  }
  descriptors_.Wake();
  return true;
}

Result<attach::Reply> Library::Call(MutexLock& lock, Kind kind,
                                    const std::function<attach::ToDaemon(uint64_t)>& make,
                                    Deadline deadline, Answer* failure) {
  const auto failed = [failure](Answer answer) {
    *failure = std::move(answer);
    return Status(StatusCode::kUnknown, "");
  };
  // Right after the start of the process the first attempt is still on its way.
  if (is_under_way()) {
    ++waiters_;
    changed_.WaitUntil(lock, deadline, [this]() REQUIRES(mutex_) { return !is_under_way(); });
    --waiters_;
  }
  if (phase_ != Phase::kAttached) return failed(NotAttached());
  if (calls_.size() >= kMaxPending) return failed({PROFD_REFUSED, "too many calls are waiting"});
  const uint64_t seq = next_seq_++;
  if (!Queue(make(seq))) {
    return failed({PROFD_INVALID, "the options are too large, or the daemon takes nothing"});
  }
  PendingCall& call = calls_[seq];  // map: stays where it is
  call.kind = kind;
  const bool answered =
      changed_.WaitUntil(lock, deadline, [&call] { return call.reply || call.lost; });
  if (!answered) {
    call.abandoned = true;
    return failed({PROFD_TIMEOUT, "the daemon has not answered in time"});
  }
  if (!call.reply) {
    calls_.erase(seq);
    return failed(phase_ == Phase::kStopped
                      ? NotAttached()
                      : Answer{PROFD_NO_DAEMON, "the connection was lost during the call"});
  }
  attach::Reply reply = std::move(*call.reply);
  calls_.erase(seq);
  return reply;
}

Answer Library::StartSession(attach::StartCall call, Deadline deadline) {
  MutexLock lock(mutex_);
  Answer failure;
  const auto make = [&call](uint64_t seq) {
    call.seq = seq;
    return attach::ToDaemon(call);
  };
  const auto reply = Call(lock, Kind::kStart, make, deadline, &failure);
  if (!reply.ok()) return failure;
  // So that what the caller does next is recorded; a profiler that hangs holds it up no longer than this.
  if (reply->session) {
    const std::string id = reply->session->session_id;
    changed_.WaitUntil(lock, std::min(deadline, std::chrono::steady_clock::now() + kCollectorWithin),
                       [&]() REQUIRES(mutex_) { return !collector_awaited_.contains(id); });
  }
  return {CodeOf(*reply, PROFD_REFUSED), reply->message};
}

Answer Library::StopSession(std::string id, Deadline deadline) {
  MutexLock lock(mutex_);
  // What PROFILING_OPTIONS began may not have been answered yet.
  changed_.WaitUntil(lock, deadline, [this]() REQUIRES(mutex_) {
    return !opened_.empty() || !own_options_sent_ ||
           (phase_ != Phase::kAttached && !is_under_way());
  });
  if (id.empty() && opened_.empty()) {
    return phase_ == Phase::kAttached ? NoSession() : NotAttached();
  }
  if (id.empty()) id = opened_.back();
  const bool ours = std::erase(opened_, id) > 0;
  Answer failure;
  const auto make = [&id](uint64_t seq) { return attach::ToDaemon(attach::StopCall{seq, id}); };
  const auto reply = Call(lock, Kind::kStop, make, deadline, &failure);
  if (!reply.ok()) {
    if (ours) opened_.push_back(id);  // still there, as far as we know: it may be tried again
    return failure;
  }
  if (id == own_session_) own_options_wanted_ = false;
  return {CodeOf(*reply, PROFD_NO_SESSION), reply->message};
}

Answer Library::SetMetadata(std::string key, std::string value) {
  if (key.empty() || key.size() > attach::kMaxMetadataKeyBytes) {
    return {PROFD_INVALID,
            "a key of metadata has 1.." + std::to_string(attach::kMaxMetadataKeyBytes) + " bytes"};
  }
  if (key.find_first_not_of(kMetadataCharacters) != std::string::npos) {
    return {PROFD_INVALID, "a key of metadata has letters, digits and any of . _ - : /"};
  }
  if (value.size() > attach::kMaxMetadataValueBytes) {
    return {PROFD_INVALID, "a value of metadata has at most " +
                               std::to_string(attach::kMaxMetadataValueBytes) + " bytes"};
  }
  const MutexLock lock(mutex_);
  if (metadata_.size() >= attach::kMaxMetadataKeys && metadata_.count(key) == 0) {
    return {PROFD_INVALID,
            "at most " + std::to_string(attach::kMaxMetadataKeys) + " keys of metadata"};
  }
  if (phase_ != Phase::kAttached) {
    untold_metadata_.insert(key);  // goes with the next hello, or after the welcome to the last one
  } else if (!Queue(attach::MetadataCall{key, value})) {
    return {PROFD_REFUSED, "the daemon takes nothing"};
  }
  metadata_[std::move(key)] = std::move(value);
  return {};
}

Answer Library::SessionJson(bool refresh, Deadline deadline, std::string* out) {
  MutexLock lock(mutex_);
  if (!last_session_) return NoSession();
  if (refresh) {
    const std::string id = last_session_->session_id;
    Answer failure;
    const auto make = [&id](uint64_t seq) { return attach::ToDaemon(attach::StatusCall{seq, id}); };
    const auto reply = Call(lock, Kind::kStatus, make, deadline, &failure);
    if (!reply.ok()) return failure;
    const int code = CodeOf(*reply, PROFD_NO_SESSION);
    if (code != PROFD_OK) return {code, reply->message};
  }
  *out = attach::EncodeSummary(*last_session_);
  return {};
}

void Library::OnStep(int64_t step, bool begin) {
  std::vector<attach::StepReport> reports;
  const MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  watch_.OnStep(step, begin, std::chrono::nanoseconds(now).count(), &reports);
  for (attach::StepReport& report : reports) Queue(std::move(report));
  if (!reports.empty()) UpdateFlags();
  if (watch_.has_due()) Wake();
}

profd_counters Library::Counters() {
  const attach::MarkRingWriter* ring = hot_.ring.load(std::memory_order_acquire);
  const MutexLock lock(mutex_);
  return {ring == nullptr ? 0 : ring->published(),
          (ring == nullptr ? 0 : ring->dropped()) + hot_.lost_without_ring.load(),
          welcomes_ == 0 ? 0 : welcomes_ - 1};
}

}  // namespace profd::lib
