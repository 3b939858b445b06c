#include "daemon/session/session_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMb = 1 << 20;

class SessionLimitsTest : public ::testing::Test {
 protected:
  SessionLimitsTest() {
    peer_.uid = 1000;
    config_.max_sessions = 4;
    config_.max_sessions_per_uid = 2;
    config_.max_dump_mb_per_uid = 100;
  }
  SessionBrief& Add(uint32_t uid, uint32_t priority = 5) {
    SessionBrief brief{.id = "s" + std::to_string(live_.size()), .uid = uid, .priority = priority,
                       .order = live_.size()};
    live_.push_back(brief);
    return live_.back();
  }
  std::string Check(uint64_t reserve = 0) const {
    return CheckSessionLimits(live_, peer_, config_, 0, reserve).message();
  }

  Peer peer_;
  DaemonConfig config_;
  std::vector<SessionBrief> live_;
};

TEST_F(SessionLimitsTest, AFullNodeReportsHoldersAndUntilWhen) {
  live_.reserve(8);
  Add(1000);
  Add(2000).end_wall_ns = 30 * kNsPerSecond;
  Add(2000).end_wall_ns = 20 * kNsPerSecond;
  EXPECT_EQ(Check(), "");
  Add(3000);
  EXPECT_THAT(Check(), AllOf(HasSubstr("limits.max_sessions"), HasSubstr("1 is yours"),
                             HasSubstr("3 of other users"), HasSubstr("in 20 s"),
                             Not(HasSubstr("2000"))));
  peer_.admin = true;
  EXPECT_THAT(Check(), AllOf(HasSubstr("2 of uid 2000"), HasSubstr("1 of uid 3000")));
}

TEST_F(SessionLimitsTest, ByUser) {
  Add(1000);
  EXPECT_EQ(Check(), "");
  Add(1000);
  EXPECT_THAT(Check(), AllOf(HasSubstr("you have 2 sessions running"), HasSubstr("limits.max_sessions_per_uid"),
                             HasSubstr("no end time is known")));
  config_.max_sessions_per_uid = 1;
  live_.pop_back();
  EXPECT_THAT(Check(), HasSubstr("you have 1 session running, the limit for one user is 1 (limits.max_sessions_per_uid)"));
  config_.max_sessions = 1;
  EXPECT_THAT(Check(), HasSubstr("1 session is running, the limit of this node is 1 (limits.max_sessions): 1 is yours"));
  config_.max_sessions = 4;
  peer_.uid = 0;
  EXPECT_EQ(Check(), "");
}

// A reload may have lowered them below what there is.
TEST_F(SessionLimitsTest, MessagesHaveTheLimitThatHoldsNow) {
  for (int i = 0; i < 3; ++i) Add(1000);
  EXPECT_THAT(Check(), HasSubstr("you have 3 sessions running, the limit for one user is 2 (limits.max_sessions_per_uid)"));
  config_.max_sessions = 1;
  EXPECT_THAT(Check(), HasSubstr("3 sessions are running, the limit of this node is 1 (limits.max_sessions)"));
}

TEST_F(SessionLimitsTest, ARequestBeyondTheLimitIsNotTheFaultOfOthers) {
  EXPECT_EQ(Check(101 * kMb), "this session requests 101 MB, the limit for one user is 100 MB (limits.max_dump_mb_per_uid): give it a smaller storage_limit, or none");
}

TEST_F(SessionLimitsTest, BytesWrittenAndPromised) {
  Add(1000).written = 60 * kMb;
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(Check(40 * kMb), "");
  EXPECT_THAT(Check(40 * kMb + 1), HasSubstr("limits.max_dump_mb_per_uid"));
  live_[0].reserved = 100 * kMb;
  EXPECT_THAT(Check(), HasSubstr("limits.max_dump_mb_per_uid"));
  live_[0].uid = 2000;
  EXPECT_EQ(Check(), "");
}

TEST_F(SessionLimitsTest, AUserOverTheLimitLosesTheYoungestSession) {
  Add(1000).written = 60 * kMb;
  Add(1000).written = 40 * kMb;
  Add(2000).written = 99 * kMb;
  EXPECT_EQ(FindOverwriter(live_, config_), nullptr);
  live_[0].written += 1;
  ASSERT_NE(FindOverwriter(live_, config_), nullptr);
  EXPECT_EQ(FindOverwriter(live_, config_)->id, "s1");
  live_[1].ending = true;
  EXPECT_EQ(FindOverwriter(live_, config_)->id, "s0");
  live_[0].uid = live_[1].uid = 0;
  EXPECT_EQ(FindOverwriter(live_, config_), nullptr);
}

TEST_F(SessionLimitsTest, TheVictimIsTheLowestAndOfTheseTheYoungest) {
  Add(1, 5);
  Add(1, 3);
  Add(1, 3);
  Add(1, 4);
  EXPECT_EQ(FindVictim(live_, 3), nullptr);
  EXPECT_EQ(FindVictim(live_, 5)->id, "s2");
  live_[2].ending = true;
  EXPECT_EQ(FindVictim(live_, 5)->id, "s1");
}

TEST_F(SessionLimitsTest, HoldersAsTheAskerMaySeeThem) {
  SessionBrief& holder = Add(2000);
  holder.job_id = "codename";
  EXPECT_EQ(DescribeHolder(holder, peer_, 0), "session s0 of another user, end time unknown");
  holder.end_wall_ns = 90 * kNsPerSecond;
  peer_.admin = true;
  EXPECT_EQ(DescribeHolder(holder, peer_, 0),
            "session s0 of uid 2000, job codename, ends in 90 s");
  holder.ending = true;
  peer_.uid = 2000;
  EXPECT_EQ(DescribeHolder(holder, peer_, 0), "session s0 owned by you, job codename, ending now");
}

TEST(StartRates, AMinuteSlides) {
  StartRates rates;
  int64_t now = 1000 * kNsPerSecond;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(rates.Check(7, now, 3).ok());
    rates.Note(7, now + i * kNsPerSecond);
  }
  Status full = rates.Check(7, now + 10 * kNsPerSecond, 3);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("in 51 s"));
  EXPECT_THAT(rates.Check(7, now + 10 * kNsPerSecond, 1).message(),
              HasSubstr("you started 3 sessions within a minute, the limit for one user is 1 (limits.max_starts_per_minute)"));
  EXPECT_TRUE(rates.Check(8, now, 3).ok());
  EXPECT_TRUE(rates.Check(7, now + 60 * kNsPerSecond, 3).ok());
  for (int i = 0; i < 9; ++i) rates.Note(0, now);
  EXPECT_TRUE(rates.Check(0, now, 3).ok());
}

}  // namespace
}  // namespace profd
