#include "daemon/health/npu_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/manual_executor.h"
#include "collectors/metric_table.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class NpuHealthTest : public ::testing::Test {
 protected:
  NpuHealthTest() { clock_.Advance(kNsPerSecond); }
  // NPU 0 is well, NPU 1 as `problem` says.
  bool Update(const std::string& problem) {
    HealthFacts well{.npu = "0", .up = true, .health_status = 0, .faults_known = true};
    HealthFacts other = well;
    other.device = 1;
    other.npu = "5";
    other.problem = problem;
    return health_.Update({well, other});
  }
  std::map<int, double> Verdicts() const {
    std::map<int, double> verdicts;
    const MetricId metric = MetricByName("atlas_npu_verdict");
    store_.VisitFreshOf(std::span(&metric, 1), clock_.MonotonicRawNs(),
                        [&verdicts](const SeriesValue& series) { verdicts[series.device] = series.value; });
    return verdicts;
  }

  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  MetricStore store_;
  NpuHealth health_{control_, store_, clock_};
};

TEST_F(NpuHealthTest, NodeWithoutNpusHasTheReason) {
  EXPECT_FALSE(health_.Update({}));
  v1::Node node;
  health_.Describe("no libascend_hal.so", &node);
  EXPECT_EQ(node.health().verdict(), v1::Health::VERDICT_UNKNOWN);
  EXPECT_THAT(node.health().flags(), ElementsAre(v1::Health::FLAG_NO_NPU));
  EXPECT_THAT(node.health().reasons(), ElementsAre("no usable NPU: no libascend_hal.so"));
}

// NPUs that libdcmi knows, on a node without libascend_hal.so.
TEST_F(NpuHealthTest, NpusOfDcmiAloneHaveTheMetricOnly) {
  HealthFacts well{.device = 0, .up = true, .health_status = 0};
  HealthFacts alarm{.device = 1, .up = true, .health_status = 2};
  EXPECT_FALSE(health_.Update({}, {well, alarm}));
  EXPECT_THAT(Verdicts(), ElementsAre(Pair(0, 0), Pair(1, 2)));
  EXPECT_EQ(health_.Of(1), nullptr);
  v1::Node node;
  health_.Describe("no libascend_hal.so", &node);
  EXPECT_THAT(node.health().flags(), ElementsAre(v1::Health::FLAG_NO_NPU));
}

TEST_F(NpuHealthTest, NpuThatIsDownIsSeenByAllWhoAsk) {
  EXPECT_FALSE(health_.IsDown(1));
  Update("");
  EXPECT_THAT(Verdicts(), ElementsAre(Pair(0, 0), Pair(1, 0)));
  EXPECT_FALSE(Update(""));

  EXPECT_TRUE(Update("lost communication"));
  EXPECT_TRUE(health_.IsDown(1));
  EXPECT_FALSE(health_.IsDown(0));
  EXPECT_THAT(Verdicts(), ElementsAre(Pair(0, 0), Pair(1, 3)));
  v1::Device device;
  health_.Describe(1, &device);
  EXPECT_EQ(device.problem(), "lost communication");
  EXPECT_EQ(device.health().verdict(), v1::Health::VERDICT_DOWN);
  v1::Node node;
  health_.Describe("", &node);
  EXPECT_EQ(node.health().verdict(), v1::Health::VERDICT_DOWN);
  EXPECT_THAT(node.health().reasons(), ElementsAre("NPU 5 is down"));

  EXPECT_TRUE(Update(""));
  node.Clear();
  health_.Describe("", &node);
  EXPECT_THAT(node.health().reasons(), IsEmpty());
}

}  // namespace
}  // namespace profd
