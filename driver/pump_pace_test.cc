#include "driver/pump_pace.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace profd::internal
