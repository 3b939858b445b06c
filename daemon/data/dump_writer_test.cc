#include "daemon/data/dump_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "daemon/data/host_file_buffer.h"
#include "daemon/data/testing/test_dump.h"
#include "driver/records/hbm.h"

namespace profd {
namespace {

constexpr uint32_t kSocChannel = 52;
constexpr size_t kSocRecordBytes = 64;

FeedOptions FeedOfHbm(double hz) {
  return {.collector = "hbm", .device = 0, .channel = abi::kChannelHbm,
          .format = abi::FindChannelFormat(abi::kChannelHbm), .hz = hz};
}

// Of the feed's channel, at 100 Hz.
void BeginRun(WriterSession& session, DumpFeed* feed) {
  auto epoch = std::make_shared<ChannelEpoch>();
  epoch->hz = 100;
  session.SetEpoch(feed, epoch, false);
}

class DumpWriterTest : public ::testing::Test {
 protected:
  DumpWriterTest()
      : pool_(8 << 20), writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {}) {
    SessionDumpOptions options;
    options.session.session_id = "s";
    options.devices.emplace_back();
    options.owner = Myself();
    options.max_dynamic_files = 2;
    auto opened = std::make_shared<std::promise<Status>>();
    session_ = writer_.Open(std::move(options), 1, [opened](const Result<std::string>& path) {
      opened->set_value(path.status());
    });
    EXPECT_TRUE(opened->get_future().get().ok());
  }

  // A session that asked channel 52 for its interconnect part, on a channel that runs with
  // `memory_hz` for its memory part.
  DumpFeed* Interconnect(double memory_hz) {
    FeedOptions wish{.collector = "soc_profile", .device = 0, .channel = kSocChannel,
                     .format = abi::FindChannelFormat(kSocChannel), .hz = 50, .part_hz = {0, 50},
                     .record_parts = FindCollector("soc_profile")->spec->record_parts, .chip_id = 5,
                     .device_counter_hz = 50e6};
    DumpFeed* feed = session_->AddFeed(std::move(wish));
    auto epoch = std::make_shared<ChannelEpoch>();
    epoch->hz = 50;
    epoch->part_hz = {memory_hz, 50};
    session_->SetEpoch(feed, epoch, false);
    Push(feed, 1);
    AwaitWriter(writer_);
    return feed;
  }
  void Push(DumpFeed* feed, uint32_t records) {
    BlockBuilder builder = pool_.Get(records * kSocRecordBytes);
    std::memset(builder.buffer().data(), 0, records * kSocRecordBytes);
    const uint16_t head[] = {static_cast<uint16_t>(abi::SocProfileType::kSio), abi::kSocProfileMagic};
    for (size_t i = 0; i < records; ++i) std::memcpy(builder.buffer().data() + i * kSocRecordBytes, head, sizeof head);
    BlockInfo info{.channel = kSocChannel, .records = records};
    session_->Push(feed, std::move(builder).Finish(info, records * kSocRecordBytes));
  }
  // Records at 100 Hz of an HBM, from this time.
  void PushHbm(DumpFeed* feed, uint64_t seq, uint64_t from_us, uint32_t count = 10) {
    BlockBuilder builder = pool_.Get(count * sizeof(records::HbmRecord));
    for (size_t i = 0; i < count; ++i) {
      const records::HbmRecord record{.timestamp = from_us + i * 10'000, .count = 1, .event = 0, .stack = 0};
      std::memcpy(builder.buffer().data() + i * sizeof record, &record, sizeof record);
    }
    BlockInfo info{.channel = abi::kChannelHbm, .seq = seq, .records = count, .host_ns = clock_.MonotonicRawNs()};
    session_->Push(feed, std::move(builder).Finish(info, count * sizeof(records::HbmRecord)));
    Flush();
  }
  void Flush() {
    std::promise<void> flushed;
    writer_.Flush([&flushed] { flushed.set_value(); });
    flushed.get_future().wait();
  }

  TempDir tmp_;
  SystemClock clock_;
  BlockPool pool_;
  DumpWriter writer_;
  std::shared_ptr<WriterSession> session_;
};

TEST_F(DumpWriterTest, APartThatIsOffInTheChannelDoesNotThin) {
  DumpFeed* feed = Interconnect(0);
  EXPECT_EQ(feed->counters().records, 1u);
  EXPECT_FALSE(feed->thinned());
}

TEST_F(DumpWriterTest, APartThatRunsForAnotherSessionIsThinnedOut) {
  DumpFeed* feed = Interconnect(100);
  EXPECT_EQ(feed->counters().records, 1u);
  EXPECT_TRUE(feed->thinned());
}

// A recovery has no other source if profd is killed then.
TEST_F(DumpWriterTest, AChannelRunsUntilTheSessionHasItsOutcome) {
  Interconnect(0);
  const Manifest manifest = FinishTestDump(*session_);
  ASSERT_EQ(manifest.channels.size(), 1u);
  EXPECT_EQ(manifest.channels[0].state, "running");
}

// The last of a channel may be lost: no block comes after it that could say so.
TEST_F(DumpWriterTest, ReportsLossesWithoutABlockAfterThem) {
  DumpFeed* feed = Interconnect(0);
  feed->CountLoss(LossReason::kNoBuffer, 7, 448);
  session_->NoteUnfetched(feed);
  EndFacts end;
  end.raw_ns = clock_.MonotonicRawNs();
  const Manifest reported = FinishTestDump(*session_, [](Manifest&) {}, end);
  ASSERT_EQ(reported.channels.size(), 1u);
  const ManifestChannel& channel = reported.channels[0];
  ASSERT_EQ(channel.dropped.size(), 1u);
  EXPECT_EQ(channel.dropped[0].reason, LossReason::kNoBuffer);
  EXPECT_EQ(channel.dropped[0].records, 7u);
  EXPECT_EQ(channel.dropped[0].bytes, 448u);
  ASSERT_EQ(channel.gaps.size(), 2u);
  EXPECT_EQ(channel.gaps[0].reason, LossReason::kNotFetched);
  EXPECT_EQ(channel.gaps[1].reason, LossReason::kNoBuffer);
  EXPECT_EQ(feed->losses().Total().records, 7u);
  // The channel has not ended in time: the manifest would not have it.
  feed->CountLoss(LossReason::kNoBuffer, 3, 192);
  EXPECT_EQ(feed->losses().Total().records, 7u);
}

// A block that the queue had no space for is counted there, though that comes into the manifest later.
TEST_F(DumpWriterTest, WhatTheQueueLostTheDriverHasNot) {
  DumpFeed* feed = session_->AddFeed(FeedOfHbm(100));
  BeginRun(*session_, feed);
  PushHbm(feed, 1, 10'000);
  EXPECT_EQ(feed->losses().Total().records, 0u);
  PushHbm(feed, 2, 200'000);
  EXPECT_EQ(feed->losses().Total().records, 9u) << "from 110 to 190 ms";
  PushHbm(feed, 4, 500'000);
  EXPECT_EQ(feed->losses().Total().records, 9u);
}

// The next run of the channel says no more about what the records before it had left open.
TEST_F(DumpWriterTest, WhatTheDriverDroppedBeforeARestartIsCounted) {
  DumpFeed* feed = session_->AddFeed(FeedOfHbm(100));
  BeginRun(*session_, feed);
  PushHbm(feed, 1, 10'000);
  PushHbm(feed, 2, 200'000, 5);
  EXPECT_EQ(feed->losses().Total().records, 0u) << "too few to show a period";
  BeginRun(*session_, feed);
  PushHbm(feed, 3, 10'000, 30);
  EXPECT_EQ(feed->losses().Total().records, 9u) << "from 110 to 190 ms";
  PushHbm(feed, 4, 350'000, 1);
  BeginRun(*session_, feed);
  PushHbm(feed, 5, 10'000);
  EXPECT_EQ(feed->losses().Total().records, 13u) << "from 310 to 340 ms, too";
  const Manifest manifest = FinishTestDump(*session_);
  ASSERT_EQ(manifest.channels.size(), 1u);
  std::vector<LossReason> reasons;
  for (const ManifestGap& gap : manifest.channels[0].gaps) reasons.push_back(gap.reason);
  EXPECT_THAT(reasons, ::testing::ElementsAre(LossReason::kDriver, LossReason::kChannelRestart, LossReason::kDriver,
                                              LossReason::kChannelRestart));
}

// At 10 Hz no record is missing, but what the driver dropped at 210 and 220 ms is in no sum.
TEST_F(DumpWriterTest, WhatIsMissingInSumsIsAGap) {
  DumpFeed* feed = session_->AddFeed(FeedOfHbm(10));
  BeginRun(*session_, feed);
  for (uint64_t seq : {1, 2}) PushHbm(feed, seq, 10'000 + (seq - 1) * 100'000);
  for (uint64_t seq : {3, 4}) PushHbm(feed, seq, 230'000 + (seq - 3) * 100'000);
  const Manifest manifest = FinishTestDump(*session_);
  ASSERT_EQ(manifest.channels.size(), 1u);
  const ManifestChannel& channel = manifest.channels[0];
  EXPECT_EQ(channel.records, 5u);
  ASSERT_EQ(channel.gaps.size(), 1u);
  EXPECT_EQ(channel.gaps[0].reason, LossReason::kDriver);
  EXPECT_EQ(channel.gaps[0].lost_records, 0u);
}

// A gap shows with the record behind it, and for sure with the next one, which may be in a block that is lost; and blocks
// from before a loss may be written after it was counted.
TEST_F(DumpWriterTest, WhatTheDriverDroppedNearALossOfTheQueueCountsToo) {
  DumpFeed* feed = session_->AddFeed(FeedOfHbm(100));
  BeginRun(*session_, feed);
  for (uint64_t seq : {1, 2, 3}) PushHbm(feed, seq, 10'000 + (seq - 1) * 100'000);
  PushHbm(feed, 4, 330'000, 1);  // without 310 and 320 ms
  feed->CountLoss(LossReason::kQueueFull, 10, 10 * sizeof(records::HbmRecord));  // block 5
  PushHbm(feed, 6, 440'000);
  feed->CountLoss(LossReason::kQueueFull, 10, 10 * sizeof(records::HbmRecord));  // block 8
  PushHbm(feed, 7, 570'000);  // without 540 to 560 ms
  PushHbm(feed, 9, 770'000);
  const Manifest manifest = FinishTestDump(*session_);
  ASSERT_EQ(manifest.channels.size(), 1u);
  std::map<LossReason, uint64_t> lost;
  for (const ManifestLoss& loss : manifest.channels[0].dropped) lost[loss.reason] += loss.records;
  EXPECT_THAT(lost, ::testing::UnorderedElementsAre(::testing::Pair(LossReason::kDriver, 5u), ::testing::Pair(LossReason::kQueueFull, 20u)));
}

// A daemon may be killed seconds after the start: recovery has no other source of the rates.
TEST(DumpWriterManifestTest, ARunningDumpHasTheRatesWithTheFirstFlush) {
  TempDir tmp;
  SystemClock clock;
  BlockPool pool(8 << 20);
  DumpWriter writer(DumpRoot::Open(tmp / "root").value(), clock, pool, {.sync_interval_ns = 0});
  std::string path;
  const std::shared_ptr<WriterSession> session = OpenTestDump(writer, &path, {0});
  DumpFeed* feed = session->AddFeed(FeedOfHbm(10));
  BeginRun(*session, feed);
  session->EditManifest([](Manifest& manifest) { manifest.warnings.emplace_back("it runs"); });  // written at once
  BlockBuilder builder = pool.Get(sizeof(records::HbmRecord));
  const records::HbmRecord record{.timestamp = 10'000, .count = 1, .event = 0, .stack = 0};
  std::memcpy(builder.buffer().data(), &record, sizeof record);
  BlockInfo info{.channel = abi::kChannelHbm, .records = 1};
  session->Push(feed, std::move(builder).Finish(info, sizeof record));
  std::promise<void> flushed;
  writer.Flush([&flushed] { flushed.set_value(); });
  flushed.get_future().wait();
  const Manifest manifest = ParseManifest(ReadText(path + "/profd_manifest.json")).value();
  EXPECT_EQ(manifest.state, DumpState::kRunning);
  ASSERT_EQ(manifest.channels.size(), 1u);
  EXPECT_EQ(manifest.channels[0].hz_asked, 10);
  EXPECT_EQ(manifest.channels[0].channel_hz, 100);
  EXPECT_EQ(manifest.channels[0].hz_effective, 10);
  EXPECT_TRUE(manifest.channels[0].thinned);
  FinishTestDump(*session);
}

TEST(DumpWriterSpaceTest, KeepsWhatIsWrittenUntilTheNextLookFree) {
  constexpr uint64_t kMb = 1 << 20;
  EXPECT_EQ(DumpWriter::BytesToFree(12 * kMb, 10 * kMb, kMb), 0u);
  EXPECT_EQ(DumpWriter::BytesToFree(11 * kMb, 10 * kMb, kMb), 0u);
  EXPECT_EQ(DumpWriter::BytesToFree(10 * kMb, 10 * kMb, kMb), kMb);
  EXPECT_EQ(DumpWriter::BytesToFree(3 * kMb, 10 * kMb, kMb), 8 * kMb);
  EXPECT_EQ(DumpWriter::BytesToFree(9 * kMb, 10 * kMb, 0), kMb);
  // It looks again after 4 MiB.
  EXPECT_EQ(DumpWriter::BytesToFree(10 * kMb, 10 * kMb, 100 * kMb), 4 * kMb);
  EXPECT_EQ(DumpWriter::BytesToFree(0, 0, kMb), 0u) << "no limit";
}

// No volume has that much free: everything that may go does.
TEST_F(DumpWriterTest, CountsWhatGoesForTheFreeSpaceOfTheVolume) {
  DumpFeed* feed = Interconnect(0);
  EXPECT_EQ(session_->removed().records, 0u);
  writer_.SetOptions({.min_free_bytes = uint64_t{1} << 60});
  Push(feed, 300);  // 19 KiB: a slice of that much is closed, to go when there is another
  Flush();
  Push(feed, 1);
  Flush();
  EXPECT_EQ(feed->counters().records, 302u);
  EXPECT_EQ(session_->removed().records, 301u);
  EXPECT_EQ(session_->removed().for_space, 301u);
  // To finish it fails for lack of space, too.
  std::promise<Manifest> manifest;
  session_->Finish({}, [&manifest](Manifest& m) { manifest.set_value(m); }, [](const Status&) {});
  EXPECT_EQ(manifest.get_future().get().aged_for_space, 301u);
}

// One size in the list, when fetched and after a restart: that of all files in it, also those of processes.
TEST_F(DumpWriterTest, TheSizeOfADumpIsThatOfItsFiles) {
  const std::string dump = writer_.root().Names().value().at(0);
  const std::string path = tmp_.path() + "/root/" + dump;
  WriteText(path + "/host/data/of_a_process", std::string(12345, 'x'));
  FinishTestDump(*session_);
  uint64_t on_disk = 0;
  for (const std::string& file : FilesBelow(path)) on_disk += ReadText(path + "/" + file).size();
  EXPECT_GT(on_disk, 12345u);
  EXPECT_EQ(session_->bytes(), on_disk);
}

TEST_F(DumpWriterTest, AFileThatCannotBeMadeIsNotTheReasonWhereTheDumpIsGone) {
  std::filesystem::remove_all(tmp_.path() + "/root");
  DumpFeed* feed = Interconnect(0);
  Push(feed, 300);  // so much is written at once
  AwaitWriter(writer_);
  EXPECT_EQ(feed->losses().Total().records, 300u);
  EXPECT_THAT(session_->health().message(), ::testing::HasSubstr("was removed while it was written"));
}

// A machine where processes come and go: what is too much costs the newcomers' data, not the session.
TEST_F(DumpWriterTest, AFileTooManyCostsOnlyItsOwnData) {
  FeedOptions wish;
  wish.collector = "host_cpu";
  DumpFeed* feed = session_->AddFeed(std::move(wish));
  HostFileBuffer buffer(session_, feed);
  for (int reading = 0; reading < 3; ++reading) {
    for (const char* pid : {"1", "2", "3"}) {
      buffer.Add(std::string(pid) + "-CpuUsage.data", "TimeStamp:1\n");
    }
  }
  buffer.Flush();
  AwaitWriter(writer_);
  EXPECT_EQ(feed->counters().records, 6u);
  EXPECT_EQ(feed->losses().Total().records, 3u);
  EXPECT_TRUE(session_->health().ok());
  // A continuing loss is one gap with the total that was lost.
  const Manifest reported = FinishTestDump(*session_);
  ASSERT_EQ(reported.channels.size(), 1u);
  ASSERT_EQ(reported.channels[0].gaps.size(), 1u);
  EXPECT_EQ(reported.channels[0].gaps[0].lost_records, 3u);
  ASSERT_EQ(reported.channels[0].dropped.size(), 1u);
  EXPECT_EQ(reported.channels[0].dropped[0].records, 3u);
}

}  // namespace
}  // namespace profd
