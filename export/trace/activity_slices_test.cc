// Lanes, texts and flows of hand-made rows.
#include "export/trace/activity_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace profd::exporting {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class ActivitySlicesTest : public ::testing::Test, protected BatchSink {
 protected:
  ActivitySlicesTest() {
    dump_.manifest.emplace().processes = {{77, 0, true, {0}, "train.py"}, {78, 1, true, {0, 1}, "train.py"}};
  }

  // The slice of one row.
  template <typename... Cells>
  std::optional<Slice> Of(TableId id, int device, int64_t t_ns, Cells... cells) {
    TimeWindow window;
    BatchBuilder builder(TableOf(id), device, window, *this);
    builder.Add(t_ns, cells...);
    builder.Flush();
    return std::move(slice_);
  }
  std::optional<Slice> Marker(int device, int64_t t_ns, const char* name, int64_t kind, int64_t id, int64_t of_thread = 5) {
    const int64_t stream = device < 0 ? -1 : 4;
    const int64_t thread = device < 0 ? of_thread : 0;
    return Of(TableId::kMarker, device, t_ns, strings_.Intern(name), strings_.Intern(*name == 0 ? "" : "user"),
              int64_t{device >= 0}, kind, id, stream, 77, 0, thread);
  }
  void Take(const Batch& batch) override { slice_ = slices_.Of(batch, 0); }

  DumpInfo dump_;
  Strings strings_;
  ActivitySlices slices_{dump_, strings_};
  std::optional<Slice> slice_;
};

TEST_F(ActivitySlicesTest, AKernelIsOnTheLaneOfItsStream) {
  const std::optional<Slice> slice = Of(TableId::kKernel, 0, 1000, strings_.Intern("MatMul"),
                                        strings_.Intern("KERNEL_AICORE"), 250, 5, 77, 0, 43, 9);
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->kind, Slice::Kind::kSlice);
  EXPECT_EQ(slice->process->name, "Ascend Hardware");
  EXPECT_EQ(slice->tid, 5);
  EXPECT_EQ(slice->thread, "Stream 5");
  EXPECT_EQ(slice->track, "Stream 5");
  EXPECT_EQ(slice->name, "MatMul");
  EXPECT_EQ(slice->t_ns, 1000);
  EXPECT_EQ(slice->dur_ns, 250);
  EXPECT_EQ(slice->flow_end, Slice::FlowEnd::kTo);
  EXPECT_EQ(slice->flow, "77_9");
  EXPECT_THAT(slice->integers, ElementsAre(Pair("rank", 0), Pair("pid", 77), Pair("stream", 5), Pair("correlation", 9)));
  EXPECT_THAT(slice->texts, ElementsAre(Pair("type", "KERNEL_AICORE")));
}

// Stream 5 of the second process on a device is another one.
TEST_F(ActivitySlicesTest, ProcessesOfADeviceHaveLanesOfTheirOwn) {
  const int64_t name = strings_.Intern("MatMul");
  const std::optional<Slice> first = Of(TableId::kKernel, 0, 1, name, name, 1, 5, 77, 0, 43, 0);
  const std::optional<Slice> second = Of(TableId::kKernel, 0, 1, name, name, 1, 5, 78, 1, 43, 0);
  const std::optional<Slice> alone = Of(TableId::kKernel, 1, 1, name, name, 1, 5, 78, 1, 43, 0);
  EXPECT_EQ(first->tid, 5);
  EXPECT_EQ(second->thread, "Stream 5 (rank 1, train.py, pid 78)");
  EXPECT_EQ(second->tid, 5 + (1 << 22));
  EXPECT_EQ(alone->thread, "Stream 5");
  EXPECT_EQ(alone->tid, 5);
  EXPECT_EQ(first->flow_end, Slice::FlowEnd::kNone) << "correlation 0 is none";
}

TEST_F(ActivitySlicesTest, CommunicationHasItsGroup) {
  const std::optional<Slice> slice =
      Of(TableId::kCommunication, 1, 1, strings_.Intern("allReduce"), strings_.Intern("dp"), strings_.Intern("ring"), 8,
         6, 78, 1, 3, 1024, 4, 2.5);
  EXPECT_EQ(slice->process->name, "Communication");
  EXPECT_EQ(slice->thread, "Communication, Stream 6");
  EXPECT_EQ(slice->flow_end, Slice::FlowEnd::kTo);
  EXPECT_THAT(slice->texts, ElementsAre(Pair("communicator", "dp"), Pair("algorithm", "ring")));
  EXPECT_THAT(slice->integers, ElementsAre(Pair("rank", 1), Pair("pid", 78), Pair("stream", 6), Pair("correlation", 3),
                                           Pair("count", 1024)));
}

TEST_F(ActivitySlicesTest, ACallIsOnTheLaneOfItsThread) {
  const std::optional<Slice> slice = Of(TableId::kApi, -1, 5, strings_.Intern("aclnnMatmul"), 2, 70, 78, 1, 43, 9);
  EXPECT_EQ(slice->process->name, "CANN");
  EXPECT_EQ(slice->thread, "rank 1, train.py, pid 78: thread 43");
  EXPECT_EQ(slice->track, "API calls of thread 43");
  EXPECT_EQ(slice->flow_end, Slice::FlowEnd::kFrom);
  EXPECT_EQ(slice->flow, "78_9");
  EXPECT_THAT(slice->texts, ElementsAre(Pair("level", "node")));
  const std::optional<Slice> other = Of(TableId::kApi, -1, 5, strings_.Intern("x"), 2, 70, 77, 0, 43, 9);
  EXPECT_NE(other->tid, slice->tid) << "thread 43 of another process";
}

// Reported as they end; what launches nothing has the number of what its thread launched before.
TEST_F(ActivitySlicesTest, AnArrowLeavesOnlyFromCallsThatLaunched) {
  const auto flow_end = [this](int64_t begin, int64_t length, int64_t thread, int64_t correlation) {
    return Of(TableId::kApi, -1, begin, strings_.Intern("x"), 2, length, 78, 1, thread, correlation)->flow_end;
  };
  EXPECT_EQ(flow_end(10, 10, 43, 9), Slice::FlowEnd::kFrom);   // the runtime's launch
  EXPECT_EQ(flow_end(5, 20, 43, 9), Slice::FlowEnd::kAround);  // the operator around it
  EXPECT_EQ(flow_end(30, 10, 43, 9), Slice::FlowEnd::kNone);   // a synchronisation behind it
  EXPECT_EQ(flow_end(1, 5, 43, 9), Slice::FlowEnd::kNone);
  EXPECT_EQ(flow_end(50, 10, 43, 10), Slice::FlowEnd::kFrom);
  EXPECT_EQ(flow_end(30, 10, 44, 9), Slice::FlowEnd::kFrom);  // another thread counts for itself
}

TEST_F(ActivitySlicesTest, MemoryHasItsBytesAndNoArrow) {
  const std::optional<Slice> slice = Of(TableId::kMemory, 0, 1, 4, 8, 4096, 1, 5, 77, 0, 3, 1, 2);
  EXPECT_EQ(slice->name, "copy");
  EXPECT_EQ(slice->thread, "Memory, Stream 5");
  EXPECT_EQ(slice->tid, 5 + (1 << 20));
  EXPECT_EQ(slice->dur_ns, 8);
  EXPECT_EQ(slice->flow_end, Slice::FlowEnd::kNone);
  EXPECT_THAT(slice->integers, ElementsAre(Pair("rank", 0), Pair("pid", 77), Pair("stream", 5), Pair("correlation", 3),
                                           Pair("bytes", 4096)));
  EXPECT_EQ(Of(TableId::kMemory, 0, 1, 1, 8, 4096, 1, -1, 77, 0, 0, 0, 0)->thread, "Memory") << "of no stream";
}

// The vendor's ends have no texts (in-application 2.6).
TEST_F(ActivitySlicesTest, ARangeHasTheTextsOfItsBegin) {
  EXPECT_FALSE(Marker(-1, 100, "forward", 1, 7));
  const std::optional<Slice> range = Marker(-1, 160, "", 2, 7);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->kind, Slice::Kind::kSlice);
  EXPECT_EQ(range->name, "forward");
  EXPECT_EQ(range->category, "user");
  EXPECT_EQ(range->t_ns, 100);
  EXPECT_EQ(range->dur_ns, 60);
  EXPECT_EQ(range->track, "Markers of thread 5");
  EXPECT_THAT(range->integers, ElementsAre(Pair("rank", 0), Pair("pid", 77), Pair("id", 7)));
  EXPECT_FALSE(Marker(-1, 170, "", 2, 7)) << "it has ended";
  EXPECT_FALSE(Marker(-1, 170, "", 2, 8)) << "it never began";
}

// As MSTX_EVENTS has it, whose globalTid is that of the begin.
TEST_F(ActivitySlicesTest, ARangeIsOfTheThreadItBeganOn) {
  EXPECT_FALSE(Marker(-1, 100, "forward", 1, 7));
  const std::optional<Slice> range = Marker(-1, 160, "", 2, 7, 6);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->track, "Markers of thread 5");
  EXPECT_EQ(range->tid, Marker(-1, 200, "same thread", 0, 8)->tid);
}

// Nor has the device's half; its times are its own.
TEST_F(ActivitySlicesTest, TheDevicesHalfHasTheTextsOfTheHosts) {
  EXPECT_FALSE(Marker(-1, 100, "forward", 1, 7));
  EXPECT_TRUE(Marker(-1, 160, "", 2, 7));
  EXPECT_FALSE(Marker(0, 130, "", 1, 7));
  const std::optional<Slice> range = Marker(0, 190, "", 2, 7);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->name, "forward");
  EXPECT_EQ(range->t_ns, 130);
  EXPECT_EQ(range->dur_ns, 60);
  EXPECT_EQ(range->thread, "Markers, Stream 4");
  EXPECT_EQ(range->process->name, "Ascend Hardware");
  const std::optional<Slice> instant = Marker(0, 200, "", 0, 9);
  EXPECT_EQ(instant->kind, Slice::Kind::kInstant);
  EXPECT_EQ(instant->name, "");
}

// in-application 2.6: the device's half follows when the device has reached it.
TEST_F(ActivitySlicesTest, OfManyMarksTheLatestKeepTheirTextsForTheDevice) {
  for (int64_t id = 1; id <= 65'537; ++id) EXPECT_TRUE(Marker(-1, id, "load", 0, id));
  const std::optional<Slice> last = Marker(0, 70'000, "", 0, 65'537);
  EXPECT_EQ(last->name, "load");
  const std::optional<Slice> one_before = Marker(0, 70'000, "", 0, 65'536);
  EXPECT_EQ(one_before->name, "load");
  EXPECT_EQ(one_before->category, "user");
}

// The vendor's buffers overtake each other (in-application 2.8).
TEST_F(ActivitySlicesTest, ARangeWhoseEndComesBeforeItsBegin) {
  EXPECT_FALSE(Marker(-1, 160, "", 2, 7));
  const std::optional<Slice> range = Marker(-1, 100, "forward", 1, 7);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->name, "forward");
  EXPECT_EQ(range->t_ns, 100);
  EXPECT_EQ(range->dur_ns, 60);
  EXPECT_FALSE(Marker(-1, 170, "", 2, 8));
  EXPECT_FALSE(Marker(-1, 171, "another", 1, 8)) << "it began after that end";
  EXPECT_EQ(slices_.OpenRanges(2, {}).size(), 1u);
}

// in-application 2.7: a negative duration is treated as 0.
TEST_F(ActivitySlicesTest, ARangeThatEndsBeforeItsBeginHasNoLength) {
  EXPECT_FALSE(Marker(-1, 100, "forward", 1, 7));
  const std::optional<Slice> range = Marker(-1, 99, "", 2, 7);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->t_ns, 100);
  EXPECT_EQ(range->dur_ns, 0);
  EXPECT_TRUE(slices_.OpenRanges(2, {}).empty()) << "it has ended";
}

// docs/export.md: one that crosses the end of the session is clipped there and has a name that shows it.
TEST_F(ActivitySlicesTest, RangesWithoutAnEndGoToThatOfTheSession) {
  EXPECT_FALSE(Marker(-1, 100, "forward", 1, 7));
  EXPECT_FALSE(Marker(-1, 120, "ended", 1, 8));
  EXPECT_TRUE(Marker(-1, 160, "", 2, 8));
  EXPECT_FALSE(Marker(0, 130, "", 1, 7));
  const std::vector<ActivitySlices::Owned> ranges = slices_.OpenRanges(2, {});
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].slice.name, "forward (partial)");
  EXPECT_EQ(ranges[0].slice.kind, Slice::Kind::kSlice);
  EXPECT_EQ(ranges[0].slice.track, "Markers of thread 5");
  EXPECT_EQ(ranges[0].slice.t_ns, 100);
  EXPECT_EQ(ranges[0].slice.dur_ns, 1900);
  EXPECT_EQ(ranges[0].owner.device, -1);
  EXPECT_EQ(ranges[0].owner.pid, 77);
  EXPECT_EQ(ranges[1].slice.name, "forward (partial)");
  EXPECT_EQ(ranges[1].slice.thread, "Markers, Stream 4");
  EXPECT_EQ(ranges[1].slice.dur_ns, 1870);
  EXPECT_EQ(ranges[1].owner.device, 0);
  EXPECT_TRUE(slices_.OpenRanges(2, {}).empty());
}

TEST_F(ActivitySlicesTest, RangesWithoutAnEndAreClippedAtTheWindowAndTheLastMarker) {
  const auto length = [this](int64_t end_us, int64_t to_ns) {
    EXPECT_FALSE(Marker(-1, 100, "forward", 1, 7));
    EXPECT_TRUE(Marker(-1, 500, "mark", 0, 9));
    const std::vector<ActivitySlices::Owned> ranges = slices_.OpenRanges(end_us, {.to_ns = to_ns});
    return ranges.size() == 1 ? ranges[0].slice.dur_ns : -1;
  };
  EXPECT_EQ(length(2, 700), 600);
  EXPECT_EQ(length(0, 700), 400) << "the session's end is not known";
}

TEST_F(ActivitySlicesTest, BeginsWithoutEndsAreBounded) {
  for (int64_t id = 1; id <= 100'000; ++id) EXPECT_FALSE(Marker(-1, id, "forward", 1, id));
  EXPECT_TRUE(Marker(-1, 200'000, "", 2, 100'000));
  EXPECT_FALSE(Marker(-1, 200'000, "", 2, 1)) << "the oldest are forgotten";
}

}  // namespace
}  // namespace profd::exporting
