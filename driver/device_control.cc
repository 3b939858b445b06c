#include "driver/device_control.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/abi/channels.h"

namespace profd {
namespace {

std::string ChannelName(uint32_t channel) {
  const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
  return format != nullptr ? std::string(format->name) : fmt::format("{}", channel);
}

// The clock as seen by a job that may be left behind: reads 0 once the pump, and with it perhaps
// the clock, is gone.
class GatedClock final : public Clock {
 public:
  explicit GatedClock(ChannelTable& table) : table_(table) {}
  int64_t MonotonicRawNs() const override { return Read<int64_t>(&Clock::MonotonicRawNs); }
  int64_t SteadyNs() const override { return Read<int64_t>(&Clock::SteadyNs); }
  int64_t WallNs() const override { return Read<int64_t>(&Clock::WallNs); }
  uint64_t CpuCounter() const override { return Read<uint64_t>(&Clock::CpuCounter); }

 private:
  template <class T>
  T Read(T (Clock::*member)() const) const {
    T value = 0;
    table_.WithClock([&](const Clock& clock) { value = (clock.*member)(); });
    return value;
  }
  ChannelTable& table_;
};

// What a job needs and may still need when everything else is gone.
struct Context {
  uint32_t device;
  std::shared_ptr<const HalLibrary> hal;
  std::shared_ptr<ChannelTable> table;
  int64_t stop_deadline_ns;
};

// How long a call may wait for those before it: a stop may take 150 ms of each channel (driver-abi 7).
constexpr int64_t kQueueDeadlineNs = 30 * kNsPerSecond;
constexpr int64_t kStartDeadlineNs = 2 * kNsPerSecond;
// Of a question that starts and stops nothing.
constexpr int64_t kAnswerDeadlineNs = 1 * kNsPerSecond;
constexpr size_t kMaxDrained = 64 << 20;  // by one stop

// Of a driver that never ends to give what a run of ours has left. The start is then no better than it was.
constexpr size_t kMaxDiscarded = 64 << 20;
// A start, a stop and a fetch of every channel a device can have, and what else is requested of it.
constexpr GuardedThread::Options kQueue = {.queue = 4 * abi::kMaxChannels};

struct StartState {
  ChannelStart start;
  Status status = Unavailable("not started");
  int64_t start_host_ns = 0;
};

// A run that began after its request had timed out, and that the driver would not stop then.
Status StopForgotten(const Context& context, uint32_t channel) {
  if (!context.table->IsUnstopped(context.device, channel)) return Status::Ok();
  const int code = context.hal->ProfStop(context.device, channel);
  RETURN_IF_ERROR(StatusOfStopCode(code, context.device, ChannelName(channel)));
  context.table->SetUnstopped(context.device, channel, false);
  return Status::Ok();
}

Status Prepare(const Context& context, uint32_t channel, uint32_t epoch) {
  RETURN_IF_ERROR(StopForgotten(context, channel));
  RETURN_IF_ERROR(context.table->Discard(context.device, channel, kMaxDiscarded));
  return context.table->Add(context.device, channel, abi::FindChannelFormat(channel), epoch);
}

void RunStart(const Context& context, uint32_t epoch, StartState& state) {
  ChannelStart& start = state.start;
  state.status = Prepare(context, start.channel, epoch);
  if (!state.status.ok()) return;
  abi::ProfStartPara para{};
  para.channel_type = start.channel_type;
  para.sample_period = start.sample_period;
  para.real_time = abi::kProfReal;
  para.user_data = start.user_data.empty() ? nullptr : start.user_data.data();
  para.user_data_size = static_cast<uint32_t>(start.user_data.size());
  GatedClock clock(*context.table);
  int64_t before = clock.MonotonicRawNs();
  int code = context.hal->ProfStart(context.device, start.channel, &para);
  int64_t after = clock.MonotonicRawNs();
  state.status = StatusOfStartCode(code, context.device, ChannelName(start.channel));
  if (state.status.ok()) {
    context.table->SetOurs(context.device, start.channel, true);
    state.start_host_ns = before + (after - before) / 2;
    return;
  }
  // Another has it: what the driver holds now is theirs.
  if (state.status.code() == StatusCode::kResourceExhausted) {
    context.table->SetOurs(context.device, start.channel, false);
  }
  context.table->Remove(context.device, start.channel).Ignore();
}

// It runs, and its requester does not know. Nothing of it was read, for it was never opened.
void StopLate(const Context& context, uint32_t channel) {
  const int code = context.hal->ProfStop(context.device, channel);
  const bool stopped = StatusOfStopCode(code, context.device, ChannelName(channel)).ok();
  context.table->SetUnstopped(context.device, channel, !stopped);
  context.table->Remove(context.device, channel).Ignore();
}

// Reads what the driver has. It may use a part of a stop's time, so that waiting for a stuck reader never
// keeps prof_stop from being called.
Status Drain(const Context& context, uint32_t channel) {
  const Deadline deadline{context.table->NowSteadyNs() + context.stop_deadline_ns / 4};
  if (context.table->IsStuck(context.device)) return Unavailable("a read has not returned");
  return context.table->Drain(context.device, channel, kMaxDrained, deadline);
}

Status ReadErrorOf(const Context& context, uint32_t channel) {
  const int code = context.table->ReadError(context.device, channel);
  if (code == 0) return Status::Ok();
  return Unavailable(fmt::format("device {}: channel {} could not be read [prof_channel_read: {}]", context.device,
                                 ChannelName(channel), ProfCodeText(code)));
}

Status RunFetch(const Context& context, uint32_t channel) {
  uint32_t readable = 0;
  // Not all drivers have it, and it is a hint in any case: the read below finds out.
  context.hal->ProfDataFlush(context.device, channel, &readable);
  RETURN_IF_ERROR(Drain(context, channel));
  return ReadErrorOf(context, channel);
}

// The driver had more than the time or the bytes of a Drain allow.
bool IsMoreLeft(const Status& drained) {
  return drained.code() == StatusCode::kDeadlineExceeded || drained.code() == StatusCode::kResourceExhausted;
}

// Order of driver-abi 9.5. Only what follows prof_stop decides whether bytes were left behind.
StopOutcome RunStop(const Context& context, uint32_t channel, PumpAlarm& pump) {
  const Status fetched = RunFetch(context, channel);
  const Status unread = ReadErrorOf(context, channel);
  const uint64_t fetched_bytes = context.table->Counters(context.device, channel).bytes;
  // The driver may hand out the last records while prof_stop runs, and not after it (driver-abi 1.8, 7).
  pump.Wake();
  int code = context.hal->ProfStop(context.device, channel);
  StopOutcome outcome;
  outcome.status = StatusOfStopCode(code, context.device, ChannelName(channel));
  outcome.data_lost = code == abi::kProfStopDataLoss;
  Status drained = Drain(context, channel);
  // An error behind the stop means nothing by itself (driver-abi 9.5); "nothing left" settles the one before.
  if (!unread.ok() && context.table->ReadError(context.device, channel) != 0) outcome.unread = unread;
  // A driver may forget at the stop what was not read before it (driver-abi 1.8).
  if (IsMoreLeft(fetched) && context.table->Counters(context.device, channel).bytes == fetched_bytes) {
    outcome.unread = fetched;
  }
  Status removed = context.table->Remove(context.device, channel);
  for (const Status& status : {drained, removed}) {
    // A channel that was never registered is stopped all the same (cleaning up after a crash).
    if (outcome.status.ok() && status.code() != StatusCode::kNotFound) outcome.status = status;
  }
  if (!outcome.status.ok()) context.table->SetMayHold(context.device, channel);
  return outcome;
}

}  // namespace

DeviceControl::DeviceControl(uint32_t device, std::shared_ptr<const HalLibrary> hal,
                             ChannelPump& pump, const Clock& clock,
                             int64_t stop_deadline_ns)
    : device_(device),
      hal_(std::move(hal)),
      table_(pump.table()),
      pump_(pump.alarm()),
      clock_(clock),
      stop_deadline_ns_(stop_deadline_ns) {
  threads_[0] = std::make_unique<GuardedThread>(fmt::format("profd-npu{}", device), clock,
                                                kQueue);
}

DeviceControl::~DeviceControl() = default;

// A channel whose start or stop has not returned waits for it; its requester is notified.
GuardedThread& DeviceControl::ThreadFor(int channel) {
  GuardedThread& current = *threads_[current_];
  std::unique_ptr<GuardedThread>& other = threads_[1 - current_];
  if (other != nullptr && channel != kWholeDevice && other->StuckKey() == channel) return *other;
  const std::optional<int> hung = current.StuckKey();
  if (!hung.has_value() || *hung == kWholeDevice || *hung == channel) return current;
  if (other == nullptr) {
    other = std::make_unique<GuardedThread>(fmt::format("profd-npu{}+", device_), clock_,
                                            kQueue);
  }
  if (other->stuck()) return current;
  current_ = 1 - current_;
  return *other;
}

GuardedJob DeviceControl::JobOf(std::string_view verb, uint32_t channel) const {
  GuardedJob job;
  job.what = fmt::format("{} channel {} of device {}", verb, ChannelName(channel), device_);
  job.key = static_cast<int>(channel);
  return job;
}

void DeviceControl::Submit(GuardedJob job, int64_t run_limit_ns) {
  job.run_limit_ns = run_limit_ns;
  job.deadline_steady_ns = clock_.SteadyNs() + kQueueDeadlineNs;
  Enqueue(std::move(job));
}

void DeviceControl::Enqueue(GuardedJob job) {
  GuardedThread* thread = nullptr;
  {
    MutexLock lock(mutex_);
    thread = &ThreadFor(job.key);
  }
  thread->Submit(std::move(job)).Ignore();  // `done` got the error
}

void DeviceControl::CheckDeadlines(int64_t now_steady_ns) {
  std::array<GuardedThread*, 2> threads{};
  std::vector<GuardedJob> behind;
  {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < threads.size(); ++i) threads[i] = threads_[i].get();
    behind = threads_[current_]->TakeWaiting(now_steady_ns);
  }
  for (GuardedThread* thread : threads) {
    if (thread != nullptr) thread->CheckDeadlines(now_steady_ns);
  }
  // They have waited for nothing; their own time begins now.
  for (GuardedJob& job : behind) {
    job.deadline_steady_ns = now_steady_ns + kQueueDeadlineNs;
    Enqueue(std::move(job));
  }
}

Status DeviceControl::Health() const {
  MutexLock lock(mutex_);
  for (const auto& thread : threads_) {
    if (thread == nullptr) continue;
    if (Status health = thread->Health(); !health.ok()) return health;
  }
  return Status::Ok();
}

void DeviceControl::StartChannel(ChannelStart start, uint32_t epoch,
                                 std::function<void(const Status&, int64_t)> done) {
  auto state = std::make_shared<StartState>();
  uint32_t channel = start.channel;
  state->start = std::move(start);
  Context context{device_, hal_, table_, stop_deadline_ns_};
  GuardedJob job = JobOf("starting", channel);
  job.run = [context, epoch, state] { RunStart(context, epoch, *state); };
  // Nothing is read before the requester knows when the run began.
  job.done = [context, channel, pump = pump_, state,
              done = std::move(done)](const Status& guard) {
    if (!guard.ok()) return done(guard, 0);
    done(state->status, state->start_host_ns);
    if (!state->status.ok()) return;
    context.table->Open(context.device, channel);
    pump->HaveRead(context.device, channel);
  };
  job.late = [context, state, channel] {
    if (state->status.ok()) StopLate(context, channel);
  };
  Submit(std::move(job), kStartDeadlineNs);
}

void DeviceControl::StopChannel(uint32_t channel, std::function<void(const StopOutcome&)> done) {
  auto outcome = std::make_shared<StopOutcome>();
  Context context{device_, hal_, table_, stop_deadline_ns_};
  GuardedJob job = JobOf("stopping", channel);
  job.run = [context, channel, outcome, pump = pump_] {
    *outcome = RunStop(context, channel, *pump);
  };
  job.done = [outcome, done = std::move(done)](const Status& guard) {
    done(guard.ok() ? *outcome : StopOutcome{guard, false, Status::Ok()});
  };
  Submit(std::move(job), stop_deadline_ns_);
}

void DeviceControl::FetchChannel(uint32_t channel, std::function<void(const Status&)> done) {
  auto result = std::make_shared<Status>();
  Context context{device_, hal_, table_, stop_deadline_ns_};
  GuardedJob job = JobOf("reading", channel);
  job.run = [context, channel, result] {
    *result = RunFetch(context, channel);
  };
  job.done = [result, done = std::move(done)](const Status& guard) {
    done(guard.ok() ? *result : guard);
  };
  Submit(std::move(job), stop_deadline_ns_);
}

void DeviceControl::CorrelateClock(std::function<void(const Result<ClockPair>&)> done) {
  auto ask = [context = Context{device_, hal_, table_, stop_deadline_ns_}] {
    return CorrelateDeviceClock(*context.hal, context.device, GatedClock(*context.table));
  };
  Submit(AskingJob<ClockPair>(fmt::format("reading the clock of device {}", device_), ask, std::move(done)),
         kAnswerDeadlineNs);
}

void DeviceControl::QueryStatus(std::function<void(const Result<int>&)> done) {
  auto ask = [context = Context{device_, hal_, table_, stop_deadline_ns_}]() -> Result<int> {
    int status = -1;
    // An error says nothing about the device; only a status does (driver-abi 1.3).
    return context.hal->GetDeviceStatus(context.device, &status) == abi::kDrvErrorNone ? status : -1;
  };
  Submit(AskingJob<int>(fmt::format("asking the status of device {}", device_), ask, std::move(done)),
         kAnswerDeadlineNs);
}

}  // namespace profd
