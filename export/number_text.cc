#include "export/number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace profd::exporting {
namespace {

// "000" to "999".
constexpr std::array<char, 3000> kTriples = [] {
  std::array<char, 3000> triples = {};
  for (size_t i = 0; i < 1000; ++i) {
    triples[i * 3] = static_cast<char>('0' + i / 100);
    triples[i * 3 + 1] = static_cast<char>('0' + i / 10 % 10);
    triples[i * 3 + 2] = static_cast<char>('0' + i % 10);
  }
  return triples;
}();

}  // namespace

char* AppendInt(char* out, int64_t value) { return std::to_chars(out, out + 24, value).ptr; }

char* AppendUint(char* out, uint64_t value) { return std::to_chars(out, out + 24, value).ptr; }

int64_t RoundScaled(double value, double scale) {
  // value * scale is exactly `scaled` + `error`; only at a tie of `scaled` does the error decide.
  double scaled = value * scale;
  double error = std::fma(value, scale, -scaled);
  double rounded = std::nearbyint(scaled);
  auto result = static_cast<int64_t>(rounded);
  double rest = scaled - rounded;
  if (rest == 0.5 && error > 0) return result + 1;
  if (rest == -0.5 && error < 0) return result - 1;
  // Beyond 2^53 doubles are whole numbers that are further apart than 1.
  return std::fabs(error) > 0.5 ? result + static_cast<int64_t>(std::nearbyint(error)) : result;
}

double PyRound3(double value) {
  if (!(std::fabs(value) <= 0x1p52)) return value;  // beyond, a double has no decimals
  return static_cast<double>(RoundScaled(value, 1000)) / 1000;
}

char* AppendDecimals(char* out, double value, int count) {
  const uint64_t scale = count == 3 ? 1000 : 1'000'000;
  // NaN, infinities, minus zero and what has more digits than fit.
  if (!(std::fabs(value) < 1e12) || (value == 0 && std::signbit(value)) || (count != 3 && count != 6)) {
    return std::to_chars(out, out + 400, value, std::chars_format::fixed, count).ptr;
  }
  const int64_t scaled = RoundScaled(value, static_cast<double>(scale));
  if (std::signbit(value)) *out++ = '-';
  const auto units = static_cast<uint64_t>(std::llabs(scaled));
  out = AppendUint(out, units / scale);
  *out++ = '.';
  uint64_t rest = units % scale;
  for (int i = count; i > 0; --i, rest /= 10) out[i - 1] = static_cast<char>('0' + rest % 10);
  return out + count;
}

char* AppendMicros(char* out, int64_t t_ns) {
  if (t_ns < 0) {
    *out++ = '-';
  }
  uint64_t ns = t_ns < 0 ? 0 - static_cast<uint64_t>(t_ns) : static_cast<uint64_t>(t_ns);
  out = AppendUint(out, ns / 1000);
  *out++ = '.';
  return AppendTriple(out, static_cast<uint32_t>(ns % 1000));
}

char* AppendTriple(char* out, uint32_t value) {
  std::memcpy(out, &kTriples[value * 3], 3);
  return out + 3;
}

char* AppendThousandths(char* out, double value) {
  const double scaled = value * 1000;
  if (!(std::fabs(scaled) < 1e15)) return nullptr;
  auto thousandths = static_cast<int64_t>(std::nearbyint(scaled));
  if (static_cast<double>(thousandths) / 1000 != value) return nullptr;
  if (thousandths < 0) {
    *out++ = '-';
    thousandths = -thousandths;
  }
  out = AppendUint(out, static_cast<uint64_t>(thousandths / 1000));
  *out++ = '.';
  AppendTriple(out, static_cast<uint32_t>(thousandths % 1000));
  if (out[2] != '0') return out + 3;
  return out[1] != '0' ? out + 2 : out + 1;
}

WideInt PowerOfTen(int exponent) {
  WideInt power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

WideInt NearestEven(WideInt num, WideInt den) {
  if (num < 0) return -NearestEven(-num, den);
  WideInt whole = num / den;
  WideInt rest = num % den;
  if (rest > den - rest || (rest == den - rest && (whole & 1) != 0)) ++whole;
  return whole;
}

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

}  // namespace profd::exporting
