#include "daemon/node/rights.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <unistd.h>

namespace profd {
namespace {

constexpr uint64_t Bit(unsigned number) { return uint64_t{1} << number; }
constexpr uint64_t kAll = Bit(CAP_CHOWN) | Bit(CAP_DAC_OVERRIDE) | Bit(CAP_SYS_PTRACE);

TEST(RightsTest, WithAllOfThemNothingIsLost) {
  for (uint32_t uid : {0U, 990U}) {
    Rights rights(uid, kAll);
    EXPECT_TRUE(rights.privileged());
    EXPECT_TRUE(rights.Losses().empty());
    EXPECT_TRUE(rights.MayGiveDump(1000).ok());
  }
}

TEST(RightsTest, EachLossIsNamed) {
  for (auto [bit, name] : {std::pair{CAP_CHOWN, "CAP_CHOWN"}, {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                           {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}}) {
    std::vector<RightLoss> losses = Rights(0, kAll & ~Bit(static_cast<unsigned>(bit))).Losses();
    ASSERT_EQ(losses.size(), 1U) << name;
    EXPECT_EQ(losses[0].capability, name);
  }
}

TEST(RightsTest, DumpsForOthersNeedTwo) {
  Status refused = Rights(0, Bit(CAP_SYS_PTRACE)).MayGiveDump(1000);
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(refused.message().find("CAP_CHOWN and CAP_DAC_OVERRIDE"), std::string::npos);
  EXPECT_TRUE(Rights(0, 0).MayGiveDump(0).ok());
  EXPECT_TRUE(Rights(0, kAll & ~Bit(CAP_SYS_PTRACE)).MayGiveDump(1000).ok());
}

TEST(RightsTest, AnOrdinaryUserServesThemselves) {
  Rights rights(1000, 0);
  EXPECT_FALSE(rights.privileged());
  EXPECT_TRUE(rights.Losses().empty());
  EXPECT_TRUE(rights.MayGiveDump(1000).ok());
  EXPECT_FALSE(rights.MayGiveDump(1001).ok());
}

TEST(RightsTest, OfThisProcess) {
  EXPECT_EQ(Rights::OfThisProcess().MayGiveDump(::geteuid()).code(), StatusCode::kOk);
}

}  // namespace
}  // namespace profd
