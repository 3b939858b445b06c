#include "daemon/dumps/dump_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

KeptDump Dump(std::string name, uint32_t uid, int64_t ended, uint64_t bytes) {
  return {.name = std::move(name), .uid = uid, .state = DumpState::kDone, .ended_wall_ns = ended, .bytes = bytes};
}

std::vector<std::string> Names(const QuotaPlan& plan) {
  std::vector<std::string> names;
  for (const auto& removal : plan.removals) names.push_back(removal.name);
  return names;
}

TEST(DumpQuotaTest, WithoutLimitsEverythingStays) {
  std::vector<KeptDump> dumps = {Dump("a", 1, 1, 1000)};
  QuotaPlan plan = PlanRemovals(dumps, {}, {});
  EXPECT_THAT(plan.removals, IsEmpty());
  EXPECT_FALSE(plan.over_total);
}

TEST(DumpQuotaTest, TheOldestGoFirstAndNoMoreThanNeeded) {
  std::vector<KeptDump> dumps = {Dump("new", 1, 30, 100), Dump("old", 1, 10, 100),
                                 Dump("mid", 2, 20, 100)};
  QuotaPlan plan = PlanRemovals(dumps, {.total = 250}, {});
  EXPECT_THAT(Names(plan), ElementsAre("old"));
  EXPECT_EQ(plan.removals[0].reason, kReasonTotal);
  EXPECT_THAT(Names(PlanRemovals(dumps, {.total = 250}, {.total = 51})),
              ElementsAre("old", "mid"));
}

TEST(DumpQuotaTest, RunningAndPinnedOnesStay) {
  std::vector<KeptDump> dumps = {Dump("pinned", 1, 1, 100), Dump("running", 1, 0, 100),
                                 Dump("free", 1, 9, 100)};
  dumps[0].pinned = true;
  dumps[1].writing = true;
  QuotaPlan plan = PlanRemovals(dumps, {.total = 150}, {});
  EXPECT_THAT(Names(plan), ElementsAre("free"));
  EXPECT_TRUE(plan.over_total);
  EXPECT_FALSE(PlanRemovals(dumps, {.total = 200}, {}).over_total);
  EXPECT_TRUE(PlanRemovals(dumps, {.total = 200}, {.margin = 1}).over_total);
}

TEST(DumpQuotaTest, DumpsThatWaitForTheDatabaseAreRemovedLast) {
  std::vector<KeptDump> dumps = {Dump("w1", 1, 1, 100), Dump("w2", 1, 2, 100), Dump("young", 1, 9, 100), Dump("other", 2, 0, 100)};
  dumps[0].waiting = dumps[1].waiting = true;
  EXPECT_THAT(Names(PlanRemovals(dumps, {.total = 200}, {})), ElementsAre("other", "young"));
  // Recording continues, whatever it takes.
  QuotaPlan plan = PlanRemovals(dumps, {.total = 150}, {});
  EXPECT_THAT(Names(plan), ElementsAre("other", "young", "w1"));
  EXPECT_FALSE(plan.over_total);
  EXPECT_THAT(Names(PlanRemovals(dumps, {.per_uid = 150}, {})), ElementsAre("young", "w1"));
  // Not for the sake of what may be written later.
  EXPECT_THAT(Names(PlanRemovals(dumps, {.total = 250}, {.total = 200, .margin = 10})), ElementsAre("other", "young"));
  EXPECT_THAT(Names(PlanRemovals(dumps, {.total = 250}, {.total = 200, .margin = 60})), ElementsAre("other", "young", "w1"));
}

TEST(DumpQuotaTest, AUsersOwnLimitTakesTheirDumpsOnly) {
  std::vector<KeptDump> dumps = {Dump("a1", 1, 1, 100), Dump("b1", 2, 2, 100),
                                 Dump("a2", 1, 3, 100), Dump("root", 0, 0, 1000)};
  QuotaPlan plan = PlanRemovals(dumps, {.per_uid = 150}, {});
  EXPECT_THAT(Names(plan), ElementsAre("a1"));
  EXPECT_EQ(plan.removals[0].reason, kReasonPerUid);
  EXPECT_THAT(plan.over_uids, IsEmpty());
  dumps[0].pinned = dumps[2].pinned = true;
  plan = PlanRemovals(dumps, {.per_uid = 150}, {});
  EXPECT_THAT(plan.removals, IsEmpty());
  EXPECT_THAT(plan.over_uids, ElementsAre(1u));
}

// What a user's limit removes counts for the whole, too; nothing is removed twice.
TEST(DumpQuotaTest, BothLimitsTogether) {
  std::vector<KeptDump> dumps = {Dump("a1", 1, 5, 100), Dump("b1", 2, 1, 100),
                                 Dump("a2", 1, 6, 100)};
  QuotaPlan plan = PlanRemovals(dumps, {.total = 200, .per_uid = 100}, {});
  EXPECT_THAT(Names(plan), ElementsAre("a1"));
}

TEST(DumpQuotaTest, DumpsBeingRemovedDoNotCount) {
  std::vector<KeptDump> dumps = {Dump("going", 1, 1, 100), Dump("stays", 1, 2, 100)};
  dumps[0].removing = true;
  EXPECT_THAT(PlanRemovals(dumps, {.total = 100}, {}).removals, IsEmpty());
}

}  // namespace
}  // namespace profd
