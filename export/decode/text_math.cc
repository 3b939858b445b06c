#include "export/decode/text_math.h"

#include <array>
#include <charconv>
#include <cmath>

namespace profd::exporting {
namespace {

constexpr double kNsPerMegaRate = 1e9 / 1048576.0;  // exact

WideInt PowerOfTen(int exponent) {
  WideInt power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// The integer nearest to num / den, ties to even; both positive or 0.
WideInt NearestEven(WideInt num, WideInt den) {
  WideInt whole = num / den;
  WideInt rest = num % den;
  if (rest > den - rest || (rest == den - rest && (whole & 1) != 0)) ++whole;
  return whole;
}

// The shortest decimal number that reads back as `value` > 0 is digits * 10^exponent.
bool ShortestDecimal(double value, int64_t* digits, int* exponent) {
  std::array<char, 40> text;
  auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  if (error != std::errc()) return false;
  int64_t sum = 0;
  int decimals = 0;
  bool after_point = false;
  const char* at = text.data();
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      after_point = true;
      continue;
    }
    sum = sum * 10 + (*at - '0');
    if (after_point) ++decimals;
  }
  if (at == end) return false;
  ++at;
  if (at != end && *at == '+') ++at;
  int power = 0;
  if (std::from_chars(at, end, power).ec != std::errc()) return false;
  *digits = sum;
  *exponent = power - decimals;
  return sum > 0;
}

}  // namespace

double RoundedQuotient(WideInt num, WideInt den, int decimals) {
  bool negative = num < 0;
  if (negative) num = -num;
  WideInt scaled = NearestEven(num * PowerOfTen(decimals), den);
  double result = static_cast<double>(scaled) / static_cast<double>(PowerOfTen(decimals));
  return negative ? -result : result;
}

double RoundedMegaRate(uint64_t bytes, uint64_t ns) {
  if (ns == 0) return 0;
  double span = static_cast<double>(ns) / kNsPerMegaRate;
  double scaled = static_cast<double>(bytes) / span * 1000;
  if (scaled >= 0x1p52) return static_cast<double>(bytes) / span;
  double rounded = std::nearbyint(scaled);
  double to_tie = 0.5 - std::fabs(scaled - rounded);
  if (to_tie > scaled * 1e-15 + 1e-12) return rounded / 1000;
  int64_t digits = 0;
  int exponent = 0;
  // Within these bounds nothing below overflows.
  if (bytes >= uint64_t{1} << 55 || !ShortestDecimal(span, &digits, &exponent) || exponent < -16 ||
      exponent > 3) {
    return rounded / 1000;
  }
  WideInt num = static_cast<WideInt>(bytes) * 1000 * PowerOfTen(exponent < 0 ? -exponent : 0);
  WideInt den = static_cast<WideInt>(digits) * PowerOfTen(exponent > 0 ? exponent : 0);
  return static_cast<double>(NearestEven(num, den)) / 1000;
}

double ExactQuotient(double num, double den, double factor) {
  double high = den * factor;
  double low = std::fma(den, factor, -high);
  double quotient = num / high;
  double rest = std::fma(-quotient, high, num) - quotient * low;
  return quotient + rest / high;
}

}  // namespace profd::exporting
