#include "export/operators/overlap.h"

#include <gtest/gtest.h>

namespace profd::exporting::operators {
namespace {

TEST(OverlapTest, AdjacentRangesAreOne) {
  const Overlap made = MakeOverlap({{20, 30}, {0, 10}, {10, 15}, {25, 28}}, {}, std::nullopt);
  EXPECT_EQ(made[OverlapKind::kComputing], (Intervals{{0, 15}, {20, 30}}));
  EXPECT_EQ(made[OverlapKind::kFree], (Intervals{{15, 20}}));
  EXPECT_TRUE(made[OverlapKind::kCommunication].empty());
}

TEST(OverlapTest, CommunicationIsCutByComputing) {
  const Overlap made = MakeOverlap({{5, 10}, {15, 20}, {38, 50}}, {{0, 18}, {30, 40}}, std::nullopt);
  EXPECT_EQ(made[OverlapKind::kCommunication], (Intervals{{0, 18}, {30, 40}}));
  EXPECT_EQ(made[OverlapKind::kNotOverlapped], (Intervals{{0, 5}, {10, 15}, {30, 38}}));
  EXPECT_EQ(made[OverlapKind::kFree], (Intervals{{20, 30}}));
}

TEST(OverlapTest, OneComputationCoversSeveralCommunications) {
  const Overlap made = MakeOverlap({{0, 100}}, {{10, 20}, {30, 40}, {90, 110}}, std::nullopt);
  EXPECT_EQ(made[OverlapKind::kNotOverlapped], (Intervals{{100, 110}}));
}

TEST(OverlapTest, OtherTasksBoundTheFreeTime) {
  const Overlap made = MakeOverlap({{5, 10}}, {}, Interval{0, 30});
  EXPECT_EQ(made[OverlapKind::kFree], (Intervals{{0, 5}, {10, 30}}));
  EXPECT_EQ(MakeOverlap({}, {}, Interval{3, 9})[OverlapKind::kFree], (Intervals{{3, 9}}));
}

TEST(OverlapTest, RangesWithoutLengthAreLeftOut) {
  const Overlap made = MakeOverlap({{5, 5}}, {{7, 7}}, Interval{5, 5});
  EXPECT_EQ(made[OverlapKind::kFree], (Intervals{{5, 7}}));
  for (OverlapKind kind : {OverlapKind::kComputing, OverlapKind::kCommunication, OverlapKind::kNotOverlapped}) {
    EXPECT_TRUE(made[kind].empty());
  }
  EXPECT_TRUE(MakeOverlap({}, {}, Interval{4, 4})[OverlapKind::kFree].empty());
}

TEST(OverlapTest, OfTwoDevicesIsWhatEitherDid) {
  const Overlap made = Merged(MakeOverlap({{0, 10}}, {{30, 40}}, std::nullopt), MakeOverlap({{20, 35}}, {}, Interval{5, 50}));
  EXPECT_EQ(made[OverlapKind::kComputing], (Intervals{{0, 10}, {20, 35}}));
  EXPECT_EQ(made[OverlapKind::kCommunication], (Intervals{{30, 40}}));
  EXPECT_EQ(made[OverlapKind::kNotOverlapped], (Intervals{{35, 40}}));
  EXPECT_EQ(made[OverlapKind::kFree], (Intervals{{10, 20}, {40, 50}}));
}

TEST(OverlapTest, TheTimeBetweenTwoRecordingsIsNotFree) {
  const Overlap made = Merged(MakeOverlap({{100, 110}, {115, 120}}, {}, std::nullopt), MakeOverlap({{0, 10}}, {}, Interval{0, 15}));
  EXPECT_EQ(made[OverlapKind::kComputing], (Intervals{{0, 10}, {100, 110}, {115, 120}}));
  EXPECT_EQ(made[OverlapKind::kFree], (Intervals{{10, 15}, {110, 115}}));
}

}  // namespace
}  // namespace profd::exporting::operators
