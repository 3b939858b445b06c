#include "daemon/recorder/activity_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "daemon/data/testing/test_dump.h"

namespace profd {
namespace {

using attach::ActivityType;
using attach::KernelRecord;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = kNsPerSecond;
constexpr int64_t kBegin = 1000 * kSecond;
constexpr uint64_t kRank0 = 1;  // attach ids
constexpr uint64_t kRank1 = 2;
constexpr size_t kBytes = 1 << 20;
constexpr uint16_t kManyKernels = 1000;

class ActivityHistoryTest : public ::testing::Test {
 protected:
  ActivityHistoryTest()
      : pool_(8 << 20), writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {}) {
    EXPECT_TRUE(history_->Join(Process(kRank0, 1000)));
    EXPECT_TRUE(history_->Join(Process(kRank1, 2000)));
    for (uint64_t id : {kRank0, kRank1}) Report(id, attach::CollectState::kOn);
  }
  static TrainingProcess Process(uint64_t attach_id, uint32_t uid, std::string job = "j") {
    return {.pid = static_cast<pid_t>(100 + attach_id), .uid = uid, .job_id = std::move(job), .attach_id = attach_id};
  }
  void Report(uint64_t attach_id, attach::CollectState state, int64_t now_ns = kBegin, attach::CollectKinds left_out = {},
              const std::string& detail = "") {
    attach::CollectorReport report{.session_id = std::string(kRecorderSession), .provider = attach::CollectProvider::kMspti,
                                   .state = state, .detail = detail, .left_out = left_out};
    history_->OnReport(attach_id, report, now_ns);
  }
  void TakeFrames(uint64_t attach_id, std::span<const ActivityFrame> frames, int64_t now_ns, uint64_t dropped = 0) {
    history_->Take({attach_id, 0, {}, frames, nullptr, dropped}, now_ns);
  }
  // Kernels that begin at `at_ns`, 1 ns apart, read a second later.
  void Kernels(uint64_t attach_id, int64_t at_ns, uint16_t count, uint32_t name) {
    std::vector<KernelRecord> kernels(count);
    for (uint16_t i = 0; i < count; ++i) {
      kernels[i].start = i;
      kernels[i].name = name;
    }
    const ActivityFrame frame{ActivityType::kKernel, count, at_ns, std::as_bytes(std::span(kernels))};
    TakeFrames(attach_id, {&frame, 1}, at_ns + kSecond);
  }
  void Name(uint64_t attach_id, uint32_t id, const std::string& text, int64_t now_ns) {
    const attach::NameHead head{id, static_cast<uint16_t>(text.size()), 0};
    std::vector<std::byte> bytes(sizeof head + attach::AlignedUp8(text.size()));
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, text.data(), text.size());
    const ActivityFrame frame{ActivityType::kNames, 1, now_ns, bytes};
    TakeFrames(attach_id, {&frame, 1}, now_ns);
  }
  // What a dump of [start, end] holds.
  void Dump(int64_t start_ns, int64_t end_ns, uint32_t of_uid = 0) {
    const std::shared_ptr<WriterSession> session = OpenTestDump(writer_, &path_);
    ActivityHistory::Past past = history_->Read(
        start_ns, [of_uid](const TrainingProcess& process) { return of_uid == 0 || process.uid == of_uid; }, end_ns);
    processes_.clear();
    for (const auto& [id, process] : past.processes) processes_.push_back(process.Describe());
    held_from_ns_ = past.held_from_ns;
    auto replay = std::make_shared<ActivityReplay>(session, history_->kinds(), std::move(past), start_ns, end_ns);
    std::promise<void> replayed;
    replay->Run(writer_, [&] { replayed.set_value(); });
    replayed.get_future().get();
    FinishTestDump(*session, [](Manifest& manifest) { SessionActivity::EditManifest(&manifest); });
    manifest_ = ParseManifest(ReadText(path_ + "/profd_manifest.json")).value();
  }
  std::vector<StoredKernel> Stored() { return RowsOf<StoredKernel>(path_, "activity_kernel"); }
  // Times without records, in seconds.
  std::vector<std::pair<int64_t, int64_t>> Gaps(LossReason reason, ActivityFileId file = ActivityFileId::kKernel) {
    std::vector<std::pair<int64_t, int64_t>> times;
    for (const ManifestChannel& channel : manifest_.channels) {
      if (channel.collector != FileOf(file).collector) continue;
      for (const ManifestGap& gap : channel.gaps) {
        EXPECT_EQ(gap.reason, reason);
        times.emplace_back((gap.from_ns - kBegin) / kSecond, (gap.host_ns - kBegin) / kSecond);
      }
    }
    return times;
  }
  std::vector<ManifestLoss> Dropped() {
    for (const ManifestChannel& channel : manifest_.channels) {
      if (channel.collector == FileOf(ActivityFileId::kKernel).collector) return channel.dropped;
    }
    return {};
  }
  std::string Names() { return ReadText(path_ + "/host/profd/activity_names.tsv"); }

  TempDir tmp_;
  SystemClock clock_;
  BlockPool pool_;
  DumpWriter writer_;
  std::unique_ptr<ActivityHistory> history_ = ActivityHistory::Create({kBytes, 60 * kSecond}, "l1", kBegin).value();
  std::string path_;
  Manifest manifest_;
  std::vector<ManifestProcess> processes_;
  int64_t held_from_ns_ = 0;
};

TEST_F(ActivityHistoryTest, HoldsTheWindowWithItsNames) {
  Name(kRank0, 1, "MatMul", kBegin);
  Name(kRank1, 1, "Add", kBegin);
  Kernels(kRank0, kBegin, 3, 1);
  Kernels(kRank1, kBegin + 10 * kSecond, 2, 1);
  Kernels(kRank0, kBegin + 20 * kSecond, 4, 1);
  Dump(kBegin + 5 * kSecond, kBegin + 20 * kSecond + 1);
  const std::vector<StoredKernel> rows = Stored();
  ASSERT_THAT(rows, SizeIs(4)) << "those that begin in the window";
  EXPECT_EQ(rows[0].process, 102u);
  EXPECT_EQ(rows[0].start_ns, kBegin + 10 * kSecond);
  EXPECT_EQ(rows[3].process, 101u);
  EXPECT_EQ(rows[3].start_ns, kBegin + 20 * kSecond + 1);
  EXPECT_EQ(Names(), "id\tname\n1\tAdd\n2\tMatMul\n");
  EXPECT_EQ(rows[0].name, 1u);
  EXPECT_EQ(rows[3].name, 2u);
}

TEST_F(ActivityHistoryTest, BytesAreBoundedAndTheOldestLeaves) {
  for (int i = 0; i < 100; ++i) {
    Kernels(kRank0, kBegin + i * kSecond / 10, kManyKernels, 0);
    EXPECT_LE(history_->stats().bytes, kBytes);
  }
  EXPECT_GT(history_->stats().evicted_early, 0u);
  EXPECT_EQ(history_->stats().dropped, 0u);
  Dump(kBegin, kBegin + 20 * kSecond);
  const std::vector<StoredKernel> rows = Stored();
  // The youngest are all there, as far back as is said.
  const auto held = static_cast<size_t>((kBegin + 99 * kSecond / 10 + kSecond - held_from_ns_) / (kSecond / 10));
  ASSERT_EQ(rows.size(), held * kManyKernels);
  EXPECT_GT(held, 20u);
  EXPECT_EQ(rows.front().start_ns + kSecond, held_from_ns_ + kSecond / 10);
  EXPECT_EQ(rows.back().start_ns, kBegin + 99 * kSecond / 10 + kManyKernels - 1);
}

TEST_F(ActivityHistoryTest, ABatchLargerThanTheArenaIsReadInPieces) {
  std::vector<KernelRecord> kernels(kManyKernels);
  std::vector<ActivityFrame> frames(
      40, {ActivityType::kKernel, kManyKernels, kBegin, std::as_bytes(std::span(kernels))});
  TakeFrames(kRank0, frames, kBegin + kSecond);
  EXPECT_EQ(history_->stats().dropped, 0u);
  EXPECT_GT(history_->stats().blocks, 1u);
}

TEST_F(ActivityHistoryTest, ProcessesStayAsLongAsTheirRecords) {
  Name(kRank0, 1, "MatMul", kBegin);
  Kernels(kRank0, kBegin, 3, 1);
  history_->OnGone(kRank0, false, kBegin + 2 * kSecond);
  history_->Expire(kBegin + 60 * kSecond);
  Dump(kBegin, kBegin + 3 * kSecond, 1000);
  EXPECT_THAT(Stored(), SizeIs(3));
  EXPECT_EQ(Names(), "id\tname\n1\tMatMul\n");
  ASSERT_THAT(processes_, SizeIs(1));
  EXPECT_EQ(processes_[0].collector_state, "ended");
  EXPECT_FALSE(processes_[0].attached);
  // What it had not handed over is missing from its last record on.
  const auto kernel = std::find_if(manifest_.channels.begin(), manifest_.channels.end(), [](const auto& channel) {
    return channel.collector == FileOf(ActivityFileId::kKernel).collector;
  });
  ASSERT_NE(kernel, manifest_.channels.end());
  ASSERT_THAT(kernel->gaps, SizeIs(1));
  EXPECT_EQ(kernel->gaps[0].reason, LossReason::kProcessEnded);
  EXPECT_EQ(kernel->gaps[0].host_ns, kBegin + 2 * kSecond);
  EXPECT_TRUE(history_->Has(kRank0));
  history_->Expire(kBegin + 62 * kSecond);
  EXPECT_FALSE(history_->Has(kRank0));
  EXPECT_TRUE(history_->Has(kRank1)) << "it is here";
}

TEST_F(ActivityHistoryTest, OnlyProcessesThatMayBeSeen) {
  Name(kRank0, 1, "MatMul", kBegin);
  Name(kRank1, 1, "SecretOperator", kBegin);
  Kernels(kRank0, kBegin, 3, 1);
  Kernels(kRank1, kBegin, 5, 1);
  Dump(kBegin, kBegin + kSecond, 1000);
  EXPECT_THAT(Stored(), SizeIs(3));
  EXPECT_EQ(Names(), "id\tname\n1\tMatMul\n");
  EXPECT_THAT(processes_, SizeIs(1));
}

TEST_F(ActivityHistoryTest, LossesKeepTheirTimeAndReason) {
  const attach::LossRecord loss{static_cast<uint16_t>(ActivityType::kKernel),
                                static_cast<uint16_t>(attach::LossReason::kRingFull), 0, 7, kBegin + 5,
                                kBegin + 6};
  const ActivityFrame frame{ActivityType::kLoss, 1, kBegin, std::as_bytes(std::span(&loss, 1))};
  TakeFrames(kRank0, {&frame, 1}, kBegin + kSecond, 7);
  TakeFrames(kRank0, {}, kBegin + kSecond, 2);  // not yet said in the ring
  Dump(kBegin, kBegin + 2 * kSecond);
  const std::vector<ManifestLoss> dropped = Dropped();
  ASSERT_THAT(dropped, SizeIs(1));
  EXPECT_EQ(dropped[0].reason, LossReason::kRingFull);
  EXPECT_EQ(dropped[0].records, 9u);
  EXPECT_EQ(dropped[0].from_ns, kBegin);
}

TEST_F(ActivityHistoryTest, TheTimeOfAnotherProfilerIsAGap) {
  using ::testing::Pair;
  Report(kRank0, attach::CollectState::kBusy, kBegin + 10 * kSecond);
  Report(kRank0, attach::CollectState::kBusy, kBegin + 12 * kSecond);
  Report(kRank0, attach::CollectState::kOn, kBegin + 20 * kSecond);
  Kernels(kRank0, kBegin + 30 * kSecond, 3, 1);
  Report(kRank1, attach::CollectState::kBusy, kBegin + 40 * kSecond);
  Dump(kBegin + 15 * kSecond, kBegin + 50 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kProfilerBusy), ElementsAre(Pair(15, 20), Pair(40, 50)));
  Dump(kBegin + 25 * kSecond, kBegin + 35 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kProfilerBusy), IsEmpty());
  // A process that has gone is kept for it as long as for records.
  history_->OnGone(kRank1, true, kBegin + 55 * kSecond);
  history_->Expire(kBegin + 60 * kSecond);
  Dump(kBegin + 45 * kSecond, kBegin + 60 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kProfilerBusy), ElementsAre(Pair(45, 55)));
  history_->Expire(kBegin + 120 * kSecond);
  Dump(kBegin + 45 * kSecond, kBegin + 120 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kProfilerBusy), IsEmpty());
  // However often it happens, little is kept of it.
  for (int64_t i = 0; i < 10'000; ++i) Report(kRank0, i % 2 == 0 ? attach::CollectState::kBusy : attach::CollectState::kOn, kBegin + (130 + i) * kSecond);
  Dump(kBegin + 130 * kSecond, kBegin + 20'000 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kProfilerBusy), SizeIs(ActivityHistory::kMaxMissing));
}

TEST_F(ActivityHistoryTest, WhatTheApplicationForbidsForAWhileIsAGap) {
  const auto forbids = [this](uint64_t attach_id, int64_t second) {
    Report(attach_id, attach::CollectState::kOff, kBegin + second * kSecond, {}, "the application does not allow it");
  };
  forbids(kRank0, 10);
  forbids(kRank0, 12);
  Report(kRank0, attach::CollectState::kOn, kBegin + 20 * kSecond);
  Dump(kBegin + 5 * kSecond, kBegin + 30 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kProfilerBusy), ElementsAre(::testing::Pair(10, 20)));
}

TEST_F(ActivityHistoryTest, TheTimeOfKindsThatWereLeftOutIsAGap) {
  using ::testing::Pair;
  using enum attach::CollectKind;
  using enum attach::CollectState;
  Report(kRank0, kPartial, kBegin + 10 * kSecond, {kNodeApi});
  Report(kRank0, kPartial, kBegin + 12 * kSecond, {kNodeApi, kKernel});
  Report(kRank0, kPartial, kBegin + 14 * kSecond, {kNodeApi});
  Report(kRank0, kOn, kBegin + 20 * kSecond);
  Report(kRank1, kPartial, kBegin + 40 * kSecond, {kNodeApi});
  Dump(kBegin + 5 * kSecond, kBegin + 50 * kSecond);
  EXPECT_THAT(Gaps(LossReason::kOverBudget, ActivityFileId::kApi), ElementsAre(Pair(10, 20), Pair(40, 50)));
  EXPECT_THAT(Gaps(LossReason::kOverBudget), ElementsAre(Pair(12, 14)));
  EXPECT_THAT(Gaps(LossReason::kOverBudget, ActivityFileId::kMemory), IsEmpty());
}

TEST_F(ActivityHistoryTest, WhatLeavesBeforeItIsReadIsAGap) {
  for (int64_t i = 0; i < 20; ++i) Kernels(kRank0, kBegin + i * kSecond, kManyKernels, 0);
  const auto read = [this](int64_t from_ns) {
    return ActivityPast(history_->Read(from_ns, [](const TrainingProcess&) { return true; }, kBegin + 21 * kSecond));
  };
  ActivityPast part = read(kBegin);
  ActivityPast all = read(kBegin);
  ASSERT_NE(part.Next(), nullptr);
  EXPECT_THAT(part.Missing(), IsEmpty());
  for (int64_t i = 20; i < 100; ++i) Kernels(kRank0, kBegin + i * kSecond, kManyKernels, 0);
  while (all.Next() != nullptr) continue;
  ASSERT_THAT(all.Missing(), SizeIs(1));
  EXPECT_EQ(all.Missing()[0].reason, LossReason::kRecorderEvicted);
  EXPECT_LE(all.Missing()[0].from_ns, kBegin + kSecond);
  EXPECT_EQ(all.Missing()[0].to_ns, kBegin + 21 * kSecond);
  // Blocks that had been copied by then are read; those behind them are not.
  while (part.Next() != nullptr) continue;
  ASSERT_THAT(part.Missing(), SizeIs(1));
  EXPECT_GT(part.Missing()[0].from_ns, kBegin + kSecond);
  EXPECT_EQ(part.Missing()[0].to_ns, kBegin + 21 * kSecond);
}

TEST_F(ActivityHistoryTest, NamesAreBounded) {
  const std::string text(4000, 'x');
  const auto fit = static_cast<uint32_t>(ActivityHistory::kMaxNamesBytes / text.size());
  for (uint32_t id = 1; id <= fit; ++id) Name(id % 2 == 0 ? kRank0 : kRank1, id, text, kBegin);
  EXPECT_GT(history_->names_refused(), 0u);
  const uint64_t refused = history_->names_refused();
  // The memory of a process that has left is free again.
  history_->OnGone(kRank0, true, kBegin);
  history_->Expire(kBegin + 100 * kSecond);
  Name(kRank1, fit + 1, "a", kBegin);
  EXPECT_EQ(history_->names_refused(), refused);
}

TEST_F(ActivityHistoryTest, RequestsOfJobsOnly) {
  EXPECT_FALSE(history_->Join(Process(9, 1000, "")));
  const attach::SessionNotice notice = history_->Notice();
  EXPECT_EQ(notice.state, attach::kRecording);
  ASSERT_TRUE(notice.collect);
  EXPECT_EQ(notice.collect->provider, attach::CollectProvider::kMspti);
  EXPECT_EQ(notice.collect->flush_ms, 2000u);
  using enum attach::CollectKind;
  EXPECT_EQ(notice.collect->kinds, (attach::CollectKinds{kKernel, kCommunication, kNodeApi, kMarker, kMemory}));
  EXPECT_EQ(ActivityHistory::Create({kBytes, kSecond}, "l0", 0).value()->kinds(), (attach::CollectKinds{kKernel, kCommunication}));
  EXPECT_EQ(history_->Problem(), "");
  Report(kRank1, attach::CollectState::kBusy);
  EXPECT_EQ(history_->Problem(), "1 of 2 processes do not collect: process 102: busy");
  EXPECT_EQ(history_->collecting(), 1u);
  Report(kRank0, attach::CollectState::kOff);
  EXPECT_EQ(history_->Problem(), "2 of 2 processes do not collect: process 101: off");
  EXPECT_EQ(history_->collecting(), 0u);
  history_->OnGone(kRank0, true, kBegin);
  history_->OnGone(kRank1, true, kBegin);
  EXPECT_EQ(history_->Problem(), "") << "an idle node is none that fails";
}

}  // namespace
}  // namespace profd
