#include "driver/pump_pace.h"

#include <gtest/gtest.h>

#include <atomic>

#include "driver/testing/recording_sink.h"
#include "driver/testing/scripted_hal.h"

namespace profd::internal {
namespace {

constexpr int64_t kClose = 50 * kNsPerMs;
constexpr int64_t kRelaxed = 200 * kNsPerMs;
constexpr int64_t kNow = 1000 * kNsPerSecond;

TEST(PumpPace, RoundsAreFurtherApartWithoutAWatcher) {
  PumpPace pace(kClose, kRelaxed);
  pace.BeginRound(kNow);
  EXPECT_EQ(pace.EndRound(kNow + 7, false), kRelaxed - 7);
  pace.BeginRound(kNow + kRelaxed);
  EXPECT_EQ(pace.EndRound(kNow + kRelaxed + 7, true), kClose - 7);
}

TEST(PumpPace, ARoundBeginsWithItsFirstPoll) {
  PumpPace pace(kClose, kRelaxed);
  pace.BeginRound(kNow);
  pace.BeginRound(kNow + 5);
  EXPECT_EQ(pace.EndRound(kNow + 10, true), kClose - 10);
  pace.BeginRound(kNow + kClose);
  EXPECT_EQ(pace.EndRound(kNow + kClose + 10, true), kClose - 10);
}

TEST(PumpPace, ARequestKeepsRoundsCloseForAWhile) {
  PumpPace pace(kClose, kRelaxed);
  pace.Hurry(kNow);
  pace.BeginRound(kNow + PumpPace::kHurryNs - 1);
  EXPECT_EQ(pace.EndRound(kNow + PumpPace::kHurryNs - 1, false), kClose);
  pace.BeginRound(kNow + PumpPace::kHurryNs);
  EXPECT_EQ(pace.EndRound(kNow + PumpPace::kHurryNs, false), kRelaxed);
}

TEST(PumpPace, WithoutALongerIntervalThereIsOne) {
  for (int64_t relaxed : {int64_t{0}, kClose}) {
    PumpPace pace(kClose, relaxed);
    pace.BeginRound(kNow);
    EXPECT_EQ(pace.EndRound(kNow, false), kClose);
  }
}

TEST(PumpPace, ARoundIsOverWhenEveryChannelHadItsTurn) {
  PumpPace pace(kClose, kRelaxed);
  pace.BeginRound(kNow);
  pace.NoteVisit();
  EXPECT_FALSE(pace.HadAll(2));
  pace.NoteVisit();
  EXPECT_TRUE(pace.HadAll(2));
  pace.EndRound(kNow, false);
  pace.BeginRound(kNow + 1);
  EXPECT_FALSE(pace.HadAll(2));
}

class MovedClock final : public Clock {
 public:
  int64_t MonotonicRawNs() const override { return real_.MonotonicRawNs(); }
  int64_t SteadyNs() const override { return real_.SteadyNs() + ahead_ns; }
  int64_t WallNs() const override { return real_.WallNs(); }
  uint64_t CpuCounter() const override { return real_.CpuCounter(); }
  std::atomic<int64_t> ahead_ns{0};

 private:
  SystemClock real_;
};

// Where it did not follow, the second or third piece would wait for an hour.
TEST(ChannelPumpPace, TheLongerIntervalFollowsWhileThePumpRuns) {
  MovedClock clock;
  BlockPool pool(4 << 20);
  testing::RecordingSink sink(false);
  testing::ScriptedHal hal;
  PumpOptions options;
  options.poll_timeout_seconds = 0;
  options.min_poll_interval_ns = 1000;
  options.relaxed_poll_interval_ns = 3600 * kNsPerSecond;
  ChannelPump pump(hal.Library(), clock, pool, sink, options);
  pump.SetRelaxedPollInterval(2000);
  ASSERT_TRUE(testing::StartReading(pump, 0, abi::kChannelAicore, nullptr, 1).ok());
  for (size_t piece = 1; piece <= 20; ++piece) {
    clock.ahead_ns += 2 * PumpPace::kHurryNs;
    hal.Data(0, abi::kChannelAicore, testing::Bytes(8));
    sink.WaitForBytes(8 * piece);
  }
}

}  // namespace
}  // namespace profd::internal
