#include "daemon/jobs/user_memory.h"

#include <gtest/gtest.h>

#include <optional>

namespace profd {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(UserMemory, IsLimitedPerUserAndNode) {
  const auto memory = std::make_shared<UserMemory>();
  HeldMemory first(memory, 1000);
  std::optional<HeldMemory> second(std::in_place, memory, 1000);
  HeldMemory other(memory, 2000);
  EXPECT_TRUE(first.Resize(150 * kMiB));
  EXPECT_TRUE(second->Grow(42 * kMiB));
  EXPECT_FALSE(second->Grow(1)) << "192 MiB per user";
  EXPECT_EQ(second->bytes(), 42 * kMiB);
  EXPECT_TRUE(other.Resize(64 * kMiB));
  EXPECT_FALSE(other.Grow(1)) << "256 MiB per node";
  second.reset();
  EXPECT_TRUE(other.Grow(42 * kMiB));
  EXPECT_TRUE(first.Resize(0));
}

TEST(UserMemory, MayBeNone) {
  HeldMemory held(nullptr, 0);
  EXPECT_TRUE(held.Resize(UserMemory::kPerNode + 1));
}

}  // namespace
}  // namespace profd
