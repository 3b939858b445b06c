#include "export/csv/vendor_math.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "export/number_text.h"

namespace profd::exporting::csv {
namespace {

constexpr std::array<double, 7> kPowers = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
constexpr std::array<double, 7> kHalves = {0.5, 0.5e-1, 0.5e-2, 0.5e-3, 0.5e-4, 0.5e-5, 0.5e-6};
// Beyond, a double has no decimals worth rounding.
constexpr double kNoDecimals = 4503599627370496.0;

// The value's shortest decimal text in units of 1e-18, what is below cut off. |value| < 1e15.
WideInt Decimal18(double value) {
  int64_t digits = 0;  // at most 17 of them
  int exponent = 0;
  if (!ShortestDecimal(std::fabs(value), &digits, &exponent) || exponent < -36) return 0;
  const int scale = 18 + exponent;
  const WideInt units = scale < 0 ? digits / PowerOfTen(-scale) : digits * PowerOfTen(scale);
  return value < 0 ? -units : units;
}

// A point and a digit into a text that has none, in front of its exponent.
char* WithPoint(char* begin, char* end) {
  char* e = std::find(begin, end, 'e');
  if (std::find(begin, e, '.') != e) return end;
  std::memmove(e + 2, e, static_cast<size_t>(end - e));
  e[0] = '.';
  e[1] = '0';
  return end + 2;
}

}  // namespace

double SqlRound(double value, int digits) {
  auto place = static_cast<size_t>(std::clamp(digits, 1, 6));
  if (!std::isfinite(value) || std::fabs(value) > kNoDecimals) return value;
  double magnitude = std::fabs(value);
  // What is not close to a tie is settled without the wide numbers: the errors of all below are smaller than this.
  const double scaled_roughly = magnitude * kPowers[place];
  if (scaled_roughly < 1e15) {
    const auto whole = static_cast<double>(static_cast<int64_t>(scaled_roughly));
    const double part = scaled_roughly - whole;
    if (std::fabs(part - 0.5) > scaled_roughly * 1e-15) {
      const double rounded = (part > 0.5 ? whole + 1 : whole) / kPowers[place];
      return value < 0 ? -rounded : rounded;
    }
  }
  long double sum = static_cast<long double>(magnitude);
  long double push = kHalves[place];
  int exponent = magnitude == 0 ? -1023 : std::ilogb(magnitude);
  if (static_cast<int>(place) + exponent / 3 < 15) push += sum * 3e-16L;
  long double scaled = std::floor((sum + push) * kPowers[place]);
  double rounded = static_cast<double>(scaled) / kPowers[place];
  return value < 0 ? -rounded : rounded;
}

std::string DecimalAverage(std::span<const double> values, int64_t count) {
  constexpr WideInt kThousandth = 1'000'000'000'000'000;
  WideInt sum = 0;
  for (double value : values) {
    if (std::isfinite(value) && std::fabs(value) < 1e15) sum += Decimal18(value);
  }
  const WideInt thousandths = count > 0 ? NearestEven(NearestEven(sum, kThousandth), count) : 0;
  auto average = static_cast<int64_t>(thousandths);
  std::string text = average < 0 ? "-" : "";
  average = std::abs(average);
  text += std::to_string(average / 1000) + '.';
  std::string decimals = std::to_string(average % 1000);
  return text.append(3 - decimals.size(), '0') + decimals;
}

char* AppendRepr(char* out, double value) {
  if (!std::isfinite(value)) value = 0;
  double magnitude = std::fabs(value);
  bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  if (!fixed) return std::to_chars(out, out + 32, value, std::chars_format::scientific).ptr;
  return WithPoint(out, std::to_chars(out, out + 32, value, std::chars_format::fixed).ptr);
}

char* AppendSqlText(char* out, double value) {
  if (!std::isfinite(value)) value = 0;
  if (char* end = std::signbit(value) ? nullptr : AppendThousandths(out, value)) return end;
  return WithPoint(out, std::to_chars(out, out + 30, value, std::chars_format::general, 15).ptr);
}

}  // namespace profd::exporting::csv
