#include "export/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>

namespace profd::exporting {
namespace {

std::string Decimals3(double value) {
  char text[400];
  return {text, AppendDecimals(text, value, 3)};
}

std::string Micros(int64_t t_ns) {
  char text[32];
  return {text, AppendMicros(text, t_ns)};
}

// printf rounds the exact binary value, ties to even.
std::string ByPrintf(double value) {
  char text[400];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

TEST(NumberText, TiesAreThoseOfTheBinaryValue) {
  EXPECT_EQ(Decimals3(0.0625), "0.062");  // a real tie: to even
  EXPECT_EQ(Decimals3(0.1875), "0.188");
  EXPECT_EQ(Decimals3(1.0005), ByPrintf(1.0005));  // no tie in binary
  EXPECT_EQ(Decimals3(2.6745), ByPrintf(2.6745));
  EXPECT_EQ(Decimals3(0.0005), ByPrintf(0.0005));
}

TEST(NumberText, RoundsLikePrintf) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-5, 15.9);
  for (int i = 0; i < 200000; ++i) {
    double value = std::pow(10.0, exponent(random));
    if (i % 2 == 0) value = -value;
    ASSERT_EQ(Decimals3(value), ByPrintf(value)) << value;
  }
}

// Where rounding is hard: halves of the last place, and their neighbours.
TEST(NumberText, RoundsTiesLikePrintf) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100000; ++i) {
    double tie = (static_cast<double>(random() % 2000000) + 0.5) / 1000;
    for (double value : {tie, std::nextafter(tie, 0), std::nextafter(tie, 1e9)}) {
      ASSERT_EQ(Decimals3(value), ByPrintf(value)) << value;
    }
    double eighth = static_cast<double>(random() % 1000000) + 0.0625;
    ASSERT_EQ(Decimals3(eighth), ByPrintf(eighth)) << eighth;
  }
}

TEST(NumberText, ScaledIsExactBeyondWhatDoublesHold) {
  char text[400];
  std::mt19937_64 random(13);
  for (int i = 0; i < 100000; ++i) {
    double value = static_cast<double>(random() >> 11) / 1000;  // up to 9e12
    std::snprintf(text, sizeof text, "%.6f", value);
    std::string digits = text;
    digits.erase(digits.find('.'), 1);
    ASSERT_EQ(RoundScaled(value, 1e6), std::stoll(digits)) << value;
  }
}

TEST(PyRound3, TheExactValueDecides) {
  EXPECT_EQ(PyRound3(0.0625), 0.062);
  EXPECT_EQ(PyRound3(0.1875), 0.188);
  EXPECT_EQ(PyRound3(1.0005), 1.0);
  EXPECT_EQ(PyRound3(0.0005), 0.001);  // 0.00050000000000000001
  EXPECT_EQ(PyRound3(0.0015), 0.002);
  EXPECT_EQ(PyRound3(-0.0625), -0.062);
  EXPECT_EQ(PyRound3(2.6755), 2.675);  // 2.67549999999999999
}

TEST(NumberText, Microseconds) {
  EXPECT_EQ(Micros(1767225600040000000), "1767225600040000.000");
  EXPECT_EQ(Micros(1767225600009999872), "1767225600009999.872");
  EXPECT_EQ(Micros(5), "0.005");
  EXPECT_EQ(Micros(-1500), "-1.500");
  EXPECT_EQ(Micros(INT64_MIN), "-9223372036854775.808");
}

}  // namespace
}  // namespace profd::exporting
