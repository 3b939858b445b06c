#include "daemon/session/aclprof_plan.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

TEST(AclprofPlan, OnlyItMeasuresTheseOptions) {
  EXPECT_TRUE(NeedsAclprof("aic_metrics", "PipeUtilization"));
  EXPECT_TRUE(NeedsAclprof("aicpu", "on"));
  EXPECT_TRUE(NeedsAclprof("l2", "on"));
  EXPECT_TRUE(NeedsAclprof("training_trace", "on"));
  EXPECT_FALSE(NeedsAclprof("aicpu", "off"));
  EXPECT_FALSE(NeedsAclprof("task_time", "l1"));
  EXPECT_FALSE(NeedsAclprof("hccl", "on"));
  EXPECT_FALSE(NeedsAclprof("aic_metrics", "Custom:0x1,0x2")) << "its interface has no registers";
}

TEST(AclprofPlan, BitsOfTheOptions) {
  const auto bits = [](const std::map<std::string, std::string>& options) {
    const auto request = AclprofRequestOf(options, 0);
    return request ? request->bits : 0;
  };
  EXPECT_EQ(bits({{"task_time", "l0"}}), 0x800u);
  EXPECT_EQ(bits({{"task_time", "l1"}}), 0x822u) << "collectives are among the operators";
  EXPECT_EQ(bits({{"task_trace", "on"}}), 0x822u);
  EXPECT_EQ(bits({{"training_trace", "on"}}), 0x40u);
  EXPECT_EQ(bits({{"hccl", "on"}, {"runtime_api", "on"}}), 0x120u);
  EXPECT_EQ(bits({{"aicpu", "on"}, {"l2", "on"}}), 0x18u);
  EXPECT_EQ(bits({{"msproftx", "on"}, {"ACL_PROF_ACL_API", "on"}}), 0x81u);
  EXPECT_EQ(bits({{"aicpu", "off"}, {"fp_point", "conv"}}), 0u);
}

TEST(AclprofPlan, MetricsByTheirNumbers) {
  const struct {
    const char* name;
    uint32_t metrics;
  } kNames[] = {{"ArithmeticUtilization", 0}, {"PipeUtilization", 1}, {"Memory", 2}, {"MemoryL0", 3},
                {"ResourceConflictRatio", 4}, {"MemoryUB", 5},        {"L2Cache", 6}};
  for (const auto& each : kNames) {
    const auto request = AclprofRequestOf({{"aic_metrics", each.name}}, 0);
    ASSERT_TRUE(request.has_value()) << each.name;
    EXPECT_EQ(request->bits, 0x4u);
    EXPECT_EQ(request->metrics, each.metrics) << each.name;
  }
  EXPECT_FALSE(AclprofRequestOf({{"aic_metrics", "Custom:0x8"}}, 0).has_value());
}

TEST(AclprofPlan, TheStorageLimitIsTheSessions) {
  EXPECT_EQ(AclprofRequestOf({{"l2", "on"}}, 500)->config, (std::map<std::string, std::string>{{"storage_limit", "500MB"}}));
  EXPECT_TRUE(AclprofRequestOf({{"l2", "on"}}, 0)->config.empty());
}

TEST(AclprofPlan, OptionsThatARequestServes) {
  const attach::AclprofRequest request = *AclprofRequestOf({{"task_time", "l0"}, {"l2", "on"}}, 0);
  EXPECT_TRUE(Serves(request, "task_time"));
  EXPECT_TRUE(Serves(request, "task_trace"));
  EXPECT_TRUE(Serves(request, "l2"));
  EXPECT_FALSE(Serves(request, "aicpu"));
  EXPECT_TRUE(Serves(request, "fp_point")) << "among the operators";
  EXPECT_FALSE(Serves(*AclprofRequestOf({{"l2", "on"}}, 0), "bp_point"));
}

}  // namespace
}  // namespace profd
