#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/testing/eventually.h"
#include "driver/device_control.h"
#include "driver/testing/recording_sink.h"
#include "driver/testing/scripted_hal.h"

namespace profd {
namespace {

using testing::Call;

// driver-abi 1.8, 7: the driver hands out the last records while prof_stop runs.
TEST(DeviceStop, ThePumpPollsWhileTheDriverStops) {
  SystemClock clock;
  BlockPool pool(4 << 20);
  testing::RecordingSink sink;
  testing::ScriptedHal hal;
  PumpOptions options;
  options.poll_timeout_seconds = 0;
  options.min_poll_interval_ns = 3600 * kNsPerSecond;  // rounds begin when it is woken only
  ChannelPump pump(hal.Library(), clock, pool, sink, options);
  DeviceControl control(3, hal.Library(), pump, clock);

  std::promise<Status> started;
  control.StartChannel({.channel = abi::kChannelHbm, .user_data = {}}, 1,
                       [&](const Status& status, int64_t) { started.set_value(status); });
  ASSERT_TRUE(started.get_future().get().ok());
  // One round because it was woken, and one because that was before its first pause.
  while (pump.stats().polls < 2) std::this_thread::yield();

  hal.Hold(Call::kStop);
  std::promise<StopOutcome> stopped;
  control.StopChannel(abi::kChannelHbm, [&](const StopOutcome& outcome) { stopped.set_value(outcome); });
  hal.WaitUntilHeld(1);
  EXPECT_TRUE(Eventually([&pump] { return pump.stats().polls >= 3; }));
  hal.Release(Call::kStop);
  EXPECT_TRUE(stopped.get_future().get().status.ok());
}

// driver-abi 1.8: nothing is read after the stop, so a driver may forget then what was not read before.
TEST(DeviceStop, WhatTheDriverForgetsAtTheStopIsReported) {
  ManualClock clock;  // the bytes are to be the limit, not the time
  BlockPool pool(256 << 20);
  testing::RecordingSink sink;
  testing::ScriptedHal hal;
  PumpOptions pump_options;
  pump_options.poll_timeout_seconds = 0;
  ChannelPump pump(hal.Library(), clock, pool, sink, pump_options);
  DeviceControl control(3, hal.Library(), pump, clock);
  hal.Hold(Call::kPoll);  // nothing else reads
  const testing::Bytes piece(size_t{24} << 10);
  constexpr size_t kMoreThanIsDrained = (size_t{64} << 20) / (size_t{24} << 10) + 100;  // pieces
  for (const bool forgets : {false, true}) {
    hal.set_forgets_at_stop(forgets);
    std::promise<Status> started;
    control.StartChannel({.channel = abi::kChannelHbm, .user_data = {}}, 1,
                         [&](const Status& status, int64_t) { started.set_value(status); });
    ASSERT_TRUE(started.get_future().get().ok());
    hal.WaitUntilHeld(1);
    for (size_t i = 0; i < kMoreThanIsDrained; ++i) hal.Data(3, abi::kChannelHbm, piece);
    std::promise<StopOutcome> stopped;
    control.StopChannel(abi::kChannelHbm, [&](const StopOutcome& outcome) { stopped.set_value(outcome); });
    const StopOutcome outcome = stopped.get_future().get();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_EQ(outcome.unread.ok(), !forgets) << outcome.unread.message();
  }
  hal.Release(Call::kPoll);
}

}  // namespace
}  // namespace profd
