#include "export/trace/json_text.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "export/number_text.h"

namespace profd::exporting {
namespace {

void AppendControl(std::string* out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out->append("\\u00");
  *out += kHex[static_cast<unsigned char>(c) >> 4];
  *out += kHex[static_cast<unsigned char>(c) & 15];
}

}  // namespace

std::string JsonEscaped(std::string_view text, size_t max_bytes) {
  std::string out;
  for (char c : RepairedText(text, max_bytes)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      AppendControl(&out, c);
    } else {
      out += c;
    }
  }
  return out;
}

void AppendJsonEscaped(std::string* out, std::string_view text, size_t max_bytes) {
  const std::string_view shown = text.substr(0, max_bytes);
  unsigned odd = 0;  // characters that do not stand for themselves
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    odd |= static_cast<unsigned>(byte < 0x20) | static_cast<unsigned>(byte >= 0x80) |
           static_cast<unsigned>(byte == '"') | static_cast<unsigned>(byte == '\\');
  }
  if (odd == 0) {
    out->append(shown);
  } else {
    out->append(JsonEscaped(text, max_bytes));
  }
}

char* AppendShortest(char* out, double value) {
  if (char* end = AppendThousandths(out, value)) return end;
  if (!std::isfinite(value)) return AppendShortest(out, 0);
  bool fixed = std::fabs(value) >= 1e-6 && std::fabs(value) < 1e21;
  char* end = std::to_chars(out, out + 32, value,
                            fixed ? std::chars_format::fixed : std::chars_format::scientific)
                  .ptr;
  if (std::memchr(out, '.', static_cast<size_t>(end - out)) == nullptr &&
      std::memchr(out, 'e', static_cast<size_t>(end - out)) == nullptr) {
    *end++ = '.';
    *end++ = '0';
  }
  return end;
}

std::string_view MicrosText::Of(int64_t t_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (t_ns == t_ns_ && size_ > 0) return {text_, size_};
  t_ns_ = t_ns;
  if (t_ns < kSecond) {
    second_ = -1;
    size_ = static_cast<size_t>(AppendMicros(text_, t_ns) - text_);
    return {text_, size_};
  }
  int64_t second = t_ns / kSecond;
  if (second != second_) {
    second_ = second;
    seconds_size_ = static_cast<size_t>(AppendInt(text_, second) - text_);
  }
  auto rest = static_cast<uint32_t>(t_ns - second * kSecond);
  char* out = AppendTriple(text_ + seconds_size_, rest / 1'000'000);
  out = AppendTriple(out, rest / 1000 % 1000);
  *out++ = '.';
  AppendTriple(out, rest % 1000);
  size_ = seconds_size_ + 10;
  return {text_, size_};
}

}  // namespace profd::exporting
