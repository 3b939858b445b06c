#include "dump/loss_reason.h"

#include <gtest/gtest.h>

#include <set>

namespace profd {
namespace {

TEST(LossReason, EveryNameIsItsOwnReason) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(LossReason::kNotNoted); ++i) {
    const auto reason = static_cast<LossReason>(i);
    EXPECT_EQ(LossReasonOf(ToString(reason)), reason) << ToString(reason);
    names.insert(ToString(reason));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(LossReason::kNotNoted) + 1);
}

// Names as manifests of earlier versions have them.
TEST(LossReason, NamesStay) {
  EXPECT_EQ(ToString(LossReason::kQueueFull), "queue_full");
  EXPECT_EQ(ToString(LossReason::kChannelRestart), "channel_restart");
  EXPECT_EQ(ToString(LossReason::kDaemonEnded), "daemon_ended");
  EXPECT_EQ(ToString(LossReason::kRecorderEvicted), "recorder_evicted");
  EXPECT_EQ(ToString(LossReason::kNotNoted), "not_noted");
  EXPECT_EQ(LossReasonOf("of_tomorrow"), LossReason::kUnknown);
}

}  // namespace
}  // namespace profd
