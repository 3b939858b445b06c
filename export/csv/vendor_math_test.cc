#include "export/csv/vendor_math.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "export/csv/operator_parts.h"

namespace profd::exporting::csv {
namespace {

// As a reader takes the text: not ns / 1000, as ns of today have more digits than a double.
TEST(MicrosAsPrinted, IsWhatTheTextReadsBackAs) {
  EXPECT_EQ(MicrosAsPrinted(1'767'225'600'002'505'020), 1'767'225'600'002'505.020);
  EXPECT_EQ(MicrosAsPrinted(1'767'225'600'002'956'380), 1'767'225'600'002'956.380);
  EXPECT_EQ(MicrosAsPrinted(51'180), 51.180);
  EXPECT_EQ(MicrosAsPrinted(0), 0);
}

std::string Repr(double value) {
  std::array<char, 40> text;
  return {text.data(), AppendRepr(text.data(), value)};
}

std::string SqlText(double value) {
  std::array<char, 40> text;
  return {text.data(), AppendSqlText(text.data(), value)};
}

// A half is added, and 3e-16 of the value: what lies a little below a tie goes up with it.
TEST(SqlRound, AroundTies) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-4, 11);
  for (int i = 0; i < 200'000; ++i) {
    const int digits = 1 + static_cast<int>(random() % 6);
    const double power = std::pow(10, digits);
    const auto whole = static_cast<uint64_t>(std::pow(10, exponent(random)));
    double value = (static_cast<double>(whole) + 0.5) / power;  // as close to a tie as a double gets
    for (int steps = static_cast<int>(random() % 9); steps > 0; --steps) {
      value = std::nextafter(value, i % 2 == 0 ? 0.0 : 1e18);
    }
    if (i % 5 == 0) value = static_cast<double>(random() % 1'000'000'000) / 7919;
    const long double sum = static_cast<long double>(value);
    const auto half = static_cast<long double>(std::strtod(("0." + std::string(static_cast<size_t>(digits), '0') + "5").c_str(), nullptr));
    const bool pushed = digits + std::ilogb(value) / 3 < 15;
    const long double want = std::floor((sum + (pushed ? half + sum * 3e-16L : half)) * static_cast<long double>(power));
    ASSERT_EQ(SqlRound(value, digits), static_cast<double>(want) / power) << value << " " << digits;
    ASSERT_EQ(SqlRound(-value, digits), -SqlRound(value, digits));
  }
}

TEST(SqlRound, TiesGoAwayFromZero) {
  EXPECT_EQ(SqlRound(0.0625, 3), 0.063);
  EXPECT_EQ(SqlRound(-0.0625, 3), -0.063);
  EXPECT_EQ(SqlRound(0.1875, 3), 0.188);
  EXPECT_EQ(SqlRound(1.0005, 3), 1.001);  // 1.00049999... as a double
  EXPECT_EQ(SqlRound(1.00049, 3), 1.0);
  EXPECT_EQ(SqlRound(29173.9985, 3), 29173.999);
  EXPECT_EQ(SqlRound(0.5970815, 6), 0.597082);
  EXPECT_EQ(SqlRound(0, 3), 0);
  EXPECT_EQ(SqlRound(1e300, 3), 1e300);
}

TEST(DecimalAverage, QuantizesTwice) {
  // 1.0005 + 1.0 = 2.0005 -> 2.000 (even) -> 1.000
  EXPECT_EQ(DecimalAverage(std::vector<double>{1.0005, 1.0}, 2), "1.000");
  // 0.001 / 2 = 0.0005 -> 0.000
  EXPECT_EQ(DecimalAverage(std::vector<double>{0.001}, 2), "0.000");
  EXPECT_EQ(DecimalAverage(std::vector<double>{0.003}, 2), "0.002");
  EXPECT_EQ(DecimalAverage(std::vector<double>{190904.929, 191117.351}, 2), "191011.140");
  EXPECT_EQ(DecimalAverage(std::vector<double>{-0.5, 0}, 2), "-0.250");
  EXPECT_EQ(DecimalAverage(std::vector<double>{1e-20, 1}, 2), "0.500");
  EXPECT_EQ(DecimalAverage({}, 0), "0.000");
  EXPECT_EQ(DecimalAverage(std::vector<double>{std::numeric_limits<double>::infinity()}, 1),
            "0.000");
}

TEST(Repr, IsTheShortestText) {
  EXPECT_EQ(Repr(170898.43833559827), "170898.43833559827");
  EXPECT_EQ(Repr(299), "299.0");
  EXPECT_EQ(Repr(100000), "100000.0");
  EXPECT_EQ(Repr(366.25), "366.25");
  EXPECT_EQ(Repr(0), "0.0");
  EXPECT_EQ(Repr(1e-5), "1e-05");
  EXPECT_EQ(Repr(1e16), "1e+16");
  EXPECT_EQ(Repr(123456789012345.0), "123456789012345.0");
}

TEST(SqlText, HasFifteenDigits) {
  EXPECT_EQ(SqlText(699300), "699300.0");
  EXPECT_EQ(SqlText(0.1 + 0.2), "0.3");
  EXPECT_EQ(SqlText(1e15), "1.0e+15");
}

}  // namespace
}  // namespace profd::exporting::csv
