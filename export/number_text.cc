#include "export/number_text.h"

#include <charconv>
#include <cmath>

namespace profd::exporting {

char* AppendInt(char* out, int64_t value) { return std::to_chars(out, out + 24, value).ptr; }

char* AppendUint(char* out, uint64_t value) { return std::to_chars(out, out + 24, value).ptr; }

char* AppendFixed3(char* out, double value) {
  if (!std::isfinite(value) || std::fabs(value) >= 9e15) {
    return std::isfinite(value) ? std::to_chars(out, out + 32, value).ptr : AppendFixed3(out, 0);
  }
  // value * 1000 is exact as the sum of `scaled` and `error`, so a tie is seen as what it is.
  double scaled = value * 1000;
  double error = std::fma(value, 1000, -scaled);
  double rounded = std::nearbyint(scaled);
  double rest = (scaled - rounded) + error;
  if (rest > 0.5) rounded += 1;
  if (rest < -0.5) rounded -= 1;
  auto thousandths = static_cast<int64_t>(rounded);
  if (thousandths < 0 || std::signbit(value)) {
    if (thousandths != 0) *out++ = '-';
    thousandths = -thousandths;
  }
  out = AppendInt(out, thousandths / 1000);
  int64_t part = thousandths % 1000;
  *out++ = '.';
  *out++ = static_cast<char>('0' + part / 100);
  if (part % 100 == 0) return out;
  *out++ = static_cast<char>('0' + part / 10 % 10);
  if (part % 10 != 0) *out++ = static_cast<char>('0' + part % 10);
  return out;
}

char* AppendMicros(char* out, int64_t t_ns) {
  if (t_ns < 0) {
    *out++ = '-';
    t_ns = -t_ns;
  }
  out = AppendInt(out, t_ns / 1000);
  int64_t part = t_ns % 1000;
  *out++ = '.';
  *out++ = static_cast<char>('0' + part / 100);
  *out++ = static_cast<char>('0' + part / 10 % 10);
  *out++ = static_cast<char>('0' + part % 10);
  return out;
}

}  // namespace profd::exporting
