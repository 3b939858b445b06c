#include "base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace profd {
namespace {

constexpr auto kNames = std::to_array<std::string_view>(
    {"hbm", "hccs", "host_cpu", "host_mem", "interconnection", "sys_io_sampling_freq"});

TEST(NearestTest, FindsWhatWasMeant) {
  EXPECT_EQ(Nearest("hmb", kNames), "hbm");
  EXPECT_EQ(Nearest("hcs", kNames), "hccs");
  EXPECT_EQ(Nearest("host-cpu", kNames), "host_cpu");
  EXPECT_EQ(Nearest("interconection", kNames), "interconnection");
  EXPECT_EQ(Nearest("sys_io", kNames), "sys_io_sampling_freq");
  EXPECT_EQ(Nearest("HBM", kNames), "hbm");
  EXPECT_EQ(Nearest("Host_CPU", kNames), "host_cpu");
}

TEST(NearestTest, SuggestsNothingForDistantWords) {
  EXPECT_EQ(Nearest("gpu", kNames), "");
  EXPECT_EQ(Nearest("", kNames), "");
  EXPECT_EQ(Nearest("x", kNames), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'h'), kNames), "");
  EXPECT_EQ(DidYouMean("gpu", kNames), "");
}

TEST(NearestTest, IsPartOfASentence) {
  EXPECT_EQ("no hmb" + DidYouMean("hmb", kNames), "no hmb; did you mean hbm?");
}

}  // namespace
}  // namespace profd
