#include "daemon/node/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::HasSubstr;

Status OpticsWithout(const std::string& hccn_tool) {
  SystemClock clock;
  DaemonConfig config;
  config.hal_library = "/nonexistent/libascend_hal.so";
  config.dcmi_library = "/nonexistent/libdcmi.so";
  config.metrics_hccn_tool = hccn_tool;
  Result<std::unique_ptr<Node>> node = Node::Discover(config, clock);
  if (!node.ok()) return node.status();
  return (*node)->host().hccn_or_null->Usable();
}

// Not that its NPUs have no ports, which is not known.
TEST(NodeTest, WithoutTheHalOpticsNameItAsTheReason) {
  const Status why = OpticsWithout("auto");
  EXPECT_EQ(why.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(why.message(), HasSubstr("/nonexistent/libascend_hal.so"));
  EXPECT_THAT(OpticsWithout("off").message(), HasSubstr("metrics.hccn_tool is \"off\""));
}

// dump.flush_interval_ms and dump.queue_mb follow a reload.
TEST(NodeTest, RoundsAreNoFurtherApartThanDumpsAndMemoryPermit) {
  DaemonConfig config;
  config.relaxed_poll_interval_ms = 400;
  config.flush_interval_ms = 2000;
  EXPECT_EQ(RelaxedPollIntervalNs(config), 400 * kNsPerMs);
  config.flush_interval_ms = 1000;
  EXPECT_EQ(RelaxedPollIntervalNs(config), 250 * kNsPerMs);
  config.queue_mb = 8;
  EXPECT_EQ(RelaxedPollIntervalNs(config), 80 * kNsPerMs);
  config.buffer_mb = 4;
  EXPECT_EQ(RelaxedPollIntervalNs(config), 40 * kNsPerMs);
}

}  // namespace
}  // namespace profd
