#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/bytes.h"

namespace profd {
namespace {

TEST(Text, NumberMustBeTheCompleteText) {
  uint64_t value = 9;
  EXPECT_TRUE(ParseNumber("18446744073709551615", &value));
  EXPECT_EQ(value, std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(ParseNumber("18446744073709551616", &value));
  EXPECT_FALSE(ParseNumber("12x", &value));
  EXPECT_FALSE(ParseNumber("", &value));
}

TEST(Text, TokensAndLines) {
  std::string_view rest = "a  b\nc d";
  std::string_view line;
  ASSERT_TRUE(NextLine(&rest, &line));
  EXPECT_EQ(NextToken(&line), "a");
  EXPECT_EQ(NextToken(&line), "b");
  EXPECT_EQ(NextToken(&line), "");
  ASSERT_TRUE(NextLine(&rest, &line));
  EXPECT_EQ(line, "c d");
  EXPECT_FALSE(NextLine(&rest, &line));
}

TEST(Bytes, LoadStaysInBounds) {
  std::string_view text = "\x01\x02\x03\x04\x05";
  uint32_t value = 0;
  EXPECT_TRUE(Load(AsBytes(text), 1, &value));
  EXPECT_EQ(value, 0x05040302U);
  EXPECT_FALSE(Load(AsBytes(text), 2, &value));
  EXPECT_FALSE(Load(AsBytes(text), std::numeric_limits<size_t>::max(), &value));
}

}  // namespace
}  // namespace profd
