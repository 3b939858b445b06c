#include "client/commands/start_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "client/parse.h"

namespace profd::client {
namespace {

constexpr size_t kMaxRanks = 65536;
constexpr int64_t kMaxEpochSeconds = std::numeric_limits<int64_t>::max() / kNsPerSecond - 1;

Status BadInstant(std::string_view text) {
  return InvalidArgument(fmt::format(
      "\"{}\" is an invalid time; write 2026-01-01T00:00:00Z, 2026-01-01T00:00:00 (local "
      "time), or seconds since the epoch",
      text));
}

bool Digits(std::string_view text, size_t at, size_t count, int* out) {
  if (at + count > text.size()) return false;
  std::string_view digits = text.substr(at, count);
  bool all = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return all && ParseNumber(digits, out);
}

// ".25" -> ns, off the front of `*rest`; true when there is none.
bool TakeFraction(std::string_view* rest, int64_t* ns) {
  if (!rest->starts_with('.')) return true;
  rest->remove_prefix(1);
  size_t count = std::min(rest->find_first_not_of("0123456789"), rest->size());
  if (count == 0 || count > 9) return false;
  int64_t value = 0;
  if (!ParseNumber(rest->substr(0, count), &value)) return false;
  for (size_t i = count; i < 9; ++i) value *= 10;
  rest->remove_prefix(count);
  *ns = value;
  return true;
}

// "Z", "+08:00" or nothing (local).
bool ParseZone(std::string_view text, bool* local, int64_t* offset_s) {
  *local = text.empty();
  if (text.empty() || text == "Z" || text == "z") return true;
  int hours = 0;
  int minutes = 0;
  bool ok = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':' &&
            Digits(text, 1, 2, &hours) && Digits(text, 4, 2, &minutes) && hours < 24 &&
            minutes < 60;
  *offset_s = (text[0] == '-' ? -1 : 1) * (int64_t{hours} * 3600 + int64_t{minutes} * 60);
  return ok;
}

bool SameDay(const std::tm& a, const std::tm& b) {
  return a.tm_year == b.tm_year && a.tm_mon == b.tm_mon && a.tm_mday == b.tm_mday;
}

Result<int64_t> ParseRfc3339(std::string_view text) {
  std::tm tm{};
  bool shape = text.size() >= 19 && text[4] == '-' && text[7] == '-' &&
               (text[10] == 'T' || text[10] == 't' || text[10] == ' ') && text[13] == ':' &&
               text[16] == ':' && Digits(text, 0, 4, &tm.tm_year) &&
               Digits(text, 5, 2, &tm.tm_mon) && Digits(text, 8, 2, &tm.tm_mday) &&
               Digits(text, 11, 2, &tm.tm_hour) && Digits(text, 14, 2, &tm.tm_min) &&
               Digits(text, 17, 2, &tm.tm_sec);
  if (!shape || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 59) return BadInstant(text);
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  std::string_view rest = text.substr(19);
  int64_t fraction_ns = 0;
  bool local = false;
  int64_t offset_s = 0;
  if (!TakeFraction(&rest, &fraction_ns) || !ParseZone(rest, &local, &offset_s)) {
    return BadInstant(text);
  }
  std::tm normal = tm;
  normal.tm_isdst = -1;
  int64_t seconds = local ? mktime(&normal) : timegm(&normal);
  // 31 February is none.
  if (!SameDay(tm, normal)) return BadInstant(text);
  seconds -= offset_s;
  if (seconds <= 0 || seconds > kMaxEpochSeconds) return BadInstant(text);
  return seconds * kNsPerSecond + fraction_ns;
}

}  // namespace

Result<std::vector<uint32_t>> ParseRanks(std::string_view text) {
  std::set<uint32_t> ranks;
  std::string_view rest = text;
  for (;;) {
    size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    size_t dash = item.find('-');
    uint32_t first = 0;
    uint32_t last = 0;
    bool ok = ParseNumber(item.substr(0, dash), &first);
    last = first;
    if (dash != std::string_view::npos) ok = ok && ParseNumber(item.substr(dash + 1), &last);
    if (!ok || first > last) {
      return InvalidArgument(fmt::format(
          "\"{}\": \"{}\" is neither a rank nor a range of ranks; write 0,8-15", text, item));
    }
    if (last - first >= kMaxRanks || ranks.size() + (last - first) >= kMaxRanks) {
      return InvalidArgument(fmt::format("\"{}\": more than {} ranks", text, kMaxRanks));
    }
    for (uint32_t offset = 0; offset <= last - first; ++offset) ranks.insert(first + offset);
    if (comma == std::string_view::npos) return std::vector<uint32_t>(ranks.begin(), ranks.end());
    rest.remove_prefix(comma + 1);
  }
}

Result<int64_t> ParseInstant(std::string_view text) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  int64_t seconds = 0;
  bool epoch = digits > 0 && (digits == text.size() || text[digits] == '.');
  if (!epoch) return ParseRfc3339(text);
  std::string_view rest = text.substr(digits);
  int64_t fraction_ns = 0;
  if (!ParseNumber(text.substr(0, digits), &seconds) || !TakeFraction(&rest, &fraction_ns) ||
      !rest.empty() || seconds <= 0 || seconds > kMaxEpochSeconds) {
    return BadInstant(text);
  }
  return seconds * kNsPerSecond + fraction_ns;
}

Result<uint64_t> ParseAgoMs(std::string_view text) {
  return ParseDurationMs(text.starts_with('-') ? text.substr(1) : text);
}

Result<uint32_t> ParseCount(std::string_view text) {
  uint32_t count = 0;
  if (ParseNumber(text, &count)) return count;
  return InvalidArgument(fmt::format("\"{}\" is not an integer", text));
}

Result<std::pair<std::string, std::string>> ParsePair(std::string_view text) {
  size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return InvalidArgument(fmt::format("\"{}\" has no name and value; write NAME=VALUE", text));
  }
  return std::pair{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

}  // namespace profd::client
