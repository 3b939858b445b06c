#include "export/trace/slices.h"

#include <gtest/gtest.h>

namespace profd::exporting {
namespace {

const DumpInfo kDump;

std::vector<Slice> SlicesOfIteration(int64_t t_ns, int64_t dur_ns, std::vector<Event::Arg> parts) {
  return SlicesOf({EventKind::kIteration, t_ns, dur_ns, 0, 0, 1, "Iteration 3", 3, std::move(parts)}, kDump);
}

TEST(SlicesTest, AnIterationWithoutItsPartsIsOneSlice) {
  Event event{EventKind::kIteration, 5000, 2000, 0, 0, 4294967295, "Iteration 3", 3, {}};
  std::vector<Slice> slices = SlicesOf(event, kDump);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].thread, "Model ID:4294967295");
  EXPECT_EQ(slices[0].tid, 69999);  // the vendor's: -1 + 70000
  EXPECT_EQ(slices[0].texts[0].second, "N/A");
}

TEST(SlicesTest, StepsOfADeviceAreIterationsOfTheProcesssAreNot) {
  Event event{EventKind::kDeviceStep, 5000, 2000, 1, 0, 4294967295, "Step 3", 3, {}};
  Slice slice = SlicesOf(event, kDump)[0];
  EXPECT_EQ(slice.name, "Iteration 3");
  EXPECT_EQ(slice.process, &kStepTraceProcess);
  EXPECT_EQ(slice.thread, "Model ID:4294967295");  // the vendor's
  EXPECT_EQ(slice.track, "Steps");
  event = {EventKind::kStep, 5000, 2000, -1, 7, 8, "Step 3", 3, {}};
  slice = SlicesOf(event, kDump)[0];
  EXPECT_EQ(slice.name, "Step 3");
  EXPECT_EQ(slice.process, &kMarksProcess);
  EXPECT_EQ(slice.track, "Steps");
}

TEST(SlicesTest, RowsSayWhichRankAndProgramTheyAreOf) {
  DumpInfo dump;
  dump.manifest.emplace().processes = {{7, 1, true, {0}, "train.py"}, {9, 2, true, {1}, ""}};
  Event event{EventKind::kStep, 5000, 2000, -1, 7, 8, "Step 3", 3, {}};
  EXPECT_EQ(SlicesOf(event, dump)[0].thread, "rank 1, train.py, pid 7: steps");
  event.kind = EventKind::kRange;
  EXPECT_EQ(SlicesOf(event, dump)[0].thread, "rank 1, train.py, pid 7: thread 8");
  event.pid = 9;
  EXPECT_EQ(SlicesOf(event, dump)[0].thread, "rank 2, pid 9: thread 8");
  event.pid = 10;
  event.rank = 5;  // as the mark says
  EXPECT_EQ(SlicesOf(event, dump)[0].thread, "rank 5, pid 10: thread 8");
}

// docs/dumps.md: a thread is a number in the process's own pid namespace.
TEST(SlicesTest, ThreadsOfProcessesWithTheSameNumberHaveRowsOfTheirOwn) {
  DumpInfo dump;
  dump.manifest.emplace().processes = {{7, 0, true, {0}, "train.py"}, {9, 1, true, {1}, "train.py"}};
  Event event{EventKind::kRange, 5000, 2000, -1, 7, 1, "forward", 0, {}};
  EXPECT_EQ(SlicesOf(event, dump)[0].tid, 1);
  event.pid = 9;
  const int64_t second = SlicesOf(event, dump)[0].tid;
  EXPECT_NE(second, 1);
  event.kind = EventKind::kMark;
  EXPECT_EQ(SlicesOf(event, dump)[0].tid, second) << "of one thread";
  event.tid = 2;
  EXPECT_NE(SlicesOf(event, dump)[0].tid, second);
}

TEST(SlicesTest, RangesThatDoNotNestHaveRowsOfTheirOwn) {
  Event event{EventKind::kRange, 5000, 2000, -1, 7, 8, "all-reduce", 0, {}};
  event.domain = "communication";
  const Slice nested = SlicesOf(event, kDump)[0];
  EXPECT_EQ(nested.track, "thread 8");
  EXPECT_EQ(nested.category, "communication");
  event.lane = 0;
  const Slice first = SlicesOf(event, kDump)[0];
  EXPECT_EQ(first.track, "Ranges: communication");
  event.lane = 1;
  const Slice second = SlicesOf(event, kDump)[0];
  EXPECT_EQ(second.track, "Ranges: communication (2)");
  EXPECT_NE(first.tid, second.tid);
  EXPECT_GE(first.tid, 1 << 29);
  EXPECT_LT(first.tid, 1 << 30);
  event.pid = 9;
  EXPECT_NE(SlicesOf(event, kDump)[0].tid, second.tid);
  event.domain.clear();
  EXPECT_EQ(SlicesOf(event, kDump)[0].track, "Ranges (2)");
}

TEST(SlicesTest, PartsThatLieOutsideAreLeftOut) {
  EXPECT_EQ(SlicesOfIteration(5000, 2000, {{"FP Start", 1500}, {"BP End", 1000}}).size(), 1U);
}

TEST(SlicesTest, ReduceAndGetNext) {
  const std::vector<Slice> slices =
      SlicesOfIteration(0, 9000, {{"Reduce Start", 1000}, {"Reduce End", 3000}, {"Reduce End", 3500}, {"Reduce Start", 4000},
                                  {"Reduce End", 4500}, {"GetNext Start", 0}, {"GetNext End", 500}});
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[1].name, "Reduce_3_0");
  EXPECT_EQ(slices[1].dur_ns, 2000);
  EXPECT_EQ(slices[1].texts[0], std::make_pair(std::string("Reduce Start 0"), std::string("1.000")));
  EXPECT_EQ(slices[2].name, "Reduce_3_1");
  EXPECT_EQ(slices[3].name, "GetNext");
  EXPECT_EQ(slices[3].numbers[0].second, 0.5);
}

TEST(SlicesTest, OffsetsThatAreNotNumbersAreHarmless) {
  for (const Slice& slice : SlicesOfIteration(0, 9000, {{"FP Start", 1e300}, {"BP End", -1e300}, {"Reduce Start", 5}, {"Reduce End", 1}})) {
    EXPECT_GE(slice.dur_ns, 0);
  }
}

TEST(SlicesTest, LossesWithoutALengthAreInstants) {
  Event event{EventKind::kLoss, 5, 0, 0, 0, 0, "hbm", 0, {}};
  EXPECT_EQ(SlicesOf(event, kDump)[0].kind, Slice::Kind::kInstant);
  EXPECT_TRUE(SlicesOf(event, kDump)[0].integers.empty());
}

}  // namespace
}  // namespace profd::exporting
