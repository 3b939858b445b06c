#include "daemon/session/channel_arbiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <span>

#include "base/bytes.h"
#include "daemon/data/testing/test_dump.h"
#include "daemon/session/arbiter_test_support.h"
#include "driver/records/lpm.h"
#include "driver/rooted_fs.h"
#include "driver/testing/scripted_hal.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using profd::testing::Call;
using profd::testing::ScriptedHal;

TEST_F(ArbiterTest, OneChannelServesAllWhoAskForTheSameRate) {
  auto a = Claim("hccs", 50);
  auto b = Claim("hccs", 50);
  EXPECT_EQ(Answer(a).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(Answer(b).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(Answer(b).hz, 50);
  Release(a);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 20"));
  Release(b);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 20", "stop 0/9"));
}

TEST_F(ArbiterTest, FasterNewcomerRestartsSlowerOneJoins) {
  auto slow = Claim("hccs", 10);
  auto fast = Claim("hccs", 50);
  EXPECT_THAT(DriverCalls(),
              ElementsAre("start 0/9 period 100", "stop 0/9", "start 0/9 period 20"));
  EXPECT_EQ(Answer(slow).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(Answer(slow).hz, 10);
  EXPECT_EQ(Answer(fast).hz, 50);
  auto slower = Claim("hccs", 5);
  EXPECT_EQ(Answer(slower).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(DriverCalls().size(), 3U);
  // The others continue when the fast one leaves.
  Release(fast);
  EXPECT_EQ(DriverCalls().size(), 3U);
  Release(slow);
  Release(slower);
  EXPECT_EQ(DriverCalls().back(), "stop 0/9");
}

TEST_F(ArbiterTest, BusyChannelIsSaidAndTriedAgain) {
  hal_.Code(Call::kStart, -10);
  auto claim = Claim("hccs", 50);
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_BUSY);
  EXPECT_THAT(Answer(claim).detail, HasSubstr("another process"));
  hal_.Code(Call::kStart, 0);
  ASSERT_TRUE(Eventually([&] {
    OnControl([&] { arbiter_->Tick(); });
    return Answer(claim).state == v1::Outcome::RESULT_RUNNING;
  }));
  Release(claim);
}

// The driver hands out the rest at the stop, and its last line may be incomplete.
TEST_F(ArbiterTest, WhatIsNoRecordAtTheStopIsReported) {
  const auto stays = Claim("hccs", 50);
  Release(stays);
  const auto claim = Claim("hccs", 50);
  EXPECT_EQ(Answer(claim).garbage_bytes, 0u);
  const std::string cut = "1:00000";
  hal_.OnStop(0, 9, std::vector<std::byte>(AsBytes(cut).begin(), AsBytes(cut).end()));
  EXPECT_EQ(Release(claim), (ChannelArbiter::GarbageBytes{{9, cut.size()}}));
}

TEST_F(ArbiterTest, LlcReadAndWriteDoNotMix) {
  auto reads = Claim("llc", 50, "first");
  auto writes = Claim("llc", 50, "second", true);
  EXPECT_EQ(Answer(writes).state, v1::Outcome::RESULT_BUSY);
  EXPECT_THAT(Answer(writes).detail, HasSubstr("session first measures LLC reads"));
  Release(writes);
  Release(reads);
  auto again = Claim("llc", 50, "second", true);
  EXPECT_EQ(Answer(again).state, v1::Outcome::RESULT_RUNNING);
  Release(again);
}

TEST_F(ArbiterTest, TheRecorderAloneGetsBackItsOwnRate) {
  auto recorder = Claim("hccs", 10, "recorder", false, true);
  auto fast = Claim("hccs", 50);
  EXPECT_EQ(Answer(recorder).state, v1::Outcome::RESULT_RUNNING);
  Release(fast);
  // The restart is under way; a session that comes now is served as well.
  auto same = Claim("hccs", 10);
  EXPECT_EQ(Answer(same).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 100", "stop 0/9", "start 0/9 period 20",
                                    "stop 0/9", "start 0/9 period 100"));
  Release(same);
  EXPECT_EQ(DriverCalls().size(), 5U);
  Release(recorder);
}

TEST_F(ArbiterTest, ASessionGoesBeforeTheRecorder) {
  auto recorder = Claim("llc", 10, "recorder", false, true);
  auto session = Claim("llc", 10, "s1", true);
  EXPECT_EQ(Answer(session).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_EQ(Answer(recorder).state, v1::Outcome::RESULT_BUSY);
  EXPECT_THAT(Answer(recorder).detail, HasSubstr("session s1"));
  // Not the other way round.
  Release(recorder);
  recorder = Claim("llc", 10, "recorder", false, true);
  EXPECT_EQ(Answer(recorder).state, v1::Outcome::RESULT_BUSY);
  EXPECT_EQ(Answer(session).state, v1::Outcome::RESULT_RUNNING);
  Release(session);
  Release(recorder);
  recorder = Claim("llc", 10, "recorder", false, true);
  EXPECT_EQ(Answer(recorder).state, v1::Outcome::RESULT_RUNNING);
  Release(recorder);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/8 period 100", "stop 0/8", "start 0/8 period 100",
                                    "stop 0/8", "start 0/8 period 100", "stop 0/8"));
}

// A session that another one makes busy takes nothing from the recorder, and restarts nothing.
TEST_F(ArbiterTest, ARefusedSessionLeavesTheRecorderAlone) {
  auto recorder = Claim("llc", 10, "recorder", false, true);
  auto reads = Claim("llc", 10, "first");
  auto writes = Claim("llc", 10, "second", true);
  EXPECT_EQ(Answer(writes).state, v1::Outcome::RESULT_BUSY);
  EXPECT_THAT(Answer(writes).detail, HasSubstr("session first measures LLC reads"));
  EXPECT_EQ(Answer(recorder).state, v1::Outcome::RESULT_RUNNING);
  auto more = Claim("llc", 10, "third");
  Release(writes);
  Release(more);
  Release(reads);
  EXPECT_EQ(Answer(recorder).state, v1::Outcome::RESULT_RUNNING);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/8 period 100"));
  Release(recorder);
}

// Channel 52 has two parts with rates of their own: each runs at the fastest rate requested.
TEST_F(ArbiterTest, BothPartsOfTheSocChannelRunAtTheFastestRate) {
  auto claim = [this](double memory_hz, double interconnect_hz) {
    ClaimRequest request;
    request.collector = IndexOf("soc_profile");
    request.options.values = {memory_hz, interconnect_hz};
    request.options.hz = std::max(memory_hz, interconnect_hz);
    request.owner = "me";
    auto settled = std::make_shared<std::promise<void>>();
    auto id = OnControl(
        [&] { return arbiter_->Claim(request, [settled] { settled->set_value(); }); });
    Await(settled->get_future());
    return id;
  };
  auto starts = [this] {
    return std::ranges::count_if(hal_.log(), [](const auto& line) { return line.starts_with("start 0/52"); });
  };
  auto slow = claim(100, 10);
  EXPECT_EQ(starts(), 1);
  // Faster in its interconnect part only: the channel is started again.
  auto fast = claim(100, 50);
  EXPECT_EQ(starts(), 2);
  // Neither of these needs more than runs.
  auto slower = claim(50, 10);
  auto same = claim(100, 50);
  EXPECT_EQ(starts(), 2);
  for (auto one : {slow, fast, slower, same}) Release(one);
}

class ArbiterDumpTest : public ArbiterTest {
 protected:
  TempDir tmp_;
  DumpWriter writer_{DumpRoot::Open(tmp_.path() + "/root").value(), clock_, pool_, {}};
  std::string path_;
  std::shared_ptr<WriterSession> dump_ = OpenTestDump(writer_, &path_, {0});
};

// The channel runs on for others: what the driver holds at the stop is fetched first.
TEST_F(ArbiterDumpTest, ALeavingSubscriberGetsAllRecordsUpToItsEnd) {
  auto stays = Claim("hccs", 50, "other");
  ClaimRequest request;
  request.collector = IndexOf("hccs");
  request.options.hz = 50;
  request.owner = "detach";
  request.dump = dump_;
  auto leaves = OnControl([&] { return arbiter_->Claim(request, [] {}); });
  const std::string line = "1:000000000 1 2\n";
  const auto bytes = std::as_bytes(std::span(line));
  hal_.OnFlush(0, 9, {bytes.begin(), bytes.end()});
  Release(leaves);
  AwaitWriter(writer_);
  uint64_t records = 0;
  dump_->VisitFeeds([&](const DumpFeed& feed) { records += feed.counters().records; });
  EXPECT_EQ(records, 1u);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 20"));
  // Where the driver does not answer, the manifest says so.
  auto again = OnControl([&] { return arbiter_->Claim(request, [] {}); });
  hal_.Hold(Call::kFlush);
  Release(again);
  hal_.Release(Call::kFlush);
  const Manifest reported = FinishTestDump(*dump_);
  ASSERT_EQ(reported.channels.size(), 1u);
  ASSERT_FALSE(reported.channels[0].gaps.empty());
  EXPECT_EQ(reported.channels[0].gaps.back().reason, LossReason::kNotFetched);
  Release(stays);
}

// The channel has run for a day, and the device has lost 3 s in it.
TEST_F(ArbiterDumpTest, ALateSessionsTimestampsAreWithoutTheDeviceDriftBeforeIt) {
  const int64_t first_ns = clock_.MonotonicRawNs();
  const int64_t later_ns = first_ns + 100'000 * kNsPerSecond;
  OnControl([&] { arbiter_->SetClock(0, {.host_ns = first_ns, .device_ns = 5000 * kNsPerSecond}); });
  const auto stays = Claim("hbm", 50, "other");
  OnControl([&] { arbiter_->SetClock(0, {.host_ns = later_ns, .device_ns = 104'997 * kNsPerSecond}); });
  ClaimRequest request{.collector = IndexOf("hbm"), .options = {.hz = 50}, .owner = "late", .dump = dump_,
                       .session_start_ns = later_ns};
  const auto late = OnControl([&] { return arbiter_->Claim(request, [] {}); });
  AwaitRunning(late);
  std::vector<std::byte> records(48);  // two of the same instant, when the clocks were read again
  for (const size_t at : {0, 24}) StoreUnchecked(std::span<std::byte>(records), at, uint64_t{99'997'000'000});
  hal_.OnFlush(0, 1, records);
  Release(late);
  const Manifest reported = FinishTestDump(*dump_);
  ASSERT_EQ(reported.channels.size(), 1u);
  EXPECT_EQ(reported.channels[0].records, 2u);
  Release(stays);
}

// The driver reports a change once. Who joins later has the last one of each kind, and what changes from then on.
TEST_F(ArbiterDumpTest, ALateSubscriberGetsTheLastChanges) {
  using Changes = std::vector<std::pair<uint32_t, uint32_t>>;  // kind, value
  const auto early = Claim("aicore_freq", 10, "other");
  uint64_t at = 0;
  auto report = [&](const Changes& changes) {
    profd::testing::Bytes bytes(changes.size() * records::LpmRecord::kSize);
    for (size_t i = 0; i < changes.size(); ++i) {
      const std::span<std::byte> record = std::span(bytes).subspan(i * records::LpmRecord::kSize);
      StoreUnchecked(record, 0, uint32_t{1});
      StoreUnchecked(record, records::LpmRecord::kTypeAt, changes[i].first);
      StoreUnchecked(record, records::LpmRecord::kEntries, at += 1000);
      StoreUnchecked(record, records::LpmRecord::kEntries + sizeof at, changes[i].second);
    }
    const uint64_t blocks = router_.ProgressOf(0, 132).blocks;
    hal_.Data(0, 132, bytes);
    ASSERT_TRUE(Eventually([&] { return router_.ProgressOf(0, 132).blocks != blocks; }));
  };
  constexpr uint32_t kClock = records::LpmRecord::kFrequencyMhz;
  constexpr uint32_t kVoltage = records::LpmRecord::kAicoreMillivolts;
  report({{kClock, 1800}, {kVoltage, 900}, {kVoltage, 800}});
  report({{kClock, 1000}});
  const auto late = Claim("aicore_freq", 10, "late", false, false, dump_);
  report({{kClock, 1200}});
  Release(late);
  Release(early);
  const Manifest reported = FinishTestDump(*dump_);
  const std::string file = ReadText(path_ + "/device_0/data/lpmInfoConv.data.0.slice_0");
  Changes found;
  for (auto rest = AsBytes(file); rest.size() >= records::LpmRecord::kSize; rest = rest.subspan(records::LpmRecord::kSize)) {
    const records::LpmRecord record(rest.first(records::LpmRecord::kSize));
    found.emplace_back(record.type(), record.entry(0).value);
  }
  EXPECT_EQ(found, (Changes{{kVoltage, 800}, {kClock, 1000}, {kClock, 1200}}));
  ASSERT_EQ(reported.channels.size(), 1u);
  EXPECT_TRUE(reported.channels[0].gaps.empty());
}

// The driver stops the channel, and has not let it be read before.
TEST_F(ArbiterDumpTest, WhatCouldNotBeReadIsInTheManifest) {
  const auto claim = Claim("hccs", 50, "me", false, false, dump_);
  hal_.set_empty_code(abi::kProfError);
  Release(claim);
  const Manifest reported = FinishTestDump(*dump_);
  ASSERT_EQ(reported.channels.size(), 1u);
  ASSERT_FALSE(reported.channels[0].gaps.empty());
  EXPECT_EQ(reported.channels[0].gaps.back().reason, LossReason::kNotFetched);
  EXPECT_THAT(reported.warnings, ::testing::Contains(::testing::HasSubstr("channel hccs could not be read [prof_channel_read: PROF_ERROR")));
}

// The driver says so at the stop, and not how much.
TEST_F(ArbiterDumpTest, LossesOfTheDriverAreInTheManifest) {
  const auto claim = Claim("hccs", 50, "me", false, false, dump_);
  hal_.Code(Call::kStop, abi::kProfStopDataLoss);
  Release(claim);
  const Manifest reported = FinishTestDump(*dump_);
  ASSERT_EQ(reported.channels.size(), 1u);
  ASSERT_FALSE(reported.channels[0].gaps.empty());
  EXPECT_EQ(reported.channels[0].gaps.back().reason, LossReason::kDriver);
  EXPECT_EQ(reported.channels[0].gaps.back().lost_records, 0u);  // not known
  EXPECT_GT(reported.channels[0].gaps.back().from_ns, 0) << "not before the run";
  EXPECT_THAT(reported.warnings, ::testing::Contains(::testing::HasSubstr("device 0 channel 9: the driver has lost records")));
}

// The channel is stopped to go on at another rate: who stays was in the run that lost them.
TEST_F(ArbiterDumpTest, LossesOfTheDriverAreReportedToRemainingSubscribers) {
  const auto stays = Claim("hccs", 10, "me", false, false, dump_);
  hal_.Code(Call::kStop, abi::kProfStopDataLoss);
  const auto faster = Claim("hccs", 50);
  EXPECT_EQ(Answer(faster).state, v1::Outcome::RESULT_RUNNING);
  hal_.Code(Call::kStop, 0);
  Release(faster);
  Release(stays);
  const Manifest reported = FinishTestDump(*dump_);
  ASSERT_EQ(reported.channels.size(), 1u);
  const auto& gaps = reported.channels[0].gaps;
  EXPECT_EQ(std::ranges::count(gaps, LossReason::kDriver, &ManifestGap::reason), 1);
  EXPECT_THAT(reported.warnings, ::testing::Contains(::testing::HasSubstr("the driver has lost records")));
}

// Restarted for another session's rate, the channel is another process's.
TEST_F(ArbiterDumpTest, AChannelThatIsNotRestartedHasAGapUpToTheEnd) {
  ClaimRequest request;
  request.collector = IndexOf("hccs");
  request.options.hz = 10;
  request.owner = "me";
  request.dump = dump_;
  request.session_start_ns = clock_.MonotonicRawNs();
  const auto stays = OnControl([&] { return arbiter_->Claim(request, [] {}); });
  AwaitRunning(stays);
  hal_.Code(Call::kStart, -10);
  const auto faster = Claim("hccs", 50);
  EXPECT_EQ(Answer(stays).state, v1::Outcome::RESULT_BUSY);
  Release(faster);
  Release(stays);
  EndFacts end;
  end.raw_ns = clock_.MonotonicRawNs();
  const Manifest reported = FinishTestDump(*dump_, [](Manifest&) {}, end);
  ASSERT_EQ(reported.channels.size(), 1u);
  ASSERT_EQ(reported.channels[0].gaps.size(), 2u);
  EXPECT_EQ(reported.channels[0].gaps[0].reason, LossReason::kChannelRestart);
  EXPECT_EQ(reported.channels[0].gaps[1].reason, LossReason::kChannelSilent);
  EXPECT_EQ(reported.channels[0].gaps[1].from_ns, request.session_start_ns);
  EXPECT_EQ(reported.channels[0].gaps[1].host_ns, end.raw_ns);
}

TEST_F(ArbiterTest, StopThatNeverAnswersDoesNotHoldTheSession) {
  auto claim = Claim("hccs", 50);
  hal_.Hold(Call::kStop);
  Release(claim);  // returns although prof_stop does not
  auto next = Claim("hccs", 50);
  EXPECT_EQ(Answer(next).state, v1::Outcome::RESULT_FAILED);
  hal_.Release(Call::kStop);
  Release(next);
}

TEST_F(ArbiterTest, ReleaseWhileStartingStopsWhatWasStarted) {
  hal_.Hold(Call::kStart);
  ClaimRequest request;
  request.collector = IndexOf("hccs");
  request.options.hz = 50;
  auto claim = OnControl([&] { return arbiter_->Claim(request, [] {}); });
  hal_.WaitUntilHeld(1);
  auto done = std::make_shared<std::promise<void>>();
  OnControl([&] { arbiter_->Release(claim, [done](const auto&) { done->set_value(); }); });
  hal_.Release(Call::kStart);
  Await(done->get_future());
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 20", "stop 0/9"));
}

TEST_F(ArbiterTest, OnlyADeviceThatDeliversNothingIsQueried) {
  auto claim = Claim("hbm", 50);
  // How often a tick makes the arbiter ask; what is asked here comes after it.
  auto asked_by_tick = [this] {
    const int before = hal_.status_calls();
    OnControl([&] { arbiter_->Tick(); });
    std::promise<void> answered;
    device_->QueryStatus([&answered](const Result<int>&) { answered.set_value(); });
    answered.get_future().get();
    OnControl([] {});  // the arbiter has its answer, too
    return hal_.status_calls() - before - 1;
  };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (asked_by_tick() == 0) ASSERT_LT(std::chrono::steady_clock::now(), end);
  // A slow machine may lose the half second between a block and the tick.
  int asked = 1;
  for (uint64_t at_us = 1000; asked > 0; at_us += 1000) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    const int64_t last = router_.ProgressOf(0, 1).last_block_ns;
    profd::testing::Bytes record(24);
    StoreUnchecked(std::span(record), 0, at_us);
    hal_.Data(0, 1, record);
    while (router_.ProgressOf(0, 1).last_block_ns == last) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
    asked = asked_by_tick();
  }
  // In trouble it is asked whatever came before.
  OnControl([&] { arbiter_->OnDeviceStuck(0, "lost"); });
  EXPECT_EQ(asked_by_tick(), 1);
  Release(claim);
}

TEST_F(ArbiterTest, LostDeviceIsSaidAndItsChannelsComeBack) {
  auto claim = Claim("hccs", 50);
  OnControl([&] { arbiter_->OnDeviceStuck(0, "prof_channel_read has not returned"); });
  EXPECT_EQ(Answer(claim).state, v1::Outcome::RESULT_FAILED);
  EXPECT_THAT(Answer(claim).detail, HasSubstr("prof_channel_read"));
  OnControl([&] { arbiter_->OnDeviceRecovered(0); });
  AwaitRunning(claim);
  Release(claim);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/9 period 20", "stop 0/9", "start 0/9 period 20",
                                    "stop 0/9"));
}

TEST_F(ArbiterTest, ChannelsStartedAfterTheLossAreNotRestarted) {
  auto before = Claim("hbm", 50);
  OnControl([&] { arbiter_->OnDeviceStuck(0, "prof_drv_start has not returned"); });
  auto after = Claim("hccs", 50);
  EXPECT_EQ(Answer(after).state, v1::Outcome::RESULT_RUNNING);
  OnControl([&] { arbiter_->OnDeviceRecovered(0); });
  AwaitRunning(before);
  EXPECT_EQ(Answer(after).state, v1::Outcome::RESULT_RUNNING);
  Release(after);
  Release(before);
  EXPECT_THAT(DriverCalls(), ElementsAre("start 0/1 period 20", "start 0/9 period 20", "stop 0/1",
                                    "start 0/1 period 20", "stop 0/9", "stop 0/1"));
}

}  // namespace
}  // namespace profd
