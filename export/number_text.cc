#include "export/number_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace profd::exporting {

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
  uint64_t part = ns % 1000;
  *out++ = '.';
  *out++ = static_cast<char>('0' + part / 100);
  *out++ = static_cast<char>('0' + part / 10 % 10);
  *out++ = static_cast<char>('0' + part % 10);
  return out;
}

}  // namespace profd::exporting
