#include "export/trace/slices.h"

#include <gtest/gtest.h>

namespace profd::exporting {
namespace {

TEST(SlicesTest, AnIterationWithoutItsPartsIsOneSlice) {
  Event event{EventKind::kIteration, 5000, 2000, 0, 0, 4294967295, "Iteration 3", 3, {}};
  std::vector<Slice> slices = SlicesOf(event);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].thread, "Model ID:4294967295");
  EXPECT_EQ(slices[0].tid, 69999);  // the vendor's: -1 + 70000
  EXPECT_EQ(slices[0].texts[0].second, "N/A");
}

TEST(SlicesTest, StepsOfADeviceAreIterationsOfTheProcesssAreNot) {
  Event event{EventKind::kStep, 5000, 2000, 1, 0, 4294967295, "Step 3", 3, {}};
  EXPECT_EQ(SlicesOf(event)[0].name, "Iteration 3");
  EXPECT_EQ(SlicesOf(event)[0].process, &kStepTraceProcess);
  event.device = -1;
  EXPECT_EQ(SlicesOf(event)[0].name, "Step 3");
  EXPECT_EQ(SlicesOf(event)[0].process, &kMarksProcess);
}

TEST(SlicesTest, PartsThatLieOutsideAreLeftOut) {
  Event event{EventKind::kIteration,
              5000,
              2000,
              0,
              0,
              1,
              "Iteration 3",
              3,
              {{"FP Start", 1500}, {"BP End", 1000}}};
  EXPECT_EQ(SlicesOf(event).size(), 1U);
}

TEST(SlicesTest, ReduceAndGetNext) {
  Event event{EventKind::kIteration,
              0,
              9000,
              0,
              0,
              1,
              "Iteration 3",
              3,
              {{"Reduce Start", 1000},
               {"Reduce End", 3000},
               {"Reduce End", 3500},
               {"Reduce Start", 4000},
               {"Reduce End", 4500},
               {"GetNext Start", 0},
               {"GetNext End", 500}}};
  std::vector<Slice> slices = SlicesOf(event);
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[1].name, "Reduce_3_0");
  EXPECT_EQ(slices[1].dur_ns, 2000);
  EXPECT_EQ(slices[1].texts[0],
            std::make_pair(std::string("Reduce Start 0"), std::string("1.000")));
  EXPECT_EQ(slices[2].name, "Reduce_3_1");
  EXPECT_EQ(slices[3].name, "GetNext");
  EXPECT_EQ(slices[3].numbers[0].second, 0.5);
}

TEST(SlicesTest, OffsetsThatAreNoNumbersAreHarmless) {
  Event event{EventKind::kIteration,
              0,
              9000,
              0,
              0,
              1,
              "",
              3,
              {{"FP Start", 1e300}, {"BP End", -1e300}, {"Reduce Start", 5}, {"Reduce End", 1}}};
  std::vector<Slice> slices = SlicesOf(event);
  for (const Slice& slice : slices) EXPECT_GE(slice.dur_ns, 0);
}

TEST(SlicesTest, LossesWithoutALengthAreInstants) {
  Event event{EventKind::kLoss, 5, 0, 0, 0, 0, "hbm", 0, {}};
  EXPECT_EQ(SlicesOf(event)[0].kind, Slice::Kind::kInstant);
  EXPECT_TRUE(SlicesOf(event)[0].integers.empty());
}

}  // namespace
}  // namespace profd::exporting
