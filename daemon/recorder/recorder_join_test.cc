// The ring behind the router and the writer: what a session that begins in the past gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "base/testing/temp_dir.h"
#include "daemon/data/channel_router.h"
#include "daemon/data/host_file_buffer.h"
#include "daemon/data/testing/test_dump.h"
#include "daemon/recorder/flight_recorder.h"
#include "daemon/recorder/recorder_ring.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kHbm = 1;   // timestamps in us since the channel's start, counts per interval
constexpr uint32_t kPcie = 3;  // absolute timestamps
constexpr size_t kHbmBytes = 24;
constexpr size_t kPcieBytes = 96;
constexpr int64_t kMs = kNsPerMs;

class JoinTest : public ::testing::Test {
 protected:
  JoinTest()
      : pool_(32 << 20),
        writer_(DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {}),
        router_(store_, hub_, stats_, nullptr),
        ring_(RecorderRing::Create({4 << 20, 3600 * kNsPerSecond}, 0).value()) {
    for (uint32_t channel : {kHbm, kPcie}) {
      uint32_t route = ring_->AddRoute(true);
      taps_.push_back(std::make_unique<RingTap>(ring_, route));
      router_.Declare(0, channel, 0);
      router_.SetTap(0, channel, taps_.back().get());
    }
    host_route_ = ring_->AddRoute(false);
    session_ = OpenTestDump(writer_, &path_, {0});
  }

  DumpFeed* Feed(uint32_t channel, double hz, int64_t session_start_ns) {
    FeedOptions wish{.collector = channel == kHbm ? "hbm" : "pcie", .device = 0, .channel = channel,
                     .format = abi::FindChannelFormat(channel), .hz = hz, .session_start_ns = session_start_ns};
    return session_->AddFeed(std::move(wish));
  }
  std::shared_ptr<ChannelEpoch> Run(uint32_t channel, uint32_t number, double hz, int64_t start_ns) {
    auto epoch = std::make_shared<ChannelEpoch>();
    epoch->number = number;
    epoch->hz = hz;
    epoch->start_ns = start_ns;
    router_.BeginEpoch(0, channel, epoch);
    return epoch;
  }
  // One record of `channel`, read at `host_ns`.
  void Record(uint32_t channel, uint32_t epoch, uint64_t timestamp, int64_t host_ns) {
    size_t size = channel == kHbm ? kHbmBytes : kPcieBytes;
    BlockBuilder builder = pool_.Get(size);
    ASSERT_TRUE(builder);
    std::memset(builder.buffer().data(), 0, size);
    std::memcpy(builder.buffer().data(), &timestamp, sizeof timestamp);
    uint64_t one = 1;
    if (channel == kHbm) std::memcpy(builder.buffer().data() + 8, &one, sizeof one);
    BlockInfo info{.channel = channel, .epoch = epoch, .records = 1, .host_ns = host_ns};
    router_.OnBlock(std::move(builder).Finish(info, size));
  }
  Manifest Finish() { return FinishTestDump(*session_); }
  std::string File(const std::string& name) { return ReadText(path_ + "/" + name); }
  // The 64-bit words at `offset` of the records of the channel's file.
  std::vector<uint64_t> Words(uint32_t channel, size_t offset) {
    std::string data = File(channel == kHbm ? "device_0/data/hbm.data.0.slice_0"
                                            : "device_0/data/pcie.data.0.slice_0");
    std::vector<uint64_t> words;
    size_t size = channel == kHbm ? kHbmBytes : kPcieBytes;
    for (size_t at = 0; at + size <= data.size(); at += size) {
      words.emplace_back();
      std::memcpy(&words.back(), data.data() + at + offset, sizeof(uint64_t));
    }
    return words;
  }

  TempDir tmp_;
  SystemClock clock_;
  BlockPool pool_;
  MetricStore store_;
  StreamHub hub_;
  CollectorStatsTable stats_;
  DumpWriter writer_;
  ChannelRouter router_;
  std::shared_ptr<RecorderRing> ring_;
  std::vector<std::unique_ptr<RingTap>> taps_;
  uint32_t host_route_ = 0;
  std::shared_ptr<WriterSession> session_;
  std::string path_;
};

// A session joins at any moment of a channel that delivers without a pause.
TEST_F(JoinTest, NoGapAndNoDuplicate) {
  auto epoch = Run(kPcie, 1, 10, 0);
  std::atomic<uint64_t> sent{0};
  std::atomic<bool> stop{false};
  std::thread pump([&] {
    for (uint64_t i = 1; !stop && i < 20'000; ++i) {
      Record(kPcie, 1, i, static_cast<int64_t>(i) * kMs);
      sent = i;
    }
  });
  while (sent < 300) std::this_thread::yield();
  DumpFeed* feed = Feed(kPcie, 10, 100 * kMs);
  session_->SetEpoch(feed, epoch, false);
  router_.Attach(0, kPcie, {session_, feed}, 100 * kMs);
  uint64_t joined = sent;
  while (sent < joined + 300 && sent < 19'000) std::this_thread::yield();
  router_.Detach(0, kPcie, feed);
  stop = true;
  pump.join();
  Manifest manifest = Finish();
  std::vector<uint64_t> timestamps = Words(kPcie, 0);
  ASSERT_GT(timestamps.size(), 400u);
  EXPECT_EQ(timestamps.front(), 101u);
  for (size_t i = 0; i < timestamps.size(); ++i) ASSERT_EQ(timestamps[i], 101 + i);
  EXPECT_GE(timestamps.back(), joined);
  ASSERT_THAT(manifest.channels, SizeIs(1));
  EXPECT_TRUE(manifest.channels[0].gaps.empty());
}

// The writer was so late that the ring had turned over by then.
TEST_F(JoinTest, APastThatHasLeftTheRingIsAGapOfEveryFeed) {
  Run(kPcie, 1, 10, 0);
  Run(kHbm, 1, 10, 0);
  Record(kHbm, 1, 1000, 100 * kMs);
  std::shared_ptr<BlockSource> past = ring_->Read(std::vector<bool>{true, true}, 0);
  for (uint64_t i = 0; i < 40'000; ++i) Record(kPcie, 1, i, static_cast<int64_t>(200 + i) * kMs);
  Feed(kHbm, 10, 100 * kMs);
  Feed(kPcie, 10, 100 * kMs);
  std::promise<void> replayed;
  session_->ReplayAll(past, [](uint32_t) { return nullptr; }, [&] { replayed.set_value(); });
  replayed.get_future().get();
  const Manifest manifest = Finish();
  ASSERT_THAT(manifest.channels, SizeIs(2));
  for (const ManifestChannel& channel : manifest.channels) {
    ASSERT_THAT(channel.gaps, SizeIs(1)) << channel.collector;
    EXPECT_EQ(channel.gaps[0].reason, LossReason::kRecorderEvicted);
  }
}

// Two runs of the channel in the past, a third is the present: each counts from its own start, and the
// session's timestamps from the session's, thinned to the session's rate.
TEST_F(JoinTest, TimestampsAndRatesOfEveryRun) {
  Run(kHbm, 1, 100, 1000 * kMs);
  for (uint64_t i = 1; i <= 4; ++i) {
    Record(kHbm, 1, i * 10'000, static_cast<int64_t>(1000 + i * 10) * kMs);
  }
  Run(kHbm, 2, 10, 2000 * kMs);
  for (uint64_t i = 1; i <= 2; ++i) {
    Record(kHbm, 2, i * 100'000, static_cast<int64_t>(2000 + i * 100) * kMs);
  }
  auto present = Run(kHbm, 3, 10, 3000 * kMs);
  DumpFeed* feed = Feed(kHbm, 50, 900 * kMs);
  session_->SetEpoch(feed, present, false);
  router_.Attach(0, kHbm, {session_, feed}, 900 * kMs);
  Record(kHbm, 3, 100'000, 3100 * kMs);
  Manifest manifest = Finish();
  // Of the fast run every second record, its counts added up; the others as they are.
  EXPECT_THAT(Words(kHbm, 0),
              ElementsAre(110'000u, 130'000u, 1'200'000u, 1'300'000u, 2'200'000u));
  EXPECT_THAT(Words(kHbm, 8), ElementsAre(1u, 2u, 1u, 1u, 1u));
  ASSERT_THAT(manifest.channels, SizeIs(1));
  ASSERT_THAT(manifest.channels[0].gaps, SizeIs(2));
  EXPECT_EQ(manifest.channels[0].gaps[0].reason, LossReason::kChannelRestart);
  EXPECT_EQ(manifest.channels[0].gaps[0].from_ns, 1040 * kMs);
  EXPECT_EQ(manifest.channels[0].gaps[0].host_ns, 2100 * kMs);
}

// Reported once, whether it was lost in the past, also where no block came after it, or while the session runs.
TEST_F(JoinTest, LossesOfThePastAndThePresent) {
  auto epoch = Run(kPcie, 1, 10, 0);
  Record(kPcie, 1, 5, 5 * kMs);
  router_.OnLoss({0, kPcie, 1, 6 * kMs, 3, 3 * kPcieBytes});
  DumpFeed* feed = Feed(kPcie, 10, 0);
  session_->SetEpoch(feed, epoch, false);
  router_.Attach(0, kPcie, {session_, feed}, 1);
  router_.OnLoss({0, kPcie, 1, 7 * kMs, 2, 2 * kPcieBytes});
  Record(kPcie, 1, 8, 8 * kMs);
  const Manifest manifest = Finish();
  EXPECT_THAT(Words(kPcie, 0), ElementsAre(5u, 8u));
  ASSERT_THAT(manifest.channels, SizeIs(1));
  ASSERT_THAT(manifest.channels[0].dropped, SizeIs(1));
  EXPECT_EQ(manifest.channels[0].dropped[0].reason, LossReason::kNoBuffer);
  EXPECT_EQ(manifest.channels[0].dropped[0].records, 5u);
  EXPECT_EQ(manifest.channels[0].dropped[0].bytes, 5 * kPcieBytes);
  // Which of the two the writer looks at first is left to it.
  EXPECT_THAT(manifest.channels[0].gaps,
              UnorderedElementsAre(Field(&ManifestGap::host_ns, 6 * kMs),
                                   Field(&ManifestGap::lost_records, 2u)));
  EXPECT_EQ(feed->losses().Total().records, 5u);
}

// A stop or a start that was given up may come back, and bring records, after the next run has begun.
TEST_F(JoinTest, RecordsOfAnAbandonedRunReachNoSubscriber) {
  Run(kPcie, 1, 10, 0);
  Record(kPcie, 1, 5, 5 * kMs);
  DumpFeed* feed = Feed(kPcie, 10, 6 * kMs);
  auto epoch = Run(kPcie, 2, 10, 6 * kMs);
  session_->SetEpoch(feed, epoch, false);
  router_.Attach(0, kPcie, {session_, feed});
  Record(kPcie, 1, 6, 7 * kMs);
  router_.OnLoss({0, kPcie, 1, 7 * kMs, 3, 3 * kPcieBytes});
  Record(kPcie, 2, 8, 8 * kMs);
  const Manifest manifest = Finish();
  EXPECT_THAT(Words(kPcie, 0), ElementsAre(8u));
  ASSERT_THAT(manifest.channels, SizeIs(1));
  EXPECT_TRUE(manifest.channels[0].dropped.empty());
  EXPECT_EQ(stats_[0].stale_records.load(), 1u);
  EXPECT_EQ(ring_->stats().appended, 4u);
}

// A driver may take its time to begin again: all of it is the gap.
TEST_F(JoinTest, ARestartLastsUntilTheDriverHasBegun) {
  auto before = Run(kPcie, 1, 10, 0);
  DumpFeed* feed = Feed(kPcie, 10, 1);
  session_->SetEpoch(feed, before, false);
  router_.Attach(0, kPcie, {session_, feed});
  Record(kPcie, 1, 5, 5 * kMs);
  auto after = Run(kPcie, 2, 10, clock_.MonotonicRawNs());
  session_->SetEpoch(feed, after, true);
  const int64_t begun = clock_.MonotonicRawNs() + kNsPerSecond;
  after->start_ns = begun;
  Record(kPcie, 2, 6, begun + 5 * kMs);
  const Manifest manifest = Finish();
  ASSERT_THAT(manifest.channels, SizeIs(1));
  ASSERT_THAT(manifest.channels[0].gaps, SizeIs(1));
  EXPECT_EQ(manifest.channels[0].gaps[0].reason, LossReason::kChannelRestart);
  EXPECT_EQ(manifest.channels[0].gaps[0].from_ns, 5 * kMs);
  EXPECT_EQ(manifest.channels[0].gaps[0].host_ns, begun);
}

// A session that asks for the past of a channel without one gets the present only.
TEST_F(JoinTest, AnEmptyPast) {
  auto epoch = Run(kPcie, 1, 10, 0);
  DumpFeed* feed = Feed(kPcie, 10, 0);
  session_->SetEpoch(feed, epoch, false);
  router_.Attach(0, kPcie, {session_, feed}, 1);
  Record(kPcie, 1, 5, 5 * kMs);
  EXPECT_TRUE(Finish().channels[0].gaps.empty());
  EXPECT_THAT(Words(kPcie, 0), ElementsAre(5u));
}

TEST_F(JoinTest, ADumpOfManyRoutes) {
  Run(kPcie, 1, 10, 0);
  Run(kHbm, 1, 10, 0);
  for (uint64_t i = 1; i <= 50'000; ++i) {
    Record(i % 2 == 0 ? kPcie : kHbm, 1, i * 1000, static_cast<int64_t>(i) * kMs);
  }
  std::vector<DumpFeed*> feeds = {Feed(kHbm, 10, 0), nullptr, nullptr};
  std::promise<void> done;
  uint64_t oldest = static_cast<uint64_t>(ring_->stats().oldest_ns / kMs);
  session_->ReplayAll(ring_->Read(std::vector<bool>{true, true, false}, 0),
                      [&feeds](uint32_t route) { return feeds[route]; },
                      [&done] { done.set_value(); });
  done.get_future().wait();
  Finish();
  std::vector<uint64_t> timestamps = Words(kHbm, 0);
  ASSERT_GT(timestamps.size(), 1000u);
  EXPECT_LE(timestamps.front(), (oldest + 1) * 1000);
  EXPECT_EQ(timestamps.back(), 49'999'000u);
  for (size_t i = 1; i < timestamps.size(); ++i) ASSERT_EQ(timestamps[i], timestamps[i - 1] + 2000);
  EXPECT_TRUE(File("device_0/data/pcie.data.0.slice_0").empty());
}

// The vendor's reader wants a file's blocks numbered from 0, whichever recorder counted them.
TEST_F(JoinTest, TextBlocksAreNumberedAnew) {
  auto text = [](uint64_t index, std::string_view body) {
    return "TimeStamp:5\nIndex:" + std::to_string(index) +
           "\nDataLen:" + std::to_string(body.size()) + "\n" + std::string(body) + "\n\n";
  };
  auto append = [this](std::string_view file, const std::string& lines) {
    std::string packed;
    AppendHostText(file, lines, &packed);
    BlockInfo info{.records = 1, .host_ns = kMs};
    ring_->Append(host_route_, info, std::as_bytes(std::span(packed)));
  };
  append("host_sys_cpu.data", text(41, "cpu 1") + text(42, "Index:7\n\n"));
  append("host_sys_mem.data", text(7, "MemTotal"));
  append("host_cpu.data", "time 5\n");
  append("host_sys_mem.data", "TimeStamp:5\nIndex:x\n");  // no block: as it is
  FeedOptions wish;
  wish.collector = "host_cpu";
  DumpFeed* feed = session_->AddFeed(std::move(wish));
  session_->Replay(ring_->Read(host_route_, 0), feed);
  std::string live;
  AppendHostText("host_sys_cpu.data", text(0, "cpu 3"), &live);
  BlockBuilder block = session_->NewTextBlock(live.size());
  ASSERT_TRUE(block);
  std::memcpy(block.buffer().data(), live.data(), live.size());
  session_->PushTextRecords(feed, std::move(block), live.size(), 1);
  Finish();
  EXPECT_EQ(File("host/data/host_sys_cpu.data.slice_0"),
            text(0, "cpu 1") + text(1, "Index:7\n\n") + text(2, "cpu 3"));
  EXPECT_EQ(File("host/data/host_sys_mem.data.slice_0"),
            text(0, "MemTotal") + "TimeStamp:5\nIndex:x\n");
  EXPECT_EQ(File("host/data/host_cpu.data.slice_0"), "time 5\n");
}

// Samples of two devices are one record for each poll; polls that did not take place are losses of the past.
TEST_F(JoinTest, PollsOfThePast) {
  const auto poll = [this](int64_t host_ns) {
    for (const char* line : {"1\tm\t0\t\t5\n", "1\tm\t1\t\t5\n"}) {
      std::string packed;
      AppendHostText({}, line, &packed);
      ring_->Append(host_route_, {.records = 1, .host_ns = host_ns}, std::as_bytes(std::span(packed)));
    }
  };
  poll(1 * kMs);
  ring_->AppendLoss(host_route_, {.host_ns = 5 * kMs, .records = 3}, LossReason::kLate);
  poll(5 * kMs);
  FeedOptions wish;
  wish.collector = "npu_state";
  DumpFeed* feed = session_->AddFeed(std::move(wish));
  session_->Replay(ring_->Read(host_route_, 0), feed);
  const Manifest manifest = Finish();
  EXPECT_EQ(feed->counters().records.load(), 2u);
  ASSERT_THAT(manifest.channels, SizeIs(1));
  ASSERT_THAT(manifest.channels[0].dropped, SizeIs(1));
  EXPECT_EQ(manifest.channels[0].dropped[0].reason, LossReason::kLate);
  EXPECT_EQ(manifest.channels[0].dropped[0].records, 3u);
  ASSERT_THAT(manifest.channels[0].gaps, SizeIs(1));
  EXPECT_EQ(manifest.channels[0].gaps[0].from_ns, 1 * kMs);
  EXPECT_EQ(manifest.channels[0].gaps[0].host_ns, 5 * kMs);
}

// Of 120 s, whatever was requested.
TEST(LimitOfPast, IsWhatReallyLimits) {
  EXPECT_EQ(LimitOfPast(65'661'000'000, 120'000'000'000, false), "the recorder has not been running for longer");
  EXPECT_EQ(LimitOfPast(65'661'000'000, 120'000'000'000, true), "recorder.memory_mb is full");
  EXPECT_EQ(LimitOfPast(119'999'000'000, 120'000'000'000, false), "recorder.seconds is the limit");
  EXPECT_EQ(LimitOfPast(119'999'000'000, 120'000'000'000, true), "recorder.seconds is the limit");
}

// docs/troubleshooting.md: values are refused, never clamped.
TEST(CheckLast, RefusesWhatIsOutOfRange) {
  v1::DumpRecorderRequest request;
  EXPECT_TRUE(CheckLast(request).ok()) << "all that is held";
  for (const uint64_t ms : {1ULL, 86'400'000ULL}) {
    request.set_last_ms(ms);
    EXPECT_TRUE(CheckLast(request).ok()) << ms;
  }
  for (const uint64_t ms : {0ULL, 86'400'001ULL, ~0ULL}) {
    request.set_last_ms(ms);
    const Status status = CheckLast(request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << ms;
    ASSERT_EQ(status.problems().size(), 1U);
    EXPECT_EQ(status.problems()[0].field, "last_ms");
    EXPECT_EQ(status.problems()[0].text, "must be 1ms..24h");
  }
}

// What a channel measures for sessions only is another kind than the recorder requests; it may join the run later.
TEST_F(JoinTest, WhatRunsForSessionsOnlyIsNotHeld) {
  Run(kPcie, 1, 50, 1);
  Record(kPcie, 1, 100, 10 * kMs);
  auto other = std::make_shared<ChannelEpoch>();
  other->number = 2;
  other->for_sessions = true;
  router_.BeginEpoch(0, kPcie, other);
  Record(kPcie, 2, 200, 20 * kMs);
  EXPECT_EQ(taps_[1]->Since(1), nullptr);
  other->for_sessions = false;
  Record(kPcie, 2, 300, 30 * kMs);
  std::vector<uint64_t> held;
  ReplayBlock block;
  for (auto source = taps_[1]->Since(1); source != nullptr && source->Next(&block);) {
    std::memcpy(&held.emplace_back(), block.bytes.data(), sizeof(uint64_t));
  }
  EXPECT_THAT(held, ElementsAre(100, 300));
}

}  // namespace
}  // namespace profd
