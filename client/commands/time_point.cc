#include "client/commands/export_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "client/parse.h"

namespace profd::client {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Status BadTime(std::string_view text) {
  return InvalidArgument(fmt::format(
      "\"{}\" is an invalid time; write 2026-01-01T00:00:00Z, seconds since 1970, +10s or +1.5ms after "
      "the start, or -5s before the end (units: ms, s, m, h)",
      text));
}

// Takes `count` digits and the character behind them, if one is wanted.
bool TakeDigits(std::string_view* text, size_t count, int* value, char behind = 0) {
  if (text->size() < count || !std::ranges::all_of(text->substr(0, count), IsDigit)) return false;
  if (!ParseNumber(text->substr(0, count), value)) return false;
  text->remove_prefix(count);
  if (behind == 0) return true;
  if (text->empty() || text->front() != behind) return false;
  text->remove_prefix(1);
  return true;
}

// "", "Z", "+08:00"; nothing = local time.
bool TakeZone(std::string_view text, bool* local, int64_t* offset_s) {
  *local = text.empty();
  *offset_s = 0;
  if (text.empty() || text == "Z" || text == "z") return true;
  int sign = text.front() == '-' ? -1 : 1;
  if (text.front() != '-' && text.front() != '+') return false;
  text.remove_prefix(1);
  int hours = 0, minutes = 0;
  if (!TakeDigits(&text, 2, &hours, ':') || !TakeDigits(&text, 2, &minutes) || !text.empty()) {
    return false;
  }
  *offset_s = sign * (hours * 3600 + minutes * 60);
  return hours < 24 && minutes < 60;
}

int64_t TakeFraction(std::string_view* text) {
  if (text->empty() || text->front() != '.') return 0;
  text->remove_prefix(1);
  int64_t ns = 0;
  for (int64_t digit = 100'000'000; !text->empty() && IsDigit(text->front());
       digit /= 10, text->remove_prefix(1)) {
    ns += digit * (text->front() - '0');
  }
  return ns;
}

std::optional<int64_t> ParseDate(std::string_view text) {
  std::tm tm{};
  if (!TakeDigits(&text, 4, &tm.tm_year, '-') || !TakeDigits(&text, 2, &tm.tm_mon, '-') ||
      !TakeDigits(&text, 2, &tm.tm_mday)) {
    return std::nullopt;
  }
  if (text.empty() || (text.front() != 'T' && text.front() != ' ')) return std::nullopt;
  text.remove_prefix(1);
  if (!TakeDigits(&text, 2, &tm.tm_hour, ':') || !TakeDigits(&text, 2, &tm.tm_min, ':') ||
      !TakeDigits(&text, 2, &tm.tm_sec)) {
    return std::nullopt;
  }
  int64_t fraction = TakeFraction(&text);
  bool local = false;
  int64_t offset_s = 0;
  if (!TakeZone(text, &local, &offset_s)) return std::nullopt;
  if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 ||
      tm.tm_min > 59 || tm.tm_sec > 60 || tm.tm_year < 1970 || tm.tm_year > 2200) {
    return std::nullopt;
  }
  tm.tm_year -= 1900;
  --tm.tm_mon;
  tm.tm_isdst = -1;
  int64_t seconds = local ? std::mktime(&tm) : ::timegm(&tm) - offset_s;
  return seconds * kNsPerSecond + fraction;
}

// Seconds, ms, us or ns since 1970, whichever gives a year people live in.
std::optional<int64_t> ParseEpoch(std::string_view text) {
  double value = 0;
  int64_t whole = 0;
  if (ParseNumber(text, &whole) && whole >= 0) {
    // Each up to the year 2255.
    if (whole < 9'000'000'000) return whole * kNsPerSecond;
    if (whole < 9'000'000'000'000) return whole * kNsPerMs;
    if (whole < 9'000'000'000'000'000) return whole * 1000;
    return whole;
  }
  if (!ParseNumber(text, &value) || !(value >= 0 && value < 9e9)) return std::nullopt;
  // Its decimals as they are written.
  size_t dot = text.find('.');
  if (dot == std::string_view::npos || !ParseNumber(text.substr(0, dot), &whole)) {
    return std::nullopt;
  }
  std::string_view fraction = text.substr(dot);
  int64_t ns = TakeFraction(&fraction);
  if (!fraction.empty()) return std::nullopt;
  return whole * kNsPerSecond + ns;
}

// "10s", "1.45ms"; "0" needs no unit.
std::optional<int64_t> ParseOffset(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view unit = text.substr(digits);
  int64_t whole = 0;
  if (!ParseNumber(text.substr(0, digits), &whole)) return std::nullopt;
  if (whole == 0 && unit.empty()) return 0;
  const int64_t fraction = TakeFraction(&unit);
  const Result<uint64_t> one_ms = ParseDurationMs(fmt::format("1{}", unit));
  if (!one_ms.ok()) return std::nullopt;
  const int64_t one_ns = static_cast<int64_t>(*one_ms) * kNsPerMs;
  const int64_t part_ns = std::llround(static_cast<double>(fraction) / kNsPerSecond * static_cast<double>(one_ns));
  int64_t ns = 0;
  if (__builtin_mul_overflow(whole, one_ns, &ns) || __builtin_add_overflow(ns, part_ns, &ns)) return std::nullopt;
  return ns;
}

}  // namespace

Result<TimePoint> ParseTimePoint(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return BadTime(text);
  if (text.front() == '+' || text.front() == '-') {
    const std::optional<int64_t> offset = ParseOffset(text.substr(1));
    if (!offset) return BadTime(text);
    return TimePoint{text.front() == '+' ? TimePoint::Kind::kFromStart : TimePoint::Kind::kFromEnd, *offset};
  }
  auto ns = ParseDate(text);
  if (!ns) ns = ParseEpoch(text);
  if (!ns) return BadTime(text);
  return TimePoint{TimePoint::Kind::kAbsolute, *ns};
}

}  // namespace profd::client
