#include "daemon/data/loss_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kStart = 1'000 * kNsPerSecond;
constexpr int64_t kSecond = kNsPerSecond;

class LossLedgerTest : public ::testing::Test {
 protected:
  LossLedgerTest() : root_(DumpRoot::Open(tmp_.path() + "/root").value()) {
    SessionDumpOptions options;
    options.session.session_id = "s";
    options.owner = Myself();
    dump_ = SessionDump::Create(root_, std::move(options)).value();
  }
  LossLedger::Place here() { return {channel_, *dump_}; }
  std::vector<ManifestGap>& gaps() { return channel_.gaps; }

  TempDir tmp_;
  DumpRoot root_;
  std::unique_ptr<SessionDump> dump_;
  ManifestChannel channel_;
  LossLedger ledger_{kStart, false};
};

TEST_F(LossLedgerTest, EachReasonIsSettledOnceAndAddsUp) {
  ledger_.Settle(here(), kStart + kSecond);
  EXPECT_THAT(gaps(), IsEmpty());
  ledger_.Count(LossReason::kQueueFull, 3, 300);
  ledger_.Count(LossReason::kNoBuffer, 2, 200);
  ledger_.Settle(here(), kStart + 2 * kSecond);
  ledger_.Settle(here(), kStart + 3 * kSecond);
  EXPECT_THAT(gaps(), ElementsAre(Field(&ManifestGap::reason, LossReason::kNoBuffer), Field(&ManifestGap::reason, LossReason::kQueueFull)));
  EXPECT_EQ(gaps()[1].lost_records, 3u);
  EXPECT_EQ(gaps()[1].from_ns, kStart + kSecond);  // since the settling before
  EXPECT_EQ(gaps()[1].host_ns, kStart + 2 * kSecond);
  ledger_.Count(LossReason::kQueueFull, 1, 100);
  ledger_.Settle(here(), kStart + 4 * kSecond);
  ASSERT_THAT(channel_.dropped, SizeIs(2));
  EXPECT_EQ(channel_.dropped[1].records, 4u);
  EXPECT_EQ(channel_.dropped[1].bytes, 400u);
  EXPECT_EQ(ledger_.Total().records, 6u);
  EXPECT_EQ(ledger_.Total().bytes, 600u);
}

TEST_F(LossLedgerTest, PollsThatDidNotTakePlaceAreNotLostRecords) {
  ledger_.Count(LossReason::kLate, 2, 0);
  ledger_.Count(LossReason::kOverBudget, 5, 0);
  const LossLedger::NotRead not_read = ledger_.Settle(here(), kStart + kSecond);
  EXPECT_EQ(not_read.late, 2u);
  EXPECT_EQ(not_read.over_budget, 5u);
  EXPECT_EQ(ledger_.Total().records, 0u);
  // What continues is one gap.
  ledger_.Count(LossReason::kOverBudget, 1, 0);
  EXPECT_EQ(ledger_.Settle(here(), kStart + 2 * kSecond).over_budget, 1u);
  ASSERT_THAT(gaps(), SizeIs(2));
  EXPECT_EQ(gaps()[1].lost_records, 6u);
  EXPECT_EQ(gaps()[1].host_ns, kStart + 2 * kSecond);
  EXPECT_EQ(ledger_.Settle(here(), kStart + 3 * kSecond).over_budget, 0u);
}

TEST_F(LossLedgerTest, ALossThatIsNotedAtOnceIsNotSettledAgain) {
  ledger_.NoteWritten(kStart + kSecond);
  ledger_.Lose(here(), LossReason::kWriteError, 4, 40, kStart + 2 * kSecond);
  ledger_.Lose(here(), LossReason::kWriteError, 1, 10, kStart + 3 * kSecond);
  ledger_.Settle(here(), kStart + 4 * kSecond);
  ASSERT_THAT(gaps(), SizeIs(1));  // nothing was written in between
  EXPECT_EQ(gaps()[0].lost_records, 5u);
  EXPECT_EQ(gaps()[0].from_ns, kStart + kSecond);
  EXPECT_EQ(gaps()[0].host_ns, kStart + 3 * kSecond);
  EXPECT_EQ(ledger_.Total().records, 5u);
  ledger_.NoteWritten(kStart + 5 * kSecond);
  ledger_.Lose(here(), LossReason::kWriteError, 1, 10, kStart + 6 * kSecond);
  EXPECT_THAT(gaps(), SizeIs(2));
}

TEST_F(LossLedgerTest, OurOwnLossesMakeGapDetectionBeginAnew) {
  EXPECT_FALSE(ledger_.TakeResync());
  ledger_.Lose(here(), LossReason::kDriver, 1, 24, kStart);
  EXPECT_FALSE(ledger_.TakeResync());  // found by the timestamps themselves
  ledger_.Lose(here(), LossReason::kWriteError, 1, 24, kStart);
  EXPECT_TRUE(ledger_.TakeResync());
  EXPECT_FALSE(ledger_.TakeResync());
  // Its place among the blocks is not known by when it is counted and settled; their numbers show it.
  ledger_.Count(LossReason::kQueueFull, 1, 24);
  ledger_.Settle(here(), kStart + kSecond);
  EXPECT_FALSE(ledger_.TakeResync());
  ledger_.RequestResync();
  EXPECT_TRUE(ledger_.TakeResync());
}

TEST_F(LossLedgerTest, ARestartIsAGapFromTheLastBlockToTheNewRun) {
  ledger_.NoteBlock(kStart + kSecond);
  ledger_.NoteNextRun(here(), kStart + 2 * kSecond);
  ledger_.NoteNextRun(here(), kStart + 3 * kSecond);  // the first attempt failed
  ASSERT_THAT(gaps(), SizeIs(1));
  EXPECT_EQ(gaps()[0].reason, LossReason::kChannelRestart);
  EXPECT_EQ(gaps()[0].from_ns, kStart + kSecond);
  EXPECT_EQ(gaps()[0].host_ns, kStart + 3 * kSecond);
  // The driver began earlier than the writer heard of it.
  ledger_.NoteRunBegan(here(), kStart + 2 * kSecond, kStart + 2 * kSecond + 1);
  EXPECT_EQ(gaps()[0].host_ns, kStart + 2 * kSecond + 1);
}

TEST_F(LossLedgerTest, AnOutageBeginsWithTheLastBlockAndHasItsReason) {
  ledger_.NoteBlock(kStart + kSecond);
  ledger_.BeginOutage();
  ledger_.NoteBlock(kStart + 2 * kSecond);
  ledger_.NoteNextRun(here(), kStart + 4 * kSecond);
  EXPECT_EQ(gaps().back().from_ns, kStart + kSecond);
  // Released to another tool, and never given back.
  ledger_.NoteReleased();
  ledger_.NoteEnd(here(), kStart + 9 * kSecond);
  EXPECT_EQ(gaps().back().reason, LossReason::kChannelReleased);
  EXPECT_EQ(gaps().back().from_ns, kStart + 2 * kSecond);
  EXPECT_EQ(gaps().back().host_ns, kStart + 9 * kSecond);
  ledger_.ForgetRelease();
  ledger_.BeginOutage();
  ledger_.NoteEnd(here(), kStart + 10 * kSecond);
  EXPECT_EQ(gaps().back().reason, LossReason::kChannelSilent);
  // One that is over is none.
  const size_t before = gaps().size();
  ledger_.BeginOutage();
  ledger_.EndOutage();
  ledger_.NoteEnd(here(), kStart + 11 * kSecond);
  EXPECT_THAT(gaps(), SizeIs(before));
}

// A channel ends with its session or has a gap there.
TEST_F(LossLedgerTest, AnOutageOfWhatNeverDeliveredBeginsWithTheSession) {
  // Its device hangs at once, again after the restart, and until the end.
  ledger_.BeginOutage();
  ledger_.NoteNextRun(here(), kStart + 8 * kSecond);
  ledger_.EndOutage();
  ledger_.BeginOutage();
  ledger_.NoteEnd(here(), kStart + 14 * kSecond);
  ASSERT_THAT(gaps(), SizeIs(2));
  EXPECT_EQ(gaps()[0].reason, LossReason::kChannelRestart);
  EXPECT_EQ(gaps()[0].from_ns, kStart);
  EXPECT_EQ(gaps()[0].host_ns, kStart + 8 * kSecond);
  EXPECT_EQ(gaps()[1].reason, LossReason::kChannelSilent);
  EXPECT_EQ(gaps()[1].from_ns, kStart);
  EXPECT_EQ(gaps()[1].host_ns, kStart + 14 * kSecond);
}

TEST_F(LossLedgerTest, ARunThatDoesNotBeginIsAGapUpToTheEnd) {
  ledger_.NoteBlock(kStart + kSecond);
  ledger_.NoteNextRun(here(), kStart + 2 * kSecond);
  ledger_.NoteNextRun(here(), kStart + 4 * kSecond);  // the first attempt failed, and so does this
  ledger_.NoteEnd(here(), kStart + 9 * kSecond);
  ASSERT_THAT(gaps(), SizeIs(2));
  EXPECT_EQ(gaps()[0].host_ns, kStart + 4 * kSecond);
  EXPECT_EQ(gaps()[1].reason, LossReason::kChannelSilent);
  EXPECT_EQ(gaps()[1].from_ns, kStart + kSecond);
  EXPECT_EQ(gaps()[1].host_ns, kStart + 9 * kSecond);
  // One that has begun is none.
  ManifestChannel other;
  LossLedger begun(kStart, false);
  begun.NoteBlock(kStart + kSecond);
  begun.NoteNextRun({other, *dump_}, kStart + 2 * kSecond);
  begun.EndOutage();
  begun.NoteEnd({other, *dump_}, kStart + 9 * kSecond);
  EXPECT_THAT(other.gaps, ElementsAre(Field(&ManifestGap::reason, LossReason::kChannelRestart)));
}

// Nothing reports outages to a dump of the flight recorder.
TEST_F(LossLedgerTest, WhatIsSilentInThePastIsAGap) {
  LossLedger recorded(kStart, false, 2 * kSecond);
  recorded.NoteNoPast(here(), kStart + 4 * kSecond);
  recorded.NoteBlock(kStart + 4 * kSecond);
  recorded.NoteEnd(here(), kStart + 9 * kSecond);
  ASSERT_THAT(gaps(), SizeIs(2));
  EXPECT_EQ(gaps()[0].reason, LossReason::kNotRecorded);
  EXPECT_EQ(gaps()[0].from_ns, kStart);
  EXPECT_EQ(gaps()[0].host_ns, kStart + 4 * kSecond);
  EXPECT_EQ(gaps()[1].reason, LossReason::kChannelSilent);
  EXPECT_EQ(gaps()[1].from_ns, kStart + 4 * kSecond);
  EXPECT_EQ(gaps()[1].host_ns, kStart + 9 * kSecond);
  ManifestChannel other;
  LossLedger steady(kStart, false, 2 * kSecond);
  steady.NoteNoPast({other, *dump_}, kStart + kSecond);
  steady.NoteBlock(kStart + 8 * kSecond);
  steady.NoteEnd({other, *dump_}, kStart + 9 * kSecond);
  EXPECT_THAT(other.gaps, IsEmpty());
}

TEST_F(LossLedgerTest, ASessionOfThePastMissesWhatTheRecorderDidNotHold) {
  LossLedger past(kStart, true);
  past.NoteNoPast(here(), kStart + kSecond / 2);
  EXPECT_THAT(gaps(), IsEmpty());  // hardly anything is missing
  past.NoteNoPast(here(), kStart + 30 * kSecond);
  ASSERT_THAT(gaps(), SizeIs(1));
  EXPECT_EQ(gaps()[0].reason, LossReason::kNotRecorded);
  EXPECT_EQ(gaps()[0].from_ns, kStart);
  ManifestChannel other;
  ledger_.NoteNoPast({other, *dump_}, kStart + 30 * kSecond);
  EXPECT_THAT(other.gaps, IsEmpty());
}

TEST_F(LossLedgerTest, LossesBetweenTwoTimes) {
  ledger_.LoseBetween(here(), {LossReason::kRingFull, 7, 70, kStart + kSecond, kStart + 2 * kSecond});
  ASSERT_THAT(channel_.dropped, SizeIs(1));
  EXPECT_EQ(channel_.dropped[0].from_ns, kStart + kSecond);
  EXPECT_EQ(channel_.dropped[0].to_ns, kStart + 2 * kSecond);
  EXPECT_EQ(gaps()[0].from_ns, kStart + kSecond);
  EXPECT_EQ(ledger_.Total().records, 7u);
}

}  // namespace
}  // namespace profd
