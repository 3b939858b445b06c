#include "client/commands/export_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "client/parse.h"

namespace profd::client {
namespace {

Status BadTime(std::string_view text) {
  return InvalidArgument(fmt::format(
      "\"{}\" is an invalid time; write 2026-01-01T00:00:00Z, seconds since 1970, +10s or +1.5ms after "
      "the start, or -5s before the end (units: ms, s, m, h)",
      text));
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
  int64_t ns = 0;
  if (!TakeFraction(&fraction, &ns) || !fraction.empty()) return std::nullopt;
  return whole * kNsPerSecond + ns;
}

// "10s", "1.45ms"; "0" needs no unit.
std::optional<int64_t> ParseOffset(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view unit = text.substr(digits);
  int64_t whole = 0;
  if (!ParseNumber(text.substr(0, digits), &whole)) return std::nullopt;
  if (whole == 0 && unit.empty()) return 0;
  int64_t fraction = 0;
  if (!TakeFraction(&unit, &fraction)) return std::nullopt;
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
