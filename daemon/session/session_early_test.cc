#include "daemon/session/session_early.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "daemon/data/testing/test_dump.h"
#include "daemon/session/session_activity.h"
#include "daemon/session/session_marks.h"

namespace profd {
namespace {

using attach::MarkKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The dump says that it starts here; step 11 began before in process 101, and later in process 102.
constexpr int64_t kDumpStart = 1'000'000'000;
constexpr int64_t kBegin101 = kDumpStart - 5'000'000;
constexpr int64_t kBegin102 = kDumpStart + 2'000'000;

// Three times what is kept, a record every microsecond.
constexpr size_t kPerBatch = 1000;
constexpr size_t kBatches = 3 * SessionEarly::kMaxBytes / (kPerBatch * sizeof(attach::KernelRecord));

class SessionEarlyTest : public OneDumpTest {
 protected:
  // Space for all that is handed over at once, a block of 256 KiB for each batch, should the writer take none meanwhile:
  // text records leave a quarter of the pool free.
  SessionEarlyTest() : OneDumpTest(96 << 20) {
    marks_ = std::make_unique<SessionMarks>(session_, std::vector<SessionMarks::Device>(), kDumpStart);
    activity_ = std::make_unique<SessionActivity>(session_, attach::CollectKinds{attach::CollectKind::kKernel}, kDumpStart);
    EXPECT_TRUE(names_.Learn(1, "MatMul").ok());
  }

  static TrainingProcess Process(pid_t pid) {
    return {.pid = pid, .rank = pid - 101, .attach_id = static_cast<uint64_t>(pid)};
  }
  void Take(SessionEarly* early, pid_t pid, const Mark& mark, uint64_t dropped = 0) {
    early->Take(Process(pid), {pid, pid - 101, {&mark, 1}, dropped});
  }
  void StepBegin(SessionEarly* early, pid_t pid, int64_t time_ns, int64_t step) {
    Mark mark{.time_ns = time_ns, .value = step, .kind = MarkKind::kStepBegin};
    Take(early, pid, mark);
  }
  void PutMark(SessionEarly* early, pid_t pid, int64_t time_ns, std::string name, uint64_t dropped = 0) {
    Mark mark{.time_ns = time_ns, .kind = MarkKind::kMark, .name = name};
    Take(early, pid, mark, dropped);
    name.assign(name.size(), '#');  // the ring's bytes are another's then
  }
  void Kernels(SessionEarly* early, pid_t pid, const std::vector<int64_t>& times_ns) {
    std::vector<attach::KernelRecord> records;
    for (const int64_t time_ns : times_ns) {
      attach::KernelRecord& kernel = records.emplace_back();
      kernel.start = static_cast<uint32_t>(time_ns - times_ns.front());
      kernel.duration = 10;
      kernel.name = 1;
    }
    const ActivityFrame frame{attach::ActivityType::kKernel, static_cast<uint16_t>(records.size()), times_ns.front(),
                              std::as_bytes(std::span(records))};
    early->Take({static_cast<uint64_t>(pid), pid, {}, {&frame, 1}, {std::shared_ptr<void>(), &names_}});
    std::memset(records.data(), 0xFF, records.size() * sizeof records[0]);
  }
  // Records of process 101 from `from_ns` on.
  void Batch(SessionEarly* early, int64_t from_ns) {
    std::vector<int64_t> times;
    for (size_t i = 0; i < kPerBatch; ++i) times.push_back(from_ns + static_cast<int64_t>(i) * 1000);
    Kernels(early, 101, times);
  }
  static uint64_t LostKernels(const Manifest& manifest) {
    uint64_t lost = 0;
    for (const ManifestChannel& channel : manifest.channels) {
      if (channel.collector != "activity_kernel") continue;
      for (const ManifestLoss& loss : channel.dropped) lost += loss.records;
    }
    return lost;
  }
  Manifest Finish() {
    marks_->Flush();
    activity_->End(kDumpStart + 1'000'000'000);
    FinishTestDump(*session_, [this](Manifest& manifest) {
      marks_->EditManifest(&manifest);
      SessionActivity::EditManifest(&manifest);
    });
    return ReadManifest();
  }
  // {process, begin} of each kernel of the dump.
  std::vector<std::pair<uint32_t, int64_t>> KernelsOfDump() {
    std::vector<std::pair<uint32_t, int64_t>> found;
    for (const StoredKernel& kernel : RowsOf<StoredKernel>(path_, "activity_kernel")) {
      found.emplace_back(kernel.process, kernel.start_ns);
    }
    return found;
  }
  std::string MarksOfDump() { return ReadText(path_ + "/host/profd/marks.tsv"); }

  ActivityNameTable names_;
  std::unique_ptr<SessionMarks> marks_;
  std::unique_ptr<SessionActivity> activity_;
};

TEST_F(SessionEarlyTest, EachProcessFromTheBeginOfItsStep) {
  SessionEarly early(11);
  StepBegin(&early, 101, kBegin101 - 90, 10);
  PutMark(&early, 101, kBegin101 - 80, "of the step before", 7);
  Kernels(&early, 101, {kBegin101 - 50, kBegin101 - 1, kBegin101, kBegin101 + 400});
  StepBegin(&early, 101, kBegin101, 11);
  PutMark(&early, 101, kBegin101 + 10, "early");
  PutMark(&early, 102, kDumpStart + 5, "still in step 10");
  Kernels(&early, 102, {kDumpStart + 5, kBegin102 + 5});
  StepBegin(&early, 102, kBegin102, 11);
  EXPECT_EQ(early.BeginOf(101), kBegin101);
  EXPECT_EQ(early.BeginOf(103), std::nullopt);
  early.HandOver(marks_.get(), activity_.get());
  // What comes later goes by the same begins, of other processes by the session's start.
  Kernels(&early, 103, {kDumpStart - 1, kDumpStart + 1});
  early.HandOver(marks_.get(), activity_.get());
  const Manifest manifest = Finish();
  EXPECT_THAT(KernelsOfDump(), ElementsAre(std::pair(101u, kBegin101), std::pair(101u, kBegin101 + 400),
                                           std::pair(102u, kBegin102 + 5), std::pair(103u, kDumpStart + 1)));
  EXPECT_THAT(MarksOfDump(), HasSubstr("\tearly\t"));
  EXPECT_THAT(MarksOfDump(), HasSubstr(std::to_string(kBegin101) + "\t101\t0\t0\tstep_begin\t\t11"));
  EXPECT_THAT(MarksOfDump(), HasSubstr(std::to_string(kBegin102) + "\t102\t1\t0\tstep_begin\t\t11"));
  EXPECT_THAT(MarksOfDump(), Not(HasSubstr("step 10")));
  EXPECT_THAT(MarksOfDump(), Not(HasSubstr("before")));
  EXPECT_EQ(manifest.dropped_marks, 0u) << "lost before the step";
}

TEST_F(SessionEarlyTest, WithoutAStepByTheSessionsStart) {
  SessionEarly early(std::nullopt);
  PutMark(&early, 101, kDumpStart - 5, "before", 2);
  PutMark(&early, 101, kDumpStart + 5, "after");
  StepBegin(&early, 101, kDumpStart + 6, 30);
  Kernels(&early, 101, {kDumpStart - 5, kDumpStart + 1});
  early.HandOver(marks_.get(), activity_.get());
  EXPECT_EQ(Finish().dropped_marks, 2u);
  EXPECT_THAT(KernelsOfDump(), ElementsAre(std::pair(101u, kDumpStart + 1)));
  EXPECT_THAT(MarksOfDump(), Not(HasSubstr("before")));
  EXPECT_THAT(MarksOfDump(), HasSubstr("\tafter\t"));
}

TEST_F(SessionEarlyTest, AProcessThatEndsBeforeTheStepLeavesNothing) {
  SessionEarly early(11);
  Kernels(&early, 101, {kDumpStart + 1});
  Kernels(&early, 102, {kDumpStart + 2});
  early.OnGone(101, 101);
  early.HandOver(marks_.get(), activity_.get());
  Finish();
  EXPECT_THAT(KernelsOfDump(), ElementsAre(std::pair(102u, kDumpStart + 2)));
}

TEST_F(SessionEarlyTest, CountsRecordsOfTheSessionThatDoNotFit) {
  SessionEarly early(11);
  StepBegin(&early, 101, kBegin101, 11);
  for (size_t batch = 0; batch < kBatches; ++batch) Batch(&early, kBegin101 + static_cast<int64_t>(batch) * 1'000'000);
  early.HandOver(marks_.get(), activity_.get());
  const Manifest manifest = Finish();
  const size_t written = KernelsOfDump().size();
  EXPECT_GE(written * sizeof(attach::KernelRecord), SessionEarly::kMaxBytes / 100 * 98);
  EXPECT_EQ(written + LostKernels(manifest), kBatches * kPerBatch);
}

TEST_F(SessionEarlyTest, BatchesOfLossesAloneTakeSpaceAndAreCounted) {
  SessionEarly early(std::nullopt);
  Kernels(&early, 101, {kDumpStart + 5});
  ActivityBatch lost{.attach_id = 101, .pid = 101, .dropped = 1};
  constexpr size_t kLost = SessionEarly::kMaxBytes / 64;
  for (size_t i = 0; i < kLost; ++i) early.Take(lost);
  early.HandOver(marks_.get(), activity_.get());
  EXPECT_EQ(LostKernels(Finish()), kLost + 1);
  EXPECT_EQ(KernelsOfDump().size(), 0u);
}

// Of a process whose batches all had to go for those of another, too.
TEST_F(SessionEarlyTest, WhatWasCountedInBatchesThatDoNotFitStays) {
  SessionEarly early(std::nullopt);
  Kernels(&early, 102, {kDumpStart + 5, kDumpStart + 6});
  ActivityBatch counts{.attach_id = 102, .pid = 102, .dropped = 3, .cost_ns = 40, .names_refused = 5};
  early.Take(counts);
  early.Take(counts);
  for (size_t batch = 0; batch < kBatches; ++batch) Batch(&early, kDumpStart + static_cast<int64_t>(batch) * 1'000'000);
  early.HandOver(marks_.get(), activity_.get());
  EXPECT_EQ(activity_->CostOf(102), 80u);
  EXPECT_THAT(activity_->NamesText(), HasSubstr("10 of process 102"));
  const Manifest manifest = Finish();
  EXPECT_EQ(KernelsOfDump().size() + LostKernels(manifest), kBatches * kPerBatch + 2 + 6);
}

TEST_F(SessionEarlyTest, RecordsBeforeTheStepThatDoNotFitAreNotALoss) {
  SessionEarly early(11);
  for (size_t batch = 0; batch < kBatches; ++batch) {
    Batch(&early, kBegin101 - static_cast<int64_t>(kBatches - batch) * 1'000'000);
  }
  StepBegin(&early, 101, kBegin101, 11);
  Batch(&early, kBegin101);
  early.HandOver(marks_.get(), activity_.get());
  EXPECT_EQ(LostKernels(Finish()), 0u);
  EXPECT_EQ(KernelsOfDump().size(), kPerBatch);
}

TEST_F(SessionEarlyTest, MarksThatDoNotFitAreCounted) {
  SessionEarly early(11);
  StepBegin(&early, 101, kBegin101, 11);
  const std::string name(80, 'x');
  constexpr int kMarks = 80'000;
  for (int i = 0; i < kMarks; ++i) PutMark(&early, 101, kBegin101 + i, name);
  early.HandOver(marks_.get(), activity_.get());
  const Manifest manifest = Finish();
  EXPECT_GT(manifest.dropped_marks, 0u);
  EXPECT_EQ(manifest.marks + manifest.dropped_marks, kMarks + 1u);
}

}  // namespace
}  // namespace profd
