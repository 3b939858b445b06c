#include "daemon/rpc/call_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace profd::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Memory = std::shared_ptr<CallHold>;

Peer User(uint32_t uid) { return {.uid = uid}; }

// Every row of the table.
class CallLimitsTest : public ::testing::TestWithParam<CallLimit> {
 protected:
  // As many as the user gets, at most `most`; the last answer is in last_.
  std::vector<Memory> TakeAll(const Peer& peer, size_t most, uint64_t bytes = 0) {
    std::vector<Memory> held;
    while (held.size() < most) {
      Result<Memory> memory = ledger_.Take(GetParam().kind, peer, bytes);
      last_ = memory.status();
      if (!memory.ok()) break;
      held.push_back(*memory);
    }
    return held;
  }
  CallLedger::Usage usage() const { return ledger_.usage(GetParam().kind); }

  CallLedger ledger_;
  Status last_;
};

TEST_P(CallLimitsTest, CallsOfOneUser) {
  const CallLimit& limit = GetParam();
  std::vector<Memory> held = TakeAll(User(1000), SIZE_MAX);
  EXPECT_EQ(held.size(), limit.calls_per_user);
  EXPECT_EQ(last_.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(last_.message(),
              AllOf(HasSubstr(limit.what), HasSubstr("uid 1000"), HasSubstr("the limit for one user"),
                    HasSubstr(std::to_string(limit.calls_per_user)), HasSubstr(limit.advice)));
  EXPECT_EQ(usage().refused_user, 1U);
  EXPECT_EQ(usage().calls, limit.calls_per_user);
  EXPECT_EQ(usage().bytes, limit.calls_per_user * limit.base_bytes);
  // Others get theirs, and so does the same user when one has ended.
  EXPECT_EQ(TakeAll(User(1001), SIZE_MAX).size(), limit.calls_per_user);
  held.pop_back();
  EXPECT_EQ(TakeAll(User(1000), SIZE_MAX).size(), 1U);
  held.clear();
  EXPECT_EQ(usage().calls, 0U);
  EXPECT_EQ(usage().bytes, 0U);
}

TEST_P(CallLimitsTest, BytesOfOneUser) {
  const CallLimit& limit = GetParam();
  std::vector<Memory> held = TakeAll(User(1000), 2);
  const uint64_t left = limit.bytes_per_user - 2 * limit.base_bytes;
  EXPECT_TRUE(held[0]->Grow(left - 1).ok());
  EXPECT_TRUE(held[1]->Grow(1).ok());
  Status refused = held[1]->Grow(1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr(limit.what), HasSubstr("uid 1000"), HasSubstr("MiB"),
                    HasSubstr("the limit for one user"), HasSubstr(limit.advice)));
  EXPECT_EQ(TakeAll(User(1000), 1).size(), 0U);
  EXPECT_EQ(usage().refused_user, 2U);
  EXPECT_EQ(TakeAll(User(1001), 1).size(), 1U);
  held[0]->Shrink(left - 1);
  EXPECT_TRUE(held[1]->Grow(left - 1).ok());
  EXPECT_EQ(usage().bytes, limit.bytes_per_user);
}

TEST_P(CallLimitsTest, CallsOfTheNode) {
  const CallLimit& limit = GetParam();
  std::vector<Memory> held;
  for (uint32_t uid = 1; held.size() < limit.calls_per_node; ++uid) {
    for (Memory& memory : TakeAll(User(uid), 3)) held.push_back(std::move(memory));
    if (!last_.ok()) break;
  }
  EXPECT_EQ(held.size(), limit.calls_per_node);
  TakeAll(User(999999), 1);
  EXPECT_THAT(last_.message(), AllOf(HasSubstr("all users together"), HasSubstr("uid 999999")));
  EXPECT_GE(usage().refused_node, 1U);
  EXPECT_EQ(usage().refused_user, 0U);
  // Administrators can stop another user's session.
  Peer admin = User(0);
  admin.admin = true;
  EXPECT_EQ(TakeAll(admin, SIZE_MAX).size(), limit.calls_per_user);
}

TEST_P(CallLimitsTest, BytesOfTheNode) {
  const CallLimit& limit = GetParam();
  std::vector<Memory> held;
  const uint64_t most = limit.bytes_per_user - limit.base_bytes;
  for (uint32_t uid = 1; uid < 1000; ++uid) {
    for (Memory& memory : TakeAll(User(uid), 1, most)) held.push_back(std::move(memory));
    if (!last_.ok()) break;
  }
  EXPECT_EQ(usage().bytes, limit.bytes_per_node / limit.bytes_per_user * limit.bytes_per_user);
  EXPECT_EQ(last_.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(last_.message(), AllOf(HasSubstr("all users"), HasSubstr("together")));
  EXPECT_EQ(usage().refused_node, 1U);
}

// A few users at their limits are not the node's, and one user is far from what the unit allows.
TEST_P(CallLimitsTest, NumbersFitTogether) {
  const CallLimit& limit = GetParam();
  EXPECT_GE(limit.calls_per_node, 3 * limit.calls_per_user);
  EXPECT_GE(limit.bytes_per_node, 3 * limit.bytes_per_user);
  EXPECT_LE(limit.calls_per_user * limit.base_bytes, limit.bytes_per_user);
  constexpr uint64_t kMemoryHigh = uint64_t{768} << 20;  // systemd/profd.service.in
  EXPECT_LE(limit.bytes_per_node, kMemoryHigh / 6);
}

INSTANTIATE_TEST_SUITE_P(Rows, CallLimitsTest, ::testing::ValuesIn(CallLimits().begin(), CallLimits().end()),
                         [](const auto& row) { return std::string(row.param.label); });

TEST(CallLedger, ViewersAreDistinguishedByTheirCertificates) {
  CallLedger ledger;
  Peer one;
  one.viewer = true;
  one.certificate = "CN=one";
  Peer other = one;
  other.certificate = "CN=other";
  std::vector<Memory> held;
  for (;;) {
    Result<Memory> memory = ledger.Take(CallKind::kFetch, one);
    if (!memory.ok()) {
      EXPECT_THAT(memory.status().message(), HasSubstr("certificate CN=one"));
      break;
    }
    held.push_back(*memory);
  }
  EXPECT_TRUE(ledger.Take(CallKind::kFetch, other).ok());
}

TEST(CallLedger, HoldsMayOutliveIt) {
  auto ledger = std::make_unique<CallLedger>();
  Memory memory = ledger->Take(CallKind::kWatch, User(7)).value();
  ledger.reset();
  EXPECT_TRUE(memory->Grow(100).ok());
}

}  // namespace
}  // namespace profd::rpc
