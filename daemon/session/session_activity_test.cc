#include "daemon/session/session_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/data/testing/test_dump.h"

namespace profd {
namespace {

using attach::ActivityType;
using attach::KernelRecord;
using enum attach::CollectKind;
using ::testing::HasSubstr;

constexpr int64_t kBegin = 1'000'000'000;
constexpr uint64_t kRank0 = 1;  // attach ids
constexpr uint64_t kRank1 = 2;

class SessionActivityTest : public OneDumpTest {
 protected:
  SessionActivityTest() : OneDumpTest(8 << 20) {
    EXPECT_TRUE(names_[kRank0].Learn(1, "MatMul").ok());
    EXPECT_TRUE(names_[kRank0].Learn(2, "KERNEL_AICORE").ok());
    EXPECT_TRUE(names_[kRank1].Learn(1, "Add").ok());
    EXPECT_TRUE(names_[kRank1].Learn(2, "MatMul").ok());
  }
  void Want(attach::CollectKinds kinds) {
    activity_ = std::make_unique<SessionActivity>(session_, kinds, kBegin);
  }
  std::shared_ptr<const ActivityNameTable> NamesOf(uint64_t attach_id) {
    return {std::shared_ptr<void>(), &names_[attach_id]};  // ours
  }
  template <class Record>
  void Take(uint64_t attach_id, const std::vector<Record>& records, uint64_t dropped = 0) {
    const ActivityFrame frame{attach::kTypeOf<Record>, static_cast<uint16_t>(records.size()), kBegin,
                              std::as_bytes(std::span(records))};
    activity_->Take({attach_id, static_cast<pid_t>(100 + attach_id), {}, {&frame, 1}, NamesOf(attach_id), dropped});
  }
  void TakeNames(uint64_t attach_id) {
    const ActivityFrame frame{ActivityType::kNames, 0, 0, {}};
    activity_->Take({attach_id, 0, {}, {&frame, 1}, NamesOf(attach_id)});
  }
  static KernelRecord Kernel(uint32_t after_ns, uint32_t name) {
    KernelRecord kernel{};
    kernel.start = after_ns;
    kernel.duration = 70;
    kernel.duration_high = 1;
    kernel.stream = 3;
    kernel.correlation = 9;
    kernel.name = name;
    kernel.type = 2;
    kernel.thread = 12;
    kernel.device = 5;
    kernel.logical_device = 1;
    return kernel;
  }
  static attach::LossRecord Loss(ActivityType type, attach::LossReason reason, uint64_t count, int64_t from_ns, int64_t to_ns) {
    return {static_cast<uint16_t>(type), static_cast<uint16_t>(reason), 0, count, from_ns, to_ns};
  }
  Manifest Finish(int64_t at_ns = kBegin + 500) {
    activity_->End(at_ns);
    FinishTestDump(*session_, [](Manifest& manifest) { SessionActivity::EditManifest(&manifest); });
    return ReadManifest();
  }
  std::string Names() { return ReadText(path_ + "/host/profd/activity_names.tsv"); }
  std::vector<StoredKernel> Kernels() { return RowsOf<StoredKernel>(path_, "activity_kernel"); }

  std::map<uint64_t, ActivityNameTable> names_;
  std::unique_ptr<SessionActivity> activity_;
};

const ManifestChannel& ChannelOf(const Manifest& manifest, std::string_view collector) {
  for (const ManifestChannel& channel : manifest.channels) {
    if (channel.collector == collector) return channel;
  }
  static const ManifestChannel kNone;
  ADD_FAILURE() << "no " << collector;
  return kNone;
}

TEST_F(SessionActivityTest, NamesMeanTheSameInAllProcesses) {
  Want({kKernel});
  Take<KernelRecord>(kRank0, {Kernel(10, 1), Kernel(20, 1)});
  Take<KernelRecord>(kRank1, {Kernel(30, 1), Kernel(40, 2)});
  const Manifest manifest = Finish();
  EXPECT_EQ(Names(), "id\tname\n1\tMatMul\n2\tKERNEL_AICORE\n3\tAdd\n");
  const std::vector<StoredKernel> kernels = Kernels();
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].start_ns, kBegin + 10);
  EXPECT_EQ(kernels[0].duration_ns, (uint64_t{1} << 32) + 70);
  EXPECT_EQ(kernels[0].correlation, 9u);
  EXPECT_EQ(kernels[0].stream, 3u);
  EXPECT_EQ(kernels[0].name, 1u);
  EXPECT_EQ(kernels[0].type, 2u);
  EXPECT_EQ(kernels[0].thread, 12u);
  EXPECT_EQ(kernels[0].process, 101u);
  EXPECT_EQ(kernels[0].device, 5u);
  EXPECT_EQ(kernels[0].logical_device, 1u);
  EXPECT_EQ(kernels[2].process, 102u);
  EXPECT_EQ(kernels[2].name, 3u);
  EXPECT_EQ(kernels[3].name, 1u);
  const ManifestChannel& channel = ChannelOf(manifest, "activity_kernel");
  EXPECT_EQ(channel.state, "finished");
  EXPECT_EQ(channel.records, 4u);
  EXPECT_EQ(channel.bytes, 4 * sizeof(StoredKernel));
  EXPECT_EQ(ChannelOf(manifest, "activity_names").records, 3u);
  EXPECT_EQ(activity_->CountOf(ActivityFileId::kKernel).records, 4u);
}

TEST_F(SessionActivityTest, OnlyWhatBeganInTheSession) {
  EXPECT_TRUE(names_[kRank0].Learn(3, "x").ok());
  activity_ = std::make_unique<SessionActivity>(session_, attach::CollectKinds{kKernel}, kBegin + 20);
  activity_->SetEnd(kBegin + 30);
  Take<KernelRecord>(kRank0, {Kernel(19, 1), Kernel(20, 1), Kernel(30, 1), Kernel(31, 1)});
  Take<KernelRecord>(kRank0, {Kernel(0, 3)});
  Finish();
  ASSERT_EQ(Kernels().size(), 2u);
  EXPECT_EQ(Kernels()[0].start_ns, kBegin + 20);
  EXPECT_EQ(Kernels()[1].start_ns, kBegin + 30);
  EXPECT_EQ(Names(), "id\tname\n1\tMatMul\n2\tKERNEL_AICORE\n") << "of what is there";
}

// Another session may have requested more of the same process.
TEST_F(SessionActivityTest, OnlyTheKindsOfTheRequest) {
  Want({kNodeApi});
  attach::ApiRecord api{};
  api.name = 1;
  std::vector<attach::ApiRecord> calls;
  for (attach::ApiLevel level : {attach::ApiLevel::kUnknown, attach::ApiLevel::kAcl, attach::ApiLevel::kNode,
                                 attach::ApiLevel::kRuntime}) {
    api.level = static_cast<uint16_t>(level);
    calls.push_back(api);
  }
  Take(kRank0, calls);
  Take<KernelRecord>(kRank0, {Kernel(1, 1)});
  Take(kRank0, std::vector<attach::MemoryRecord>(2));
  Finish();
  const auto rows = RowsOf<StoredApi>(path_, "activity_api");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].level, 0u) << "may be one";
  EXPECT_EQ(rows[1].level, 2u);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/host/data/activity_kernel.data.slice_0"));
}

TEST_F(SessionActivityTest, EveryKindKeepsItsFields) {
  Want({kCommunication, kMarker, kMemory, kRuntimeApi});
  attach::CommunicationRecord communication{};
  communication.count = 1000;
  communication.communicator = 1;
  communication.algorithm = 2;
  communication.bandwidth = 1.5F;
  communication.data_type = 4;
  Take(kRank0, std::vector{communication});
  attach::MarkerRecord marker{};
  marker.id = 77;
  marker.flag = 16;
  marker.source = 1;
  marker.domain = 1;
  marker.stream = 6;
  Take(kRank0, std::vector{marker});
  attach::MemoryRecord memory{};
  memory.bytes = 4096;
  memory.address = 0xABC;
  memory.operation = 4;
  memory.is_async = 1;
  memory.detail = 3;
  memory.device = 2;
  Take(kRank0, std::vector{memory});
  Finish();
  const auto communications = RowsOf<StoredCommunication>(path_, "activity_communication");
  ASSERT_EQ(communications.size(), 1u);
  EXPECT_EQ(communications[0].count, 1000u);
  EXPECT_EQ(communications[0].communicator, 1u);
  EXPECT_EQ(communications[0].algorithm, 2u);
  EXPECT_EQ(communications[0].bandwidth, 1.5F);
  EXPECT_EQ(communications[0].data_type, 4u);
  const auto markers = RowsOf<StoredMarker>(path_, "activity_marker");
  ASSERT_EQ(markers.size(), 1u);
  EXPECT_EQ(markers[0].id, 77u);
  EXPECT_EQ(markers[0].flag, 16u);
  EXPECT_EQ(markers[0].source, 1u);
  EXPECT_EQ(markers[0].domain, 1u);
  EXPECT_EQ(markers[0].stream, 6u);
  const auto memories = RowsOf<StoredMemory>(path_, "activity_memory");
  ASSERT_EQ(memories.size(), 1u);
  EXPECT_EQ(memories[0].bytes, 4096u);
  EXPECT_EQ(memories[0].address, 0xABCu);
  EXPECT_EQ(memories[0].operation, 4u);
  EXPECT_EQ(memories[0].is_async, 1u);
  EXPECT_EQ(memories[0].detail, 3u);
  EXPECT_EQ(memories[0].device, 2u);
}

// After a daemon that was killed, records lie in the ring whose names come again behind them.
TEST_F(SessionActivityTest, NamesMayComeLater) {
  Want({kKernel});
  Take<KernelRecord>(kRank0, {Kernel(10, 7)});
  EXPECT_TRUE(names_[kRank0].Learn(7, "Late").ok());
  TakeNames(kRank0);
  Take<KernelRecord>(kRank0, {Kernel(20, 7)});
  Finish();
  ASSERT_EQ(Kernels().size(), 2u);
  EXPECT_EQ(Kernels()[0].name, Kernels()[1].name);
  EXPECT_THAT(Names(), HasSubstr(std::to_string(Kernels()[0].name) + "\tLate\n"));
}

TEST_F(SessionActivityTest, LossesHaveTheirTimeAndReason) {
  Want({kKernel, kCommunication});
  const auto full = Loss(ActivityType::kCommunication, attach::LossReason::kRingFull, 5, kBegin + 100, kBegin + 200);
  const auto buffer = Loss(ActivityType::kPad, attach::LossReason::kNoBuffer, 4096, kBegin + 100, kBegin + 200);
  attach::LossRecord early = full;
  early.from_ns = early.to_ns = kBegin - 1;
  attach::LossRecord other = full;
  other.type = static_cast<uint16_t>(ActivityType::kMemory);  // not requested
  Take(kRank0, std::vector{full, buffer, early, other}, 5 + 5 + 5);
  Take(kRank1, std::vector<KernelRecord>{Kernel(250, 1)}, 3);  // and never said when
  const Manifest manifest = Finish();
  const ManifestChannel& communication = ChannelOf(manifest, "activity_communication");
  ASSERT_EQ(communication.dropped.size(), 1u);
  EXPECT_EQ(communication.dropped[0].reason, LossReason::kRingFull);
  EXPECT_EQ(communication.dropped[0].records, 5u);
  EXPECT_EQ(communication.dropped[0].from_ns, kBegin + 100);
  EXPECT_EQ(communication.dropped[0].to_ns, kBegin + 200);
  ASSERT_EQ(communication.gaps.size(), 1u);
  EXPECT_EQ(communication.gaps[0].from_ns, kBegin + 100);
  EXPECT_EQ(communication.gaps[0].host_ns, kBegin + 200);
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_EQ(kernel.dropped.size(), 2u);
  EXPECT_EQ(kernel.dropped[0].reason, LossReason::kVendorBuffer);
  EXPECT_EQ(kernel.dropped[0].bytes, 4096u);
  EXPECT_EQ(kernel.dropped[1].reason, LossReason::kRingFull);
  EXPECT_EQ(kernel.dropped[1].records, 3u);
  EXPECT_EQ(kernel.dropped[1].to_ns, kBegin + 500);
  EXPECT_EQ(activity_->CountOf(ActivityFileId::kKernel).lost.records, 3u);
}

// Of the records in it only the process's report is known, and that is of the time of its last flush.
TEST_F(SessionActivityTest, BuffersThatAreReportedLostUntilTheHandOverAreTheSessions) {
  Want({kKernel});
  activity_->Stop(kBegin + 300);
  auto buffer = Loss(ActivityType::kPad, attach::LossReason::kNoBuffer, 4096, kBegin + 900, kBegin + 900);
  // Of records that began after the stop.
  const auto full = Loss(ActivityType::kKernel, attach::LossReason::kRingFull, 4096, kBegin + 900, kBegin + 900);
  const auto cut = Loss(ActivityType::kPad, attach::LossReason::kCutBuffer, 7, kBegin + 900, kBegin + 900);
  Take(kRank0, std::vector{buffer, full, cut}, 4096);
  activity_->OnHandedOver(kRank0);
  Take(kRank0, std::vector{buffer});  // of another session
  buffer.count = 100;
  Take(kRank1, std::vector{buffer});
  const Manifest manifest = Finish(kBegin + 1000);
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_EQ(kernel.dropped.size(), 1u);
  EXPECT_EQ(kernel.dropped[0].reason, LossReason::kVendorBuffer);
  EXPECT_EQ(kernel.dropped[0].bytes, 4096u + 7u + 100u);
  EXPECT_EQ(kernel.dropped[0].from_ns, kBegin + 300);
  EXPECT_EQ(kernel.dropped[0].to_ns, kBegin + 300);
}

// A past that has ended is complete: what comes after its end belongs to no session.
TEST_F(SessionActivityTest, BuffersLostAfterTheEndOfAPastAreNotItsOwn) {
  Want({kKernel});
  activity_->SetEnd(kBegin + 300);
  Take(kRank0, std::vector{Loss(ActivityType::kPad, attach::LossReason::kNoBuffer, 4096, kBegin + 900, kBegin + 900)});
  Take<KernelRecord>(kRank0, {Kernel(10, 1)});
  EXPECT_TRUE(ChannelOf(Finish(), "activity_kernel").dropped.empty());
}

TEST_F(SessionActivityTest, ALostClockIsNoLostRecord) {
  Want({kKernel});
  const auto kernels = Loss(ActivityType::kKernel, attach::LossReason::kRingFull, 400, kBegin + 100, kBegin + 200);
  const auto clocks = Loss(ActivityType::kClock, attach::LossReason::kRingFull, 33, kBegin + 100, kBegin + 200);
  Take(kRank0, std::vector{clocks, kernels}, 400 + 2);  // 2 without a report by now
  const Manifest manifest = Finish();
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_EQ(kernel.dropped.size(), 1u);
  EXPECT_EQ(kernel.dropped[0].records, 402u);
}

TEST_F(SessionActivityTest, AProcessThatWasKilledLeavesAGap) {
  Want({kKernel});
  Take<KernelRecord>(kRank0, {Kernel(10, 1)});
  Take<KernelRecord>(kRank1, {Kernel(10, 1)});
  activity_->OnGone(kRank0, false, kBegin + 300);
  activity_->OnGone(kRank1, true, kBegin + 300);
  const Manifest manifest = Finish();
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_EQ(kernel.gaps.size(), 1u);
  EXPECT_EQ(kernel.gaps[0].reason, LossReason::kProcessEnded);
  EXPECT_EQ(kernel.gaps[0].lost_records, 0u) << "unknown";
  EXPECT_EQ(kernel.gaps[0].host_ns, kBegin + 300);
}

TEST_F(SessionActivityTest, RecordsThatWereNotHandedOverInTimeAreAGap) {
  Want({kKernel});
  Take<KernelRecord>(kRank0, {Kernel(10, 1)});
  activity_->SetEnd(kBegin + 300);
  activity_->OnNotHandedOver(kRank0, kBegin + 900);
  activity_->OnNotHandedOver(kRank1, kBegin + 900);  // never had one
  const Manifest manifest = Finish();
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_FALSE(kernel.gaps.empty());
  EXPECT_EQ(kernel.gaps.back().reason, LossReason::kNotFetched);
  EXPECT_EQ(kernel.gaps.back().from_ns, kBegin);
  EXPECT_EQ(kernel.gaps.back().host_ns, kBegin + 300);
}

TEST_F(SessionActivityTest, ARingThatIsGivenUpIsAGapToTheEnd) {
  Want({kKernel});
  Take<KernelRecord>(kRank0, {Kernel(10, 1)});
  Take<KernelRecord>(kRank1, {Kernel(10, 1)});
  activity_->OnGivenUp(kRank0);
  const Manifest manifest = Finish();
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_EQ(kernel.gaps.size(), 1u);
  EXPECT_EQ(kernel.gaps[0].reason, LossReason::kNotFetched);
}

TEST_F(SessionActivityTest, KindsAProcessLeavesOutAreLossesOfThatTime) {
  Want({kKernel, kAclApi, kRuntimeApi});
  Take<KernelRecord>(kRank0, {Kernel(10, 1)});
  activity_->OnLeftOut(kRank0, {kRuntimeApi}, kBegin + 100);
  activity_->OnLeftOut(kRank0, {kRuntimeApi, kAclApi}, kBegin + 200);
  activity_->OnLeftOut(kRank0, {}, kBegin + 300);
  activity_->OnLeftOut(kRank1, {kKernel, kMarker}, kBegin + 350);
  const Manifest manifest = Finish(kBegin + 400);
  const ManifestChannel& api = ChannelOf(manifest, "activity_api");
  ASSERT_EQ(api.dropped.size(), 1u);
  EXPECT_EQ(api.dropped[0].reason, LossReason::kOverBudget);
  EXPECT_EQ(api.dropped[0].from_ns, kBegin + 100);
  EXPECT_EQ(api.dropped[0].to_ns, kBegin + 300);
  EXPECT_EQ(api.dropped[0].records, 0u) << "unknown";
  const ManifestChannel& kernel = ChannelOf(manifest, "activity_kernel");
  ASSERT_EQ(kernel.gaps.size(), 1u);
  EXPECT_EQ(kernel.gaps[0].from_ns, kBegin + 350);
  EXPECT_EQ(kernel.gaps[0].host_ns, kBegin + 400);
  // Marks of the process were not requested.
  for (const ManifestChannel& channel : manifest.channels) EXPECT_NE(channel.collector, "activity_marker");
}

TEST_F(SessionActivityTest, TheTimeOfAnotherProfilerIsAGap) {
  Want({kKernel, kAclApi});
  activity_->AddMissing({LossReason::kProfilerBusy, std::nullopt, kBegin - 100, kBegin + 5});  // as the flight recorder has it
  activity_->OnBusy(kRank0, false, kBegin + 10);
  Take<KernelRecord>(kRank0, {Kernel(10, 1)});
  activity_->OnBusy(kRank0, true, kBegin + 100);
  activity_->OnBusy(kRank0, true, kBegin + 150);
  activity_->OnBusy(kRank0, false, kBegin + 300);
  activity_->OnBusy(kRank1, true, kBegin + 350);
  const Manifest manifest = Finish(kBegin + 400);
  std::vector<std::pair<int64_t, int64_t>> gaps;
  for (const ManifestGap& gap : ChannelOf(manifest, "activity_kernel").gaps) {
    EXPECT_EQ(gap.reason, LossReason::kProfilerBusy);
    gaps.emplace_back(gap.from_ns - kBegin, gap.host_ns - kBegin);
  }
  EXPECT_THAT(gaps, ::testing::ElementsAre(::testing::Pair(0, 5), ::testing::Pair(100, 300), ::testing::Pair(350, 400)));
}

TEST_F(SessionActivityTest, TheLongestTimeOfAnotherProfilerIsATextToo) {
  constexpr int64_t kMs = 1'000'000;
  Want({kKernel});
  activity_->OnBusy(kRank0, false, kBegin);
  EXPECT_EQ(activity_->BusyText(), "");
  activity_->OnBusy(kRank0, true, kBegin - 100 * kMs);  // of the session: from its begin on
  activity_->OnBusy(kRank0, false, kBegin + 1500 * kMs);
  activity_->OnBusy(kRank1, true, kBegin + 1000 * kMs);
  activity_->OnBusy(kRank1, false, kBegin + 1600 * kMs);
  activity_->OnBusy(kRank0, true, kBegin + 1800 * kMs);
  Finish(kBegin + 2100 * kMs);
  EXPECT_EQ(activity_->BusyText(),
            "no records for 1.800 s: another profiler ran in the process, its device was kept for tuning, or the application did not "
            "allow it");
}

TEST_F(SessionActivityTest, CostsOfAProcessAddUp) {
  Want({kKernel});
  ActivityBatch batch{kRank0, 101, {}, {}, NamesOf(kRank0)};
  batch.cost_ns = 500;
  activity_->Take(batch);
  activity_->Take(batch);
  EXPECT_EQ(activity_->CostOf(101), 1000u);
  EXPECT_EQ(activity_->CostOf(102), 0u);
  Finish();
}

TEST_F(SessionActivityTest, NamesThatWereTooManyAreSaid) {
  Want({kKernel});
  EXPECT_EQ(activity_->NamesText(), "");
  ActivityBatch batch{kRank0, 101, {}, {}, NamesOf(kRank0)};
  batch.names_refused = 30;
  activity_->Take(batch);
  activity_->Take(batch);
  batch.pid = 102;
  batch.names_refused = 1;
  activity_->Take(batch);
  Finish();
  EXPECT_EQ(activity_->NamesText(),
            "names were too many and are recorded as \"(too many names)\": 60 of process 101, 1 of process 102 "
            "(which can have 65534 different ones, 8 MiB)");
}

TEST(SessionNames, AreBoundedByWhatTheirUserHolds) {
  const auto memory = std::make_shared<UserMemory>(1024, 4096);
  SessionNames names(memory, 1000);
  ActivityNameTable table;
  for (uint32_t id = 1; id <= 20; ++id) ASSERT_TRUE(table.Learn(id, std::string(100, static_cast<char>('a' + id))).ok());
  SessionNames::Process& process = names.ProcessOf(1);
  // More than 100 bytes each.
  EXPECT_EQ(names.IdOf(process, 1, table), 1u);
  for (uint32_t id = 2; id <= 20; ++id) names.IdOf(process, id, table);
  EXPECT_GE(names.refused(), 20u - 1024 / 100);
  EXPECT_EQ(names.TakeFresh().back().second, "(too many names)");
  EXPECT_FALSE(HeldMemory(memory, 1000).Grow(1024));
  names.Forget(1);
}

TEST(SessionNames, AreBounded) {
  SessionNames names;
  ActivityNameTable table;
  ASSERT_TRUE(table.Learn(1, std::string(4096, 'a')).ok());
  SessionNames::Process& process = names.ProcessOf(1);
  for (uint32_t i = 0; i < SessionNames::kMaxNames; ++i) {
    EXPECT_NE(names.IdOf(process, i + 2, table), 0u);  // numbers whose text is not known
  }
  // What is too many has one number together, which says so.
  EXPECT_EQ(names.IdOf(process, SessionNames::kMaxNames + 2, table), SessionNames::kMaxNames + 1);
  EXPECT_EQ(names.IdOf(process, 1, table), SessionNames::kMaxNames + 1);
  EXPECT_EQ(names.refused(), 2u);
  EXPECT_THAT(names.TakeFresh(), ::testing::ElementsAre(::testing::Pair(SessionNames::kMaxNames + 1, "(too many names)")));
}

}  // namespace
}  // namespace profd
