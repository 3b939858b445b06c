#include "driver/device_control.h"

#include <fmt/format.h>

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
};

constexpr size_t kMaxDiscarded = 64 << 20;

// What the driver still holds of a run of ours that is over must not begin the next. Reads until there is no
// more and forgets it; how many bytes. Of a driver that never ends no more than kMaxDiscarded: the start is
// then no better than it was.
size_t Discard(const Context& context, uint32_t channel) {
  if (!context.table->MayHoldOurs(context.device, channel)) return 0;
  std::vector<char> scratch(64 * 1024);
  size_t read = 0;
  while (read < kMaxDiscarded) {
    const auto room = static_cast<uint32_t>(scratch.size());
    const int got = context.hal->ProfRead(context.device, channel, scratch.data(), room);
    if (got <= 0 || static_cast<uint32_t>(got) > room) break;
    read += static_cast<size_t>(got);
  }
  return read;
}

struct StartState {
  ChannelStart start;
  Status status = Unavailable("not started");
  int64_t start_host_ns = 0;
};

void RunStart(const Context& context, const std::function<void(uint32_t, uint32_t)>& have_read,
              uint32_t epoch, StartState& state) {
  ChannelStart& start = state.start;
  const size_t stale = Discard(context, start.channel);
  state.status = context.table->Add(context.device, start.channel,
                                    abi::FindChannelFormat(start.channel), epoch);
  if (!state.status.ok()) return;
  context.table->CountStale(context.device, start.channel, stale);
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
  context.table->SetStarted(context.device, start.channel, state.status.ok());
  if (state.status.ok()) {
    have_read(context.device, start.channel);
    state.start_host_ns = before + (after - before) / 2;
  } else {
    context.table->Remove(context.device, start.channel).Ignore();
  }
}

// Order of driver-abi 9.5. Only what comes after prof_stop decides whether bytes were left behind.
StopOutcome RunStop(const Context& context, uint32_t channel, const DeviceControlOptions& options) {
  ChannelTable& table = *context.table;
  // The reads may use a part of the time each, so that waiting for a stuck reader never keeps
  // prof_stop from being called.
  auto drain = [&] {
    Deadline deadline{table.NowSteadyNs() + options.stop_deadline_ns / 4};
    if (table.IsStuck(context.device)) return Unavailable("a read has not returned");
    return table.Drain(context.device, channel, options.drain_bytes, deadline);
  };
  uint32_t readable = 0;
  // Not all drivers have it, and it is a hint in any case: the read below finds out.
  context.hal->ProfDataFlush(context.device, channel, &readable);
  drain().Ignore();
  int code = context.hal->ProfStop(context.device, channel);
  StopOutcome outcome;
  outcome.status = StatusOfStopCode(code, context.device, ChannelName(channel));
  outcome.data_lost = code == abi::kProfStopDataLoss;
  Status drained = drain();
  Status removed = table.Remove(context.device, channel);
  for (const Status& status : {drained, removed}) {
    // A channel that was never registered is stopped all the same (cleaning up after a crash).
    if (outcome.status.ok() && status.code() != StatusCode::kNotFound) outcome.status = status;
  }
  return outcome;
}

}  // namespace

DeviceControl::DeviceControl(uint32_t device, std::shared_ptr<const HalLibrary> hal,
                             ChannelPump& pump, const Clock& clock,
                             const DeviceControlOptions& options)
    : device_(device),
      hal_(std::move(hal)),
      table_(pump.table()),
      have_read_(pump.reader()),
      clock_(clock),
      options_(options),
      thread_(fmt::format("profd-npu{}", device), clock) {}

DeviceControl::~DeviceControl() = default;

void DeviceControl::StartChannel(ChannelStart start, uint32_t epoch,
                                 std::function<void(const Status&, int64_t)> done) {
  auto state = std::make_shared<StartState>();
  uint32_t channel = start.channel;
  state->start = std::move(start);
  Context context{device_, hal_, table_};
  GuardedJob job;
  job.what = fmt::format("starting channel {} of device {}", ChannelName(channel), device_);
  job.deadline_steady_ns = clock_.SteadyNs() + options_.start_deadline_ns;
  job.run = [context, have_read = have_read_, epoch, state] {
    RunStart(context, have_read, epoch, *state);
  };
  job.done = [state, done = std::move(done)](const Status& guard) {
    if (!guard.ok()) return done(guard, 0);
    done(state->status, state->start_host_ns);
  };
  // Nobody knows that it runs: stop it.
  job.late = [context, state, channel] {
    if (!state->status.ok()) return;
    context.hal->ProfStop(context.device, channel);
    context.table->Remove(context.device, channel).Ignore();
  };
  thread_.Submit(std::move(job)).Ignore();  // `done` has been told
}

void DeviceControl::StopChannel(uint32_t channel, std::function<void(const StopOutcome&)> done) {
  auto outcome = std::make_shared<StopOutcome>();
  Context context{device_, hal_, table_};
  GuardedJob job;
  job.what = fmt::format("stopping channel {} of device {}", ChannelName(channel), device_);
  job.deadline_steady_ns = clock_.SteadyNs() + options_.stop_deadline_ns;
  job.run = [context, channel, outcome, options = options_] {
    *outcome = RunStop(context, channel, options);
  };
  job.done = [outcome, done = std::move(done)](const Status& guard) {
    done(guard.ok() ? *outcome : StopOutcome{guard, false});
  };
  thread_.Submit(std::move(job)).Ignore();
}

void DeviceControl::CorrelateClock(std::function<void(const Result<ClockPair>&)> done) {
  auto result = std::make_shared<Result<ClockPair>>(ClockPair{});
  Context context{device_, hal_, table_};
  GuardedJob job;
  job.what = fmt::format("reading the clock of device {}", device_);
  job.deadline_steady_ns = clock_.SteadyNs() + options_.clock_deadline_ns;
  job.run = [context, result] {
    *result = CorrelateDeviceClock(*context.hal, context.device, GatedClock(*context.table));
  };
  job.done = [result, done = std::move(done)](const Status& guard) {
    done(guard.ok() ? *result : Result<ClockPair>(guard));
  };
  thread_.Submit(std::move(job)).Ignore();
}

void DeviceControl::QueryStatus(std::function<void(const Result<int>&)> done) {
  auto result = std::make_shared<Result<int>>(-1);
  Context context{device_, hal_, table_};
  GuardedJob job;
  job.what = fmt::format("asking the status of device {}", device_);
  job.deadline_steady_ns = clock_.SteadyNs() + options_.status_deadline_ns;
  job.run = [context, result] {
    int status = -1;
    int code = context.hal->GetDeviceStatus(context.device, &status);
    if (code == abi::kDrvErrorNone)
      *result = status;
    else if (code != abi::kDrvErrorNotSupport)
      *result = StatusOfDrvCode(code, fmt::format("status of device {}", context.device));
  };
  job.done = [result, done = std::move(done)](const Status& guard) {
    done(guard.ok() ? *result : Result<int>(guard));
  };
  thread_.Submit(std::move(job)).Ignore();
}

}  // namespace profd
