#include "export/trace/json_text.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace profd::exporting {
namespace {

std::string Shortest(double value) {
  char text[32];
  return {text, AppendShortest(text, value)};
}

TEST(JsonTextTest, ShortestNumbers) {
  EXPECT_EQ(Shortest(0), "0.0");
  EXPECT_EQ(Shortest(3), "3.0");
  EXPECT_EQ(Shortest(-12.5), "-12.5");
  EXPECT_EQ(Shortest(51338.985), "51338.985");
  EXPECT_EQ(Shortest(0.001), "0.001");
  EXPECT_EQ(Shortest(0.0005), "0.0005");
  EXPECT_EQ(Shortest(-0.05), "-0.05");
  EXPECT_EQ(Shortest(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(Shortest(999999999999.999), "999999999999.999");
  EXPECT_EQ(Shortest(1099511627776), "1099511627776.0");
  EXPECT_EQ(Shortest(1e300), "1e+300");
  EXPECT_EQ(Shortest(std::nan("")), "0.0");
  EXPECT_EQ(Shortest(-std::numeric_limits<double>::infinity()), "0.0");
}

TEST(JsonTextTest, EveryNumberReadsAsItself) {
  uint64_t random = 12345;
  for (int i = 0; i < 100000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    double value = static_cast<double>(random >> 20) / static_cast<double>(1ULL << (random % 50));
    std::string text = Shortest(value);
    double again = 0;
    std::from_chars(text.data(), text.data() + text.size(), again);
    ASSERT_EQ(again, value) << text;
    ASSERT_LE(text.size(), 26U) << text;
  }
}

TEST(JsonTextTest, TextsAreRepairedText) {
  EXPECT_EQ(JsonEscaped("plain \xE6\xB5\x8B"), "plain \xE6\xB5\x8B");
  EXPECT_EQ(JsonEscaped("a\"b\\c\n"), "a\\\"b\\\\c\\u000a");
  EXPECT_EQ(JsonEscaped("\xFF\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(JsonEscaped("\xED\xA0\x80").substr(0, 3), "\xEF\xBF\xBD");
  EXPECT_EQ(JsonEscaped("cut \xE6\xB5"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(JsonEscaped(std::string(5000, 'x')).size(), kMaxText);
  // Not within a character.
  EXPECT_EQ(JsonEscaped(std::string(1022, 'x') + "\xE6\xB5\x8B"), std::string(1022, 'x'));
  std::string appended;
  AppendJsonEscaped(&appended, std::string(1021, 'x') + "\xE6\xB5\x8B\xE6\xB5\x8B");
  EXPECT_EQ(appended, std::string(1021, 'x') + "\xE6\xB5\x8B");
}

TEST(JsonTextTest, Timestamps) {
  MicrosText micros;
  EXPECT_EQ(micros.Of(1767225600'040'000'000), "1767225600040000.000");
  EXPECT_EQ(micros.Of(1767225600'040'000'000), "1767225600040000.000");
  EXPECT_EQ(micros.Of(1767225600'000'000'007), "1767225600000000.007");
  EXPECT_EQ(micros.Of(1767225601'999'999'999), "1767225601999999.999");
  EXPECT_EQ(micros.Of(0), "0.000");
  EXPECT_EQ(micros.Of(-1500), "-1.500");
  EXPECT_EQ(micros.Of(999'999'999), "999999.999");
  EXPECT_EQ(micros.Of(1'000'000'000), "1000000.000");
}

}  // namespace
}  // namespace profd::exporting
