#include "export/decode/text_math.h"

#include <cmath>

namespace profd::exporting {
namespace {

constexpr double kNsPerMegaRate = 1e9 / 1048576.0;  // exact

}  // namespace

double RoundedQuotient(WideInt num, WideInt den, int decimals) {
  const WideInt power = PowerOfTen(decimals);
  return static_cast<double>(NearestEven(num * power, den)) / static_cast<double>(power);
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
