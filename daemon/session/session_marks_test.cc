#include "daemon/session/session_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "daemon/data/testing/test_dump.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kStart = 1'000'000'000;
constexpr uint64_t kCount = 5000;

// What the analyser reads of a record: device count, step, tag.
struct Step {
  uint64_t count;
  uint64_t step;
  uint16_t tag;
  bool operator==(const Step&) const = default;
};

class SessionMarksTest : public OneDumpTest {
 protected:
  SessionMarksTest() : OneDumpTest(8 << 20, {0, 1}) {
    // 50 MHz: 20 ns a cycle. The second device never reported its frequency.
    std::vector<SessionMarks::Device> devices = {{0, 5, 50e6, kStart, kCount}, {1, 5, 0, 0, 0}};
    marks_ = std::make_unique<SessionMarks>(session_, devices, kStart);
  }
  static TrainingProcess Process(pid_t pid, int rank) {
    return {.pid = pid, .rank = rank, .devices = {0, 1}};
  }
  void Take(const TrainingProcess& process, int64_t after_ns, attach::MarkKind kind, int64_t step, int32_t thread = 1) {
    Mark mark{.time_ns = kStart + after_ns, .value = step, .thread = thread, .kind = kind};
    marks_->Take(process, {process.pid, process.rank, {&mark, 1}, 0});
  }
  std::vector<Step> Finish() {
    marks_->Flush();
    FinishTestDump(*session_, [this](Manifest& manifest) { marks_->EditManifest(&manifest); });
    std::vector<Step> steps;
    std::string file = path_ + "/device_0/data/ts_track.data.0.slice_0";
    if (!std::filesystem::exists(file)) return steps;
    std::string bytes = ReadText(file);
    for (size_t at = 0; at + kStepRecordBytes <= bytes.size(); at += kStepRecordBytes) {
      auto record = AsBytes(bytes).subspan(at, kStepRecordBytes);
      steps.push_back({LoadUnchecked<uint64_t>(record, 8), LoadUnchecked<uint64_t>(record, 16),
                       LoadUnchecked<uint16_t>(record, 36)});
    }
    EXPECT_EQ(bytes.size() % kStepRecordBytes, 0u);
    return steps;
  }

  std::unique_ptr<SessionMarks> marks_;
};

TEST_F(SessionMarksTest, StepsAreTimestampedWithTheDevicesCounter) {
  Take(Process(7, 0), 2000, attach::MarkKind::kStepBegin, 4);
  Take(Process(7, 0), 6000, attach::MarkKind::kStepEnd, 4);
  EXPECT_THAT(Finish(), ElementsAre(Step{kCount + 100, 4, 60000}, Step{kCount + 300, 4, 60001}));
  EXPECT_EQ(marks_->written(), 2u);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/device_1/data/ts_track.data.1.slice_0"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/device_0/data/ts_track.data.0.slice_0.done"));
}

TEST_F(SessionMarksTest, OneProcessOfADeviceIsWritten) {
  Take(Process(8, 1), 20, attach::MarkKind::kStepBegin, 1);
  Take(Process(7, 0), 40, attach::MarkKind::kStepBegin, 1);  // the lower rank takes over
  Take(Process(8, 1), 60, attach::MarkKind::kStepEnd, 1);
  Take(Process(7, 0), 80, attach::MarkKind::kStepEnd, 1);
  marks_->OnGone(7);
  Take(Process(8, 1), 100, attach::MarkKind::kStepBegin, 2);
  EXPECT_THAT(Finish(), ElementsAre(Step{kCount + 1, 1, 60000}, Step{kCount + 2, 1, 60000},
                                    Step{kCount + 4, 1, 60001}, Step{kCount + 5, 2, 60000}));
}

TEST_F(SessionMarksTest, TheStepTheSessionBeganInHasItsBegin) {
  marks_->NoteRunningStep(7, 11);
  Take(Process(7, 0), -50, attach::MarkKind::kStepBegin, 11);  // before the session
  Take(Process(7, 0), 100, attach::MarkKind::kStepEnd, 11);
  EXPECT_THAT(Finish(), ElementsAre(Step{kCount, 11, 60000}, Step{kCount + 5, 11, 60001}));
}

// docs/api.md: loops need not call profd_step_end.
TEST_F(SessionMarksTest, StepsWithoutAnyEndLastUntilTheNext) {
  marks_->NoteRunningStep(7, 11);
  Take(Process(7, 0), 100, attach::MarkKind::kStepBegin, 12);
  Take(Process(7, 0), 200, attach::MarkKind::kStepBegin, 14);
  EXPECT_THAT(Finish(), ElementsAre(Step{kCount, 11, 60000}, Step{kCount + 5, 11, 60001}, Step{kCount + 5, 12, 60000},
                                    Step{kCount + 10, 12, 60001}, Step{kCount + 10, 14, 60000}));
}

TEST_F(SessionMarksTest, AStepThatSeveralThreadsReportHasTwoRecords) {
  Take(Process(7, 0), 100, attach::MarkKind::kStepBegin, 0, 1);
  Take(Process(7, 0), 120, attach::MarkKind::kStepBegin, 0, 2);
  Take(Process(7, 0), 200, attach::MarkKind::kStepEnd, 0, 2);
  Take(Process(7, 0), 220, attach::MarkKind::kStepEnd, 0, 1);
  EXPECT_THAT(Finish(), ElementsAre(Step{kCount + 5, 0, 60000}, Step{kCount + 10, 0, 60001}));
}

TEST_F(SessionMarksTest, AStepHasNoMoreThanTwoRecords) {
  Take(Process(7, 0), 100, attach::MarkKind::kStepBegin, 5, 1);
  Take(Process(7, 0), 110, attach::MarkKind::kStepBegin, 5, 1);  // again
  Take(Process(7, 0), 200, attach::MarkKind::kStepBegin, 6, 1);
  Take(Process(7, 0), 210, attach::MarkKind::kStepEnd, 5, 1);  // late
  Take(Process(7, 0), 300, attach::MarkKind::kStepEnd, 6, 1);
  Take(Process(7, 0), 320, attach::MarkKind::kStepBegin, 6, 2);  // by another thread, behind the first one's
  Take(Process(7, 0), 340, attach::MarkKind::kStepEnd, 6, 2);
  EXPECT_THAT(Finish(), ElementsAre(Step{kCount + 5, 5, 60000}, Step{kCount + 10, 5, 60001}, Step{kCount + 10, 6, 60000},
                                    Step{kCount + 15, 6, 60001}));
}

TEST_F(SessionMarksTest, StacksAreAFileOfTheirOwnWhereTheyAreWanted) {
  Mark frame{.time_ns = kStart + 20, .value = int64_t{3} << 32 | 5, .thread = 70, .kind = attach::MarkKind::kFrame,
             .name = "train.py:step\t:7"};
  Mark stack = frame;
  stack.time_ns = kStart + 30;
  stack.kind = attach::MarkKind::kStack;
  stack.value = 5;
  stack.name = {};
  const auto take = [&](const Mark& mark) {
    marks_->Take(Process(7, 0), {7, 0, {&mark, 1}, 0});
  };
  take(frame);
  EXPECT_EQ(marks_->stacks_written(), 0u);
  marks_->TakeStacks();
  take(frame);
  take(stack);
  stack.time_ns = kStart - 1;
  take(stack);  // before the session
  Finish();
  EXPECT_EQ(ReadText(path_ + "/host/profd/stacks.tsv"),
            std::string(kStacksHeading) + "1000000020\t7\t0\t70\tframe\t5\t3\ttrain.py:step :7\n"
                                          "1000000030\t7\t0\t70\tstack\t5\t0\t\n");
  EXPECT_EQ(marks_->stacks_written(), 2u);
  EXPECT_EQ(marks_->written(), 0u);
}

TEST_F(SessionMarksTest, NothingMarkedNothingWritten) {
  EXPECT_THAT(Finish(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/host/profd/marks.tsv"));
}

TEST_F(SessionMarksTest, LossesAreInTheManifest) {
  Mark mark{.time_ns = kStart + 1, .name = "x"};
  marks_->Take(Process(7, 0), {7, 0, {&mark, 1}, 5});
  marks_->Take(Process(7, 0), {7, 0, {}, 2});
  Finish();
  EXPECT_EQ(marks_->dropped(), 7u);
  const Manifest manifest = ReadManifest();
  ASSERT_EQ(manifest.channels.size(), 1u);
  const ManifestChannel& channel = manifest.channels[0];
  EXPECT_EQ(channel.collector, "marks");
  EXPECT_EQ(channel.file, "marks.tsv");
  EXPECT_EQ(channel.state, "finished");
  EXPECT_EQ(channel.records, 1u);
  ASSERT_EQ(channel.dropped.size(), 1u);
  EXPECT_EQ(channel.dropped[0].reason, LossReason::kRingFull);
  EXPECT_EQ(channel.dropped[0].records, 7u);
}

}  // namespace
}  // namespace profd
