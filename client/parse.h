// The small languages of profctl's arguments. Only syntax: what a value may be is the daemon's
// business. Every error has what was written and what would be right.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace profd::client {

// "500ms", "30s", "5m", "1h" -> milliseconds, above zero.
Result<uint64_t> ParseDurationMs(std::string_view text);

inline constexpr int64_t kMaxEpochSeconds = std::numeric_limits<int64_t>::max() / kNsPerSecond - 1;
// RFC 3339, ns since the epoch: "2026-01-01T00:00:00Z", "...+08:00", a fraction; without a zone local time; a blank for
// the T. None before 1970.
std::optional<int64_t> ParseDate(std::string_view text);
// ".25" -> ns, off the front of `*rest`; true when there is none.
bool TakeFraction(std::string_view* rest, int64_t* ns);

// As ParseDurationMs, for a field of 32 bits.
Result<uint32_t> ParseIntervalMs(std::string_view text);

// "4-7", or "4" for both.
bool ParseRange(std::string_view text, uint32_t* first, uint32_t* last);
// "0,1,4-7" -> {0, 1, 4, 5, 6, 7}.
Result<std::vector<uint32_t>> ParseDevices(std::string_view text);

struct NamedRate {
  std::string name;
  // 0 = no rate written.
  double hz = 0;
};
// "hccs" or "hccs=50".
Result<NamedRate> ParseNamedRate(std::string_view text);

Result<int32_t> ParsePid(std::string_view text);

// "a,b,c"; no empty items.
Result<std::vector<std::string>> ParseList(std::string_view text);

// What a flag's value is; empty, with a line among the problems, where it is not well written.
template <class T>
std::optional<T> ReadFlag(std::string_view flag, Result<T> value, std::vector<std::string>* problems) {
  if (value.ok()) return std::move(value).value();
  problems->push_back(std::string(flag) + " " + value.status().message());
  return std::nullopt;
}
// Empty where the flag was not given, too.
template <class T>
std::optional<T> ReadFlag(std::string_view flag, const std::optional<std::string>& text,
                          Result<T> (*parse)(std::string_view), std::vector<std::string>* problems) {
  return text ? ReadFlag(flag, parse(*text), problems) : std::nullopt;
}

}  // namespace profd::client
