#include <gtest/gtest.h>

#include <array>

#include "analysis/rules/host_work.h"
#include "analysis/rules/limits.h"
#include "analysis/rules/slowest_rank.h"

namespace profd::analysis {
namespace {

TEST(LimitsTest, OneIsChangedByItsName) {
  Limits limits;
  EXPECT_EQ(limits.At("gc", "least_us"), 1000);
  ASSERT_TRUE(limits.Set("gc.least_us = 500").ok());
  EXPECT_EQ(limits.At("gc", "least_us"), 500);
}

TEST(LimitsTest, RefusesUnknownLimitsByName) {
  Limits limits;
  EXPECT_NE(limits.Set("gc.most=1").message().find("gc.most"), std::string::npos);
  EXPECT_NE(limits.Set("hang.leest_s=1").message().find("there is no limit hang.leest_s; did you mean hang.least_s?"), std::string::npos);
  EXPECT_NE(limits.Set("gc.least_us=-1").message().find("gc.least_us"), std::string::npos);
  EXPECT_NE(limits.Set("gc.least_us=nan").message().find("gc.least_us"), std::string::npos);
  EXPECT_FALSE(limits.Set("gc.least_us").ok());
  EXPECT_FALSE(limits.Set("gc=1.5").ok());
  EXPECT_EQ(limits.At("gc", "least_us"), 1000);
}

TEST(LimitsTest, TextNamesEveryWrongKey) {
  Limits limits;
  ASSERT_TRUE(limits.Parse("[packet]\nsdma_mb = 8\n", "x").ok());
  EXPECT_EQ(limits.At("packet", "sdma_mb"), 8);
  // In the order of the file, which is not that of the names.
  const std::string wrong = limits.Parse("sdma_mb = 8\n[packet]\nsize = 8\n\n[gc]\nleast_us = \"a\"\n", "x").message();
  EXPECT_TRUE(wrong.starts_with("x:1: sdma_mb is no section: limits stand below [check]; x:3: there is no limit packet.size")) << wrong;
  EXPECT_TRUE(wrong.ends_with("; x:6: gc.least_us: a number from 0 on")) << wrong;
  EXPECT_NE(limits.Parse("[gc\n", "x").message().find("x:1"), std::string::npos);
}

TEST(SlowestRankTest, TheOneWithMostTimeOfItsOwn) {
  const std::array<RankShare, 4> ranks = {{{80, 20}, {80, 20}, {98, 2}, {82, 18}}};
  const auto slowest = FindSlowestRank(ranks);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->index, 2u);
  EXPECT_DOUBLE_EQ(slowest->behind_ms, 18);
  EXPECT_DOUBLE_EQ(slowest->share, 0.18);
}

TEST(SlowestRankTest, NoneAmongEqualOnesOrAlone) {
  EXPECT_FALSE(FindSlowestRank(std::array<RankShare, 2>{{{90, 10}, {90, 10}}}));
  EXPECT_FALSE(FindSlowestRank(std::array<RankShare, 1>{{{90, 10}}}));
  EXPECT_FALSE(FindSlowestRank({}));
}

TEST(SlowestRankTest, OneThatWaitsLongestIsNotWaitedFor) {
  EXPECT_FALSE(FindSlowestRank(std::array<RankShare, 3>{{{90, 10}, {90, 10}, {95, 30}}}));
}

TEST(HostWorkTest, ByTheNameOfTheRange) {
  EXPECT_EQ(HostWorkOf("dataloader"), HostWork::kDataloader);
  EXPECT_EQ(HostWorkOf("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), HostWork::kDataloader);
  EXPECT_EQ(HostWorkOf("gc"), HostWork::kGc);
  EXPECT_EQ(HostWorkOf("garbage collection"), HostWork::kGc);
  EXPECT_EQ(HostWorkOf("compile MatMulV2"), HostWork::kCompile);
  EXPECT_EQ(HostWorkOf("gcn_layer"), HostWork::kNone);
  EXPECT_EQ(HostWorkOf(""), HostWork::kNone);
}

}  // namespace
}  // namespace profd::analysis
