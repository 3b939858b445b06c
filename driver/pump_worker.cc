#include "driver/pump_worker.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

namespace profd::internal {
namespace {

// A driver may invent any code; beyond this many different ones they are counted together.
constexpr size_t kMaxErrorCodes = 32;
// For how long channels with a backlog are visited before the others are polled again.
constexpr int64_t kBacklogNs = 50 * kNsPerMs;

bool IsPollIdle(int code) {
  return code == 0 || code == abi::kProfTimeout || code == abi::kProfErestartsys;
}

bool IsNothingStarted(int code) {
  return code == abi::kProfStoppedAlready || code == abi::kProfPollUninitialised;
}

bool SamePair(const abi::ProfPollInfo& a, const abi::ProfPollInfo& b) {
  return a.device_id == b.device_id && a.channel_id == b.channel_id;
}

}  // namespace

void PumpCore::Wake() {
  {
    MutexLock lock(mutex);
    ++wakes;
  }
  wake.NotifyAll();
}

void PumpCore::Quit() {
  {
    MutexLock lock(mutex);
    quit = true;
  }
  wake.NotifyAll();
}

void PumpCore::CountPollError(int code) {
  MutexLock lock(mutex);
  if (poll_errors.size() >= kMaxErrorCodes && poll_errors.count(code) == 0) code = INT_MIN;
  ++poll_errors[code];
}

void PumpCore::AddLeftovers(const std::vector<abi::ProfPollInfo>& pairs) {
  {
    MutexLock lock(mutex);
    leftovers.insert(leftovers.end(), pairs.begin(), pairs.end());
    ++wakes;
  }
  wake.NotifyAll();
}

PumpWorker::PumpWorker(std::shared_ptr<PumpCore> core)
    : core_(std::move(core)),
      scratch_(core_->options.scratch_bytes),
      slots_(kWidePollSlots),
      pace_(core_->options.min_poll_interval_ns, core_->relaxed_poll_interval_ns),
      error_backoff_ns_(core_->options.min_backoff_ns),
      idle_backoff_ns_(core_->options.min_backoff_ns) {}

void PumpWorker::Run() {
  while (GoOn()) {
    WaitForChannels();
    if (GoOn()) Round();
  }
  Recover();
}

bool PumpWorker::GoOn() { return !abandoned_ && !core_->quit; }

// Nothing registered: no polling at all.
void PumpWorker::WaitForChannels() {
  MutexLock lock(core_->mutex);
  core_->wake.Wait(lock, [this] { return core_->quit || core_->table->registered() > 0; });
  if (core_->leftovers.empty()) return;
  std::vector<abi::ProfPollInfo> leftovers = std::exchange(core_->leftovers, {});
  lock.Unlock();
  MutexLock mine(mutex_);
  backlog_.insert(backlog_.end(), leftovers.begin(), leftovers.end());
}

void PumpWorker::Round() {
  ReadBacklog();
  if (!GoOn()) return;
  pace_.BeginRound(core_->table->NowSteadyNs());
  asked_ = wide_ ? kWidePollSlots : core_->options.poll_slots;
  Begin(PumpCall::kPoll, 0, 0);
  int got = core_->hal->ProfPoll(slots_.data(), asked_, core_->options.poll_timeout_seconds);
  core_->polls.fetch_add(1, std::memory_order_relaxed);
  if (End()) {
    Dispatch(got);
  } else if (got > 0 && got <= asked_) {
    // Too late: another thread is at work by now. What was reported may not be reported again.
    core_->AddLeftovers({slots_.begin(), slots_.begin() + got});
  }
}

void PumpWorker::Dispatch(int got) {
  const PumpOptions& options = core_->options;
  if (IsNothingStarted(got)) {
    PauseAfter(&idle_backoff_ns_, options.max_idle_backoff_ns);
    return;
  }
  idle_backoff_ns_ = options.min_backoff_ns;
  if (got > asked_ || (got < 0 && !IsPollIdle(got))) {
    core_->CountPollError(got);
    wide_refused_ = wide_refused_ || wide_;
    wide_ = false;
    PauseAfter(&error_backoff_ns_, options.max_backoff_ns);
    return;
  }
  error_backoff_ns_ = options.min_backoff_ns;
  Visited visited;
  if (got > 0) {
    visited = ReadPairs(std::span(slots_).first(static_cast<size_t>(got)));
    if (!GoOn()) return;
  }
  bool full = got == asked_;
  // Pairs that may not be read (of a stuck device, for example) must not displace the others.
  wide_ = full && !visited.any_registered && !wide_refused_;
  if (full && visited.bytes > 0 && !pace_.HadAll(core_->table->registered())) return;
  pace_.SetRelaxed(core_->relaxed_poll_interval_ns);
  Pause(pace_.EndRound(core_->table->NowSteadyNs(), core_->table->Watched()));
}

PumpWorker::Visited PumpWorker::ReadPairs(std::span<const abi::ProfPollInfo> pairs) {
  {
    MutexLock lock(mutex_);
    to_read_.assign(pairs.rbegin(), pairs.rend());
  }
  Visited visited;
  abi::ProfPollInfo pair{};
  while (NextToRead(&pair)) {
    ChannelTable::Visit visit = core_->table->Read(pair.device_id, pair.channel_id, scratch_, this);
    if (!visit.registered) core_->foreign_hits.fetch_add(1, std::memory_order_relaxed);
    visited.any_registered = visited.any_registered || visit.registered;
    visited.bytes += visit.bytes;
    if (visit.registered) pace_.NoteVisit();
    if (visit.more || visit.bytes >= PumpPace::kLargeVisit) pace_.Hurry(core_->table->NowSteadyNs());
    if (!visit.more) continue;
    MutexLock lock(mutex_);
    bool known = std::ranges::any_of(backlog_, [&](const abi::ProfPollInfo& p) { return SamePair(p, pair); });
    if (!known) backlog_.push_back(pair);
  }
  return visited;
}

bool PumpWorker::NextToRead(abi::ProfPollInfo* pair) {
  if (!GoOn()) return false;
  MutexLock lock(mutex_);
  if (to_read_.empty()) return false;
  *pair = to_read_.back();
  to_read_.pop_back();
  return true;
}

// The driver need not report a channel again whose data was not fetched completely.
void PumpWorker::ReadBacklog() {
  const int64_t until_ns = core_->table->NowSteadyNs() + kBacklogNs;
  do {
    {
      MutexLock lock(mutex_);
      again_.swap(backlog_);
      backlog_.clear();
    }
    if (again_.empty() || !GoOn()) return;
    ReadPairs(again_);
  } while (core_->table->NowSteadyNs() < until_ns);
}

void PumpWorker::Pause(int64_t ns) {
  if (ns <= 0) return;
  MutexLock lock(core_->mutex);
  core_->wake.WaitFor(lock, std::chrono::nanoseconds(ns), [this]() REQUIRES(core_->mutex) {
    return core_->quit || core_->wakes != seen_wakes_;
  });
  if (core_->wakes == seen_wakes_) return;
  seen_wakes_ = core_->wakes;
  lock.Unlock();
  idle_backoff_ns_ = core_->options.min_backoff_ns;
  pace_.Hurry(core_->table->NowSteadyNs());
}

void PumpWorker::PauseAfter(int64_t* backoff_ns, int64_t max_ns) {
  int64_t now = *backoff_ns;
  *backoff_ns = std::min(now * 2, max_ns);
  Pause(now);
}

// A call that was given up on has returned after all.
void PumpWorker::Recover() {
  std::optional<PumpCall> stuck_in;
  {
    MutexLock lock(mutex_);
    if (!abandoned_) return;
  }
  MutexLock guard(core_->guard_mutex);
  {
    MutexLock lock(mutex_);
    stuck_in = stuck_in_;
  }
  --core_->abandoned;
  if (!stuck_in.has_value() || stuck_in->kind != PumpCall::kRead) return;
  uint32_t device = stuck_in->device;
  core_->table->SetStuck(device, false);
  std::vector<abi::ProfPollInfo> unread;
  for (uint32_t channel : core_->table->ChannelsOf(device)) unread.push_back({device, channel});
  core_->AddLeftovers(unread);
  core_->table->WithSink([device](BlockSink& sink) { sink.OnDeviceRecovered(device); });
}

void PumpWorker::Begin(PumpCall::Kind kind, uint32_t device, uint32_t channel) {
  int64_t now = core_->table->NowSteadyNs();
  MutexLock lock(mutex_);
  call_ = {kind, device, channel, now};
}

bool PumpWorker::End() {
  MutexLock lock(mutex_);
  call_ = {};
  return !abandoned_;
}

void PumpWorker::BeforeRead(uint32_t device, uint32_t channel) {
  Begin(PumpCall::kRead, device, channel);
}

bool PumpWorker::AfterRead() { return End(); }

void PumpWorker::Abandon() {
  MutexLock lock(mutex_);
  abandoned_ = true;
}

std::optional<PumpCall> PumpWorker::AbandonIfStuck(int64_t now_steady_ns,
                                                   const PumpOptions& options,
                                                   std::vector<abi::ProfPollInfo>* unread) {
  MutexLock lock(mutex_);
  if (call_.kind == PumpCall::kNone) return std::nullopt;
  int64_t allowed = options.stuck_after_ns;
  if (call_.kind == PumpCall::kPoll) allowed += options.poll_timeout_seconds * kNsPerSecond;
  if (now_steady_ns - call_.since_ns <= allowed) return std::nullopt;
  abandoned_ = true;
  stuck_in_ = call_;
  *unread = std::exchange(to_read_, {});
  unread->insert(unread->end(), backlog_.begin(), backlog_.end());
  return stuck_in_;
}

void PumpCore::StartWorker(const std::shared_ptr<PumpCore>& self) {
  auto worker = std::make_shared<PumpWorker>(self);
  // Without a thread CheckStuck tries again.
  if (!thread.Start("profd-pump", [worker] { worker->Run(); })) return;
  active = std::move(worker);
  ++threads_started;
}

}  // namespace profd::internal
