#include "driver/channel_pump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/bytes.h"
#include "driver/testing/recording_sink.h"
#include "driver/testing/scripted_hal.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::Call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordingSink;
using testing::ScriptedHal;
using testing::StartReading;

constexpr uint32_t kHbm = abi::kChannelHbm;
constexpr uint32_t kUnknown = abi::kChannelAicore;  // no format: bytes pass as they are

Bytes Hbm(uint64_t first_us, int records = 1) {
  Bytes bytes(24 * static_cast<size_t>(records));
  for (size_t i = 0; i < static_cast<size_t>(records); ++i) {
    StoreUnchecked(std::span(bytes), 24 * i, first_us + 1000 * i);
    StoreUnchecked(std::span(bytes), 24 * i + 8, uint64_t{77});
  }
  return bytes;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A driver whose every call takes 1 ms: the pump looks at the clock before and after each.
class SlowClock final : public Clock {
 public:
  int64_t MonotonicRawNs() const override { return real_.MonotonicRawNs(); }
  int64_t SteadyNs() const override { return steady_ns_ += kNsPerMs; }
  int64_t WallNs() const override { return real_.WallNs(); }
  uint64_t CpuCounter() const override { return real_.CpuCounter(); }

 private:
  SystemClock real_;
  mutable std::atomic<int64_t> steady_ns_{0};
};

class ChannelPumpTest : public ::testing::Test {
 protected:
  ChannelPumpTest() {
    options_.poll_timeout_seconds = 0;
    options_.min_poll_interval_ns = 1000;
    options_.min_backoff_ns = 1000;
    options_.max_backoff_ns = 100'000;
    options_.max_idle_backoff_ns = 100'000;
  }
  ChannelPump& Pump() {
    if (!pump_) pump_.emplace(hal_.Library(), clock_, pool_, sink_, options_);
    return *pump_;
  }
  void Add(uint32_t device, uint32_t channel, uint32_t epoch = 1) {
    Status status = StartReading(Pump(), device, channel, abi::FindChannelFormat(channel), epoch);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  int64_t MuchLater() const { return clock_.SteadyNs() + 100 * kNsPerSecond; }
  Deadline Soon() const { return {clock_.SteadyNs() + 100 * kNsPerSecond}; }

  SystemClock clock_;
  BlockPool pool_{4 << 20};
  RecordingSink sink_;
  PumpOptions options_;
  ScriptedHal hal_;  // after the sink: waits for threads that are still inside
  std::optional<ChannelPump> pump_;
};

TEST_F(ChannelPumpTest, DeliversCompleteRecordsInOrder) {
  Add(3, kHbm, 7);
  hal_.Data(3, kHbm, Hbm(1000, 5));
  sink_.WaitForRecords(5);
  hal_.Data(3, kHbm, Hbm(6000, 5));
  sink_.WaitForRecords(10);
  EXPECT_EQ(sink_.bytes(), Hbm(1000, 10));
  uint64_t seq = 0;
  for (const BlockInfo& info : sink_.infos()) {
    EXPECT_EQ(info.device, 3u);
    EXPECT_EQ(info.channel, kHbm);
    EXPECT_EQ(info.epoch, 7u);
    EXPECT_EQ(info.seq, ++seq);
    EXPECT_GT(info.host_ns, 0);
  }
  EXPECT_TRUE(sink_.losses().empty());
}

TEST_F(ChannelPumpTest, ARecordInPiecesIsDeliveredComplete) {
  Add(0, kHbm);
  Bytes all = Hbm(1000, 3);
  hal_.Data(0, kHbm, {all.begin(), all.begin() + 10});
  hal_.Data(0, kHbm, {all.begin() + 10, all.begin() + 11});
  hal_.Data(0, kHbm, {all.begin() + 11, all.begin() + 50});
  sink_.WaitForRecords(2);
  hal_.Data(0, kHbm, {all.begin() + 50, all.end()});
  sink_.WaitForRecords(3);
  EXPECT_EQ(sink_.bytes(), all);
  for (const BlockInfo& info : sink_.infos()) EXPECT_GT(info.records, 0u);
}

Bytes Text(std::string_view text) {
  const auto bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

// dump-format, "How profd writes", 4: timestamps of text have nine digits, zero-padded.
TEST_F(ChannelPumpTest, NanosecondsAreDeliveredWithNineDigits) {
  Add(0, abi::kChannelHccs);
  hal_.Data(0, abi::kChannelHccs, Text("52160:9619850 1 2\n52160:109619850 3 4\n"));
  sink_.WaitForRecords(2);
  hal_.Data(0, abi::kChannelHccs, Text("52161:7 5 6\n 52161:20 7 8\n52161:3"));
  sink_.WaitForRecords(4);
  hal_.Data(0, abi::kChannelHccs, Text("0 9 9\n"));
  sink_.WaitForRecords(5);
  const Bytes all = sink_.bytes();
  EXPECT_EQ(AsText(all),
            "52160:009619850 1 2\n52160:109619850 3 4\n52161:000000007 5 6\n 52161:000000020 7 8\n52161:000000030 9 9\n");
  EXPECT_EQ(Pump().Counters(0, abi::kChannelHccs).garbage_bytes, 0u);
}

// Padded, a read may be larger than a block.
TEST_F(ChannelPumpTest, PaddedLinesTakeAsManyBlocksAsTheyNeed) {
  constexpr size_t kLines = 25'000;
  std::string lines;
  std::string padded;
  for (size_t i = 0; i < kLines; ++i) {
    lines += "0:7 1 1\n";
    padded += "0:000000007 1 1\n";
  }
  ASSERT_GT(padded.size(), BlockPool::kMaxBlockBytes);
  Add(0, abi::kChannelHccs);
  hal_.Data(0, abi::kChannelHccs, Text(lines));
  sink_.WaitForRecords(kLines);
  const Bytes all = sink_.bytes();
  EXPECT_EQ(AsText(all), padded);
  EXPECT_TRUE(sink_.losses().empty());
}

TEST_F(ChannelPumpTest, SurvivesEveryPollCode) {
  hal_.PollCodes({-1, -2, -3, -4, -5, -6, -14, -1, 7, 1000, 0, -4});
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000));
  sink_.WaitForRecords(1);
  EXPECT_THAT(Pump().PollErrors(),
              ElementsAre(std::pair(-6, 1u), std::pair(-3, 1u), std::pair(-1, 2u), std::pair(7, 1u),
                          std::pair(1000, 1u)));
}

TEST_F(ChannelPumpTest, ADriverThatInventsCodesDoesNotGrowUs) {
  std::vector<int> codes;
  for (int code = -100; code > -300; --code) codes.push_back(code);
  hal_.PollCodes(codes);
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000));
  sink_.WaitForRecords(1);
  EXPECT_LE(Pump().PollErrors().size(), 33u);
}

TEST_F(ChannelPumpTest, ReadErrorsAreCountedAndSurvived) {
  Add(0, kHbm);
  hal_.ReadCode(0, kHbm, -1);
  hal_.Data(0, kHbm, Hbm(1000));
  hal_.ReadCode(0, kHbm, -4);
  hal_.Data(0, kHbm, Hbm(2000));
  hal_.ReadCode(0, kHbm, 1 << 30);  // more than the buffer holds
  hal_.Data(0, kHbm, Hbm(3000));
  sink_.WaitForRecords(3);
  ChannelCounters counters = Pump().Counters(0, kHbm);
  EXPECT_EQ(counters.read_errors, 2u);
  EXPECT_EQ(counters.last_code, 1 << 30);
  EXPECT_EQ(counters.reads, 3u);
  EXPECT_EQ(counters.bytes, 72u);
  EXPECT_EQ(counters.records, 3u);
}

TEST_F(ChannelPumpTest, GarbageIsSkippedAndCounted) {
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000) + Bytes(13, std::byte{0xEE}) + Hbm(2000, 2));
  sink_.WaitForRecords(3);
  EXPECT_EQ(sink_.bytes(), Hbm(1000, 3));
  EXPECT_EQ(Pump().Counters(0, kHbm).garbage_bytes, 13u);
  EXPECT_EQ(Pump().Counters(0, kHbm).garbage_events, 1u);
}

TEST_F(ChannelPumpTest, ChannelsWithoutAFormatPassAsTheyAre) {
  Add(0, kUnknown);
  hal_.Data(0, kUnknown, Bytes(37, std::byte{5}));
  sink_.WaitForBytes(37);
  EXPECT_EQ(sink_.infos()[0].records, 0u);
}

TEST_F(ChannelPumpTest, ManyDevicesAndChannelsAllGetTheirTurn) {
  const std::vector<uint32_t> channels = {1, 8, 43, 44, 45, 46, 47};
  for (uint32_t device = 0; device < 8; ++device) {
    for (uint32_t channel : channels) Add(device, channel);
  }
  for (uint32_t device = 0; device < 8; ++device) {
    for (uint32_t channel : channels) hal_.Data(device, channel, Hbm(1000, 2));
  }
  sink_.WaitForBytes(8 * channels.size() * 48);
  size_t visited = 0;
  Pump().VisitCounters([&](uint32_t, uint32_t, const ChannelCounters& counters) {
    ++visited;
    EXPECT_EQ(counters.bytes, 48u);
  });
  EXPECT_EQ(visited, 8 * channels.size());
}

TEST_F(ChannelPumpTest, ABacklogBeyondOneRoundIsReadThoughReportedOnce) {
  options_.channels.round_bytes = 2400;
  options_.scratch_bytes = 16384;
  hal_.set_edge_triggered(true);
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000, 20000));
  sink_.WaitForRecords(20000);
  EXPECT_EQ(sink_.bytes(), Hbm(1000, 20000));
}

TEST_F(ChannelPumpTest, AChannelThatHasNoEndInSmallPiecesLeavesTheOthersTheirTurn) {
  const SlowClock slow;
  hal_.Hold(Call::kPoll);
  pump_.emplace(hal_.Library(), slow, pool_, sink_, options_);
  Add(0, kHbm);
  Add(1, kHbm);
  for (uint64_t i = 0; i < 1000; ++i) hal_.Data(0, kHbm, Hbm(1000 + 1000 * i));
  hal_.Data(1, kHbm, Hbm(1000));
  hal_.Release(Call::kPoll);  // reports both
  sink_.WaitForRecords(1001);
  uint64_t before = 0;
  for (const BlockInfo& info : sink_.infos()) {
    if (info.device == 1) break;
    before += info.records;
  }
  EXPECT_LE(before, 10u);
  pump_.reset();  // before its clock
}

TEST_F(ChannelPumpTest, AChannelThatIsReadyLaterDoesNotWaitForTheEndOfABacklog) {
  const SlowClock slow;
  hal_.set_edge_triggered(true);
  hal_.Hold(Call::kPoll);
  pump_.emplace(hal_.Library(), slow, pool_, sink_, options_);
  Add(0, kHbm);
  for (uint64_t i = 0; i < 1000; ++i) hal_.Data(0, kHbm, Hbm(1000 + 1000 * i));
  hal_.Release(Call::kPoll);
  sink_.WaitForRecords(1000);
  // 50 ms of backlog are some 25 reads.
  EXPECT_GE(Pump().stats().polls, 15u);
  pump_.reset();  // before its clock
}

TEST_F(ChannelPumpTest, WithoutBlocksItCountsAndReportsTheLoss) {
  BlockPool small(800);  // one block of the smallest class
  sink_.set_keep_blocks(true);
  ChannelPump pump(hal_.Library(), clock_, small, sink_, options_);
  ASSERT_TRUE(StartReading(pump, 0, kHbm, abi::FindChannelFormat(kHbm), 1).ok());
  hal_.Data(0, kHbm, Hbm(1000, 2));
  sink_.WaitForRecords(2);
  hal_.Data(0, kHbm, Hbm(3000, 3));
  sink_.WaitForLosses(1);  // at once: there may be no block after it
  const BlockLoss loss = sink_.losses().front();
  EXPECT_EQ(loss.records, 3u);
  EXPECT_EQ(loss.bytes, 72u);
  EXPECT_EQ(loss.channel, kHbm);
  EXPECT_EQ(loss.epoch, 1u);
  EXPECT_GE(loss.host_ns, sink_.infos().back().host_ns);
  EXPECT_EQ(pump.Counters(0, kHbm).dropped_records, 3u);
  EXPECT_EQ(pump.Counters(0, kHbm).dropped_bytes, 72u);
  sink_.set_keep_blocks(false);
  hal_.Data(0, kHbm, Hbm(6000, 1));
  sink_.WaitForRecords(3);
  EXPECT_EQ(sink_.infos().back().seq, 3u);  // one is missing before it
  EXPECT_EQ(sink_.losses().size(), 1u);
}

TEST_F(ChannelPumpTest, ForeignPairsAreIgnoredAndDoNotCrowdOutOurs) {
  for (uint32_t channel = 100; channel < 130; ++channel) hal_.Phantom(0, channel);
  hal_.Phantom(5000, 1);
  hal_.Phantom(0, 0xFFFFFFFF);
  Add(9, kHbm);
  hal_.Data(9, kHbm, Hbm(1000));
  sink_.WaitForRecords(1);
  EXPECT_GT(Pump().stats().foreign_hits, 0u);
}

TEST_F(ChannelPumpTest, AddAndRemoveSayWhatIsWrong) {
  Add(0, kHbm);
  EXPECT_EQ(Pump().table()->Add(0, kHbm, nullptr, 2).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Pump().table()->Add(64, kHbm, nullptr, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Pump().table()->Add(0, 0, nullptr, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Pump().table()->Add(0, 160, nullptr, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Pump().table()->Remove(0, 3).code(), StatusCode::kNotFound);
  EXPECT_TRUE(Pump().table()->Remove(0, kHbm).ok());
  EXPECT_EQ(Pump().table()->Remove(0, kHbm).code(), StatusCode::kNotFound);
  EXPECT_EQ(Pump().table()->Drain(0, kHbm, 100, Soon()).code(), StatusCode::kNotFound);
}

TEST_F(ChannelPumpTest, CountersAndSequenceSurviveARestart) {
  Add(0, kHbm, 1);
  hal_.Data(0, kHbm, Hbm(1000, 1) + Bytes(5));
  sink_.WaitForRecords(1);
  ASSERT_TRUE(Pump().table()->Drain(0, kHbm, 1 << 20, Soon()).ok());
  ASSERT_TRUE(Pump().table()->Remove(0, kHbm).ok());
  EXPECT_EQ(Pump().Counters(0, kHbm).garbage_bytes, 5u);
  Add(0, kHbm, 2);
  hal_.Data(0, kHbm, Hbm(10, 1));  // time starts anew
  sink_.WaitForRecords(2);
  EXPECT_EQ(sink_.infos().back().seq, 2u);
  EXPECT_EQ(sink_.infos().back().epoch, 2u);
  EXPECT_EQ(Pump().Counters(0, kHbm).records, 2u);
}

TEST_F(ChannelPumpTest, DrainReadsEverythingOnTheCallersThread) {
  hal_.Hold(Call::kPoll);
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000, 30000));
  hal_.Data(0, kHbm, Hbm(30'001'000, 1));
  EXPECT_TRUE(Pump().table()->Drain(0, kHbm, 8 << 20, Soon()).ok());
  EXPECT_EQ(sink_.bytes(), Hbm(1000, 30001));
  hal_.Data(0, kHbm, Hbm(40'000'000, 10000));
  EXPECT_EQ(Pump().table()->Drain(0, kHbm, 1000, Soon()).code(), StatusCode::kResourceExhausted);
}

TEST_F(ChannelPumpTest, DrainGivesUpWhenAnotherThreadIsStuckInTheChannel) {
  hal_.Hold(Call::kRead, 0);
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000));
  hal_.WaitUntilHeld(1);
  EXPECT_EQ(Pump().table()->Drain(0, kHbm, 1000, Deadline{0}).code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ChannelPumpTest, AStuckReadCostsOnlyItsDevice) {
  hal_.Hold(Call::kRead, 0);
  const int64_t before = clock_.SteadyNs();
  Add(0, kHbm);
  Add(1, kHbm);
  hal_.Data(0, kHbm, Hbm(1000, 2));
  hal_.WaitUntilHeld(1);
  Pump().CheckStuck(before);  // not yet
  EXPECT_FALSE(Pump().IsDeviceStuck(0));
  Pump().CheckStuck(MuchLater());
  EXPECT_TRUE(Pump().IsDeviceStuck(0));
  EXPECT_THAT(sink_.events(), ElementsAre("stuck 0"));
  EXPECT_THAT(sink_.why(), HasSubstr("has not returned"));
  EXPECT_EQ(Pump().stats().threads_abandoned, 1);
  EXPECT_EQ(Pump().table()->Add(0, 8, nullptr, 1).code(), StatusCode::kUnavailable);
  hal_.Data(1, kHbm, Hbm(1000, 3));
  sink_.WaitForRecords(3);
  for (const BlockInfo& info : sink_.infos()) EXPECT_EQ(info.device, 1u);
  Pump().CheckStuck(MuchLater());  // nothing new
  hal_.Release(Call::kRead, 0);
  sink_.WaitForEvents(2);
  EXPECT_THAT(sink_.events(), ElementsAre("stuck 0", "recovered 0"));
  sink_.WaitForRecords(5);
  hal_.Data(0, kHbm, Hbm(3000, 2));
  sink_.WaitForRecords(7);
  EXPECT_FALSE(Pump().IsDeviceStuck(0));
  uint64_t seq = 0;
  for (const BlockInfo& info : sink_.infos()) {
    if (info.device != 0) continue;
    EXPECT_EQ(info.seq, ++seq);
  }
}

TEST_F(ChannelPumpTest, TheNextThreadReadsWhatAStuckOneHadYetToRead) {
  hal_.set_edge_triggered(true);
  hal_.Hold(Call::kPoll);
  Add(0, kHbm);
  Add(1, kHbm);
  Add(2, kHbm);
  hal_.WaitUntilHeld(1);
  hal_.Hold(Call::kRead, 0);
  for (uint32_t device = 0; device < 3; ++device) hal_.Data(device, kHbm, Hbm(1000));
  hal_.Release(Call::kPoll);  // reports all three, once
  // It may still be leaving the poll; the read is next.
  while (sink_.events().empty()) {
    Pump().CheckStuck(MuchLater());
    std::this_thread::yield();
  }
  sink_.WaitForRecords(2);
  hal_.Release(Call::kRead, 0);
  sink_.WaitForRecords(3);
}

TEST_F(ChannelPumpTest, AStuckPollIsReplacedAndItsResultIsNotLost) {
  hal_.set_edge_triggered(true);
  hal_.Hold(Call::kPoll);
  Add(0, kHbm);
  hal_.WaitUntilHeld(1);
  Pump().CheckStuck(MuchLater());
  hal_.WaitUntilHeld(2);
  EXPECT_EQ(Pump().stats().threads_started, 2u);
  EXPECT_TRUE(sink_.events().empty());
  hal_.Data(0, kHbm, Hbm(1000));
  hal_.Release(Call::kPoll);  // one of the two reports it, perhaps the abandoned one
  sink_.WaitForRecords(1);
  while (Pump().stats().threads_abandoned != 0) std::this_thread::yield();
  EXPECT_TRUE(Pump().stats().running);
}

TEST_F(ChannelPumpTest, AbandonedThreadsAreLimited) {
  options_.max_abandoned_threads = 3;
  hal_.Hold(Call::kPoll);
  Add(0, kHbm);
  for (int i = 1; i <= 3; ++i) {
    hal_.WaitUntilHeld(i);
    Pump().CheckStuck(MuchLater());
  }
  EXPECT_EQ(Pump().stats().threads_abandoned, 3);
  EXPECT_FALSE(Pump().stats().running);
  Pump().CheckStuck(MuchLater());
  EXPECT_EQ(Pump().stats().threads_started, 3u);
  hal_.Release(Call::kPoll);
  while (Pump().stats().threads_abandoned != 0) std::this_thread::yield();
  Pump().CheckStuck(MuchLater());
  EXPECT_TRUE(Pump().stats().running);
  hal_.Data(0, kHbm, Hbm(1000));
  sink_.WaitForRecords(1);
}

TEST_F(ChannelPumpTest, TheDestructorLeavesAStuckThreadBehind) {
  hal_.Hold(Call::kRead, 0);
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000));
  hal_.WaitUntilHeld(1);
  pump_.reset();
  hal_.Release(Call::kRead, 0);
  // Whatever the thread does from here on, the sink hears nothing of it.
  EXPECT_TRUE(sink_.infos().empty());
}

TEST_F(ChannelPumpTest, RemoveWhileAReadIsStuckReportsIt) {
  hal_.Hold(Call::kRead, 0);
  Add(0, kHbm);
  hal_.Data(0, kHbm, Hbm(1000));
  hal_.WaitUntilHeld(1);
  EXPECT_EQ(Pump().table()->Remove(0, kHbm).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Pump().table()->Remove(0, kHbm).code(), StatusCode::kNotFound);
}

TEST_F(ChannelPumpTest, AddRemoveAndCountersWhileDataFlows) {
  std::atomic<bool> stop{false};
  std::thread feeder([&] {
    for (uint64_t us = 0; !stop; us += 1000) {
      hal_.Data(0, kHbm, Hbm(us));
      hal_.Data(1, kUnknown, Bytes(100));
      std::this_thread::yield();
    }
  });
  for (uint32_t epoch = 1; epoch <= 100; ++epoch) {
    Add(0, kHbm, epoch);
    Add(1, kUnknown, epoch);
    Pump().table()->Drain(0, kHbm, 1 << 20, Soon()).Ignore();
    Pump().CheckStuck(clock_.SteadyNs());
    EXPECT_TRUE(Pump().table()->Remove(0, kHbm).ok());
    EXPECT_TRUE(Pump().table()->Remove(1, kUnknown).ok());
  }
  stop = true;
  feeder.join();
  uint32_t epoch = 0;
  for (const BlockInfo& info : sink_.infos()) {
    if (info.device != 0) continue;
    EXPECT_GE(info.epoch, epoch);
    epoch = info.epoch;
  }
}

}  // namespace
}  // namespace profd
