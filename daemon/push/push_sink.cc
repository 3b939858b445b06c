#include "daemon/push/push_sink.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "driver/abandonable_thread.h"

namespace profd {
namespace {

constexpr int64_t kEndPatienceNs = kNsPerSecond;
constexpr std::string_view kQueueFull = "queue_full";
constexpr std::string_view kRejected = "rejected";
constexpr std::string_view kNotPacked = "not_packed";

}  // namespace

bool PushMayRetry(std::string_view sink, const PostResult& result) {
  if (result.reason != kPushAnswer || result.status == 429) return true;
  if (sink == kOtlpSink) return result.status >= 502 && result.status <= 504;
  return result.status >= 500;
}

struct PushSink::State {
  State(PushSinkOptions o, Take t)
      : options(std::move(o)),
        take(std::move(t)),
        poster(options.tls),
        wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  const PushSinkOptions options;
  Take take;
  HttpPoster poster;
  UniqueFd wake;
  AbandonableThread thread;

  Mutex take_mutex;  // held while `take` runs
  bool stop GUARDED_BY(take_mutex) = false;

  // The thread's own.
  std::deque<PushMessage> queue;
  int64_t next_take_ns = 0;
  int64_t next_try_ns = 0;
  int64_t pause_ns = options.first_pause_ns;
  bool failing = false;
  std::optional<std::string> partial_why;  // of the last message that was taken in part

  mutable Mutex mutex;
  PushStats stats GUARDED_BY(mutex);

  void Run();
  bool TakeNow();
  void Enqueue(std::vector<PushMessage> messages);
  void SendNext();
  void Failed(const PostResult& result);
  uint64_t Rejected(const PostResult& result);
  bool WaitUntil(int64_t steady_ns) const;
};

// False: it is over.
bool PushSink::State::WaitUntil(int64_t steady_ns) const {
  for (;;) {
    const int64_t left_ms = (steady_ns - SystemClock().SteadyNs() + kNsPerMs - 1) / kNsPerMs;
    if (left_ms <= 0) return true;
    pollfd waiting{wake.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ms, 3'600'000))) > 0) return false;
  }
}

void PushSink::State::Run() {
  next_take_ns = SystemClock().SteadyNs();
  do {
    if (SystemClock().SteadyNs() >= next_take_ns && !TakeNow()) break;
    if (!queue.empty() && SystemClock().SteadyNs() >= next_try_ns) SendNext();
  } while (WaitUntil(queue.empty() ? next_take_ns : std::min(next_take_ns, next_try_ns)));
}

bool PushSink::State::TakeNow() {
  const int64_t now = SystemClock().SteadyNs();
  // On its own grid; after a stall from here on.
  next_take_ns += options.interval_ns;
  if (next_take_ns <= now) next_take_ns = now + options.interval_ns;
  MutexLock lock(take_mutex);
  if (stop) return false;
  Enqueue(take());
  return true;
}

void PushSink::State::Enqueue(std::vector<PushMessage> messages) {
  MutexLock lock(mutex);
  for (PushMessage& message : messages) {
    if (message.body.empty()) {
      stats.dropped_samples[std::string(kNotPacked)] += message.samples;
      continue;
    }
    stats.queued_bytes += message.body.size();
    queue.push_back(std::move(message));
  }
  while (stats.queued_bytes > options.queue_bytes && !queue.empty()) {
    stats.queued_bytes -= queue.front().body.size();
    stats.dropped_samples[std::string(kQueueFull)] += queue.front().samples;
    queue.pop_front();
  }
}

void PushSink::State::SendNext() {
  const int64_t deadline = SystemClock().SteadyNs() + options.timeout_ns;
  const PostResult result = poster.Post(options.url, options.headers, queue.front().body, deadline, wake.get());
  if (result.reason == kPushStopped) return;
  const bool taken = result.reason == kPushAnswer && result.status >= 200 && result.status < 300;
  const bool retry = !taken && PushMayRetry(options.name, result);
  if (!taken) Failed(result);
  if (retry) {
    const int64_t wish = std::min(result.retry_after_s, kPushLongestWishNs / kNsPerSecond) * kNsPerSecond;
    next_try_ns = SystemClock().SteadyNs() + std::max(pause_ns, wish);
    pause_ns = std::min(2 * pause_ns, kPushLongestPauseNs);
    return;
  }
  if (taken && std::exchange(failing, false)) {
    log::Info("metrics are pushed again", {{"sink", options.name}, {"to", options.url.Authority()}});
  }
  pause_ns = options.first_pause_ns;
  next_try_ns = 0;
  const uint64_t samples = queue.front().samples;
  const uint64_t rejected = taken ? std::min(Rejected(result), samples) : samples;
  MutexLock lock(mutex);
  if (taken) {
    ++stats.messages;
    stats.samples += samples - rejected;
    stats.last_success_s = SystemClock().WallNs() / kNsPerSecond;
  }
  if (rejected > 0) stats.dropped_samples[std::string(kRejected)] += rejected;
  stats.queued_bytes -= queue.front().body.size();
  queue.pop_front();
}

// Of a message that was taken, the samples that were not; logged when the reason is another one.
uint64_t PushSink::State::Rejected(const PostResult& result) {
  if (options.name != kOtlpSink) return 0;
  const OtlpPartialSuccess partial = ReadOtlpPartialSuccess(result.protobuf);
  const bool is_clean = partial.rejected == 0 && partial.message.empty();
  if (!is_clean && partial.message != std::exchange(partial_why, partial.message)) {
    log::Warning("the receiver of pushed metrics reports a problem",
                 {{"sink", options.name}, {"to", options.url.Authority()}, {"rejected", partial.rejected},
                  {"why", partial.message}});
  }
  return partial.rejected;
}

void PushSink::State::Failed(const PostResult& result) {
  if (!std::exchange(failing, true)) {
    std::string why = result.detail;
    if (options.name == kOtlpSink) why += ReadOtlpError(result.protobuf);
    log::Warning("metrics cannot be pushed", {{"sink", options.name}, {"to", options.url.Authority()}, {"why", why}});
  }
  MutexLock lock(mutex);
  ++stats.failures[result.reason == kPushAnswer ? fmt::format("status_{}", result.status)
                                                : std::string(result.reason)];
}

PushSink::PushSink(PushSinkOptions options, Take take)
    : state_(std::make_shared<State>(std::move(options), std::move(take))) {}

void PushSink::Start() {
  if (state_->thread.Start("profd-push", [state = state_] { state->Run(); })) return;
  log::Error("metrics are not pushed: the system has no thread to give", {{"sink", state_->options.name}});
}

PushSink::~PushSink() {
  if (!state_->thread.joinable()) return;
  {
    MutexLock lock(state_->take_mutex);
    state_->stop = true;
  }
  uint64_t one = 1;
  [[maybe_unused]] const ssize_t woken = ::write(state_->wake.get(), &one, sizeof one);
  (void)state_->thread.JoinWithin(kEndPatienceNs);
}

PushStats PushSink::stats() const {
  MutexLock lock(state_->mutex);
  return state_->stats;
}

}  // namespace profd
