#include "client/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>

#include "base/clock.h"
#include "base/text.h"
#include "proto/options/option_value.h"

namespace profd::client {
namespace {

// Bounds what "0-4294967295" costs; no node has more devices.
constexpr uint32_t kMaxDeviceId = 4095;

struct Unit {
  std::string_view suffix;
  uint64_t ms;
};
// "ms" before "s" and "m": the first that fits wins.
constexpr std::array<Unit, 4> kUnits = {{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};

Status BadDevices(std::string_view text, std::string_view item) {
  return InvalidArgument(
      fmt::format("\"{}\": \"{}\" is neither a device id (0..{}) nor a range; write 0,1,4-7", text,
                  item, kMaxDeviceId));
}

bool Digits(std::string_view text, size_t at, size_t count, int* out) {
  if (at + count > text.size()) return false;
  std::string_view digits = text.substr(at, count);
  return IsDigits(digits) && ParseNumber(digits, out);
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

}  // namespace

bool ParseRange(std::string_view text, uint32_t* first, uint32_t* last) {
  const size_t dash = text.find('-');
  if (!ParseNumber(text.substr(0, dash), first)) return false;
  *last = *first;
  return (dash == std::string_view::npos || ParseNumber(text.substr(dash + 1), last)) && *first <= *last;
}

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

std::optional<int64_t> ParseDate(std::string_view text) {
  std::tm tm{};
  bool shape = text.size() >= 19 && text[4] == '-' && text[7] == '-' &&
               (text[10] == 'T' || text[10] == 't' || text[10] == ' ') && text[13] == ':' &&
               text[16] == ':' && Digits(text, 0, 4, &tm.tm_year) &&
               Digits(text, 5, 2, &tm.tm_mon) && Digits(text, 8, 2, &tm.tm_mday) &&
               Digits(text, 11, 2, &tm.tm_hour) && Digits(text, 14, 2, &tm.tm_min) &&
               Digits(text, 17, 2, &tm.tm_sec);
  if (!shape || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 59) return std::nullopt;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  std::string_view rest = text.substr(19);
  int64_t fraction_ns = 0;
  bool local = false;
  int64_t offset_s = 0;
  if (!TakeFraction(&rest, &fraction_ns) || !ParseZone(rest, &local, &offset_s)) {
    return std::nullopt;
  }
  std::tm normal = tm;
  normal.tm_isdst = -1;
  int64_t seconds = local ? mktime(&normal) : timegm(&normal);
  // 31 February is none.
  if (!SameDay(tm, normal)) return std::nullopt;
  seconds -= offset_s;
  if (seconds < 0 || seconds > kMaxEpochSeconds) return std::nullopt;
  return seconds * kNsPerSecond + fraction_ns;
}

Result<uint64_t> ParseDurationMs(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    uint64_t count = 0;
    if (!ParseNumber(text.substr(0, text.size() - unit.suffix.size()), &count)) break;
    if (count == 0) return InvalidArgument(fmt::format("\"{}\": must be above zero", text));
    if (count > std::numeric_limits<int64_t>::max() / int64_t{1'000'000} / unit.ms) {
      return InvalidArgument(fmt::format("\"{}\": too long", text));
    }
    return count * unit.ms;
  }
  return InvalidArgument(fmt::format(
      "\"{}\" is not a duration; write an integer and a unit: 500ms, 30s, 5m, 1h", text));
}

Result<uint32_t> ParseIntervalMs(std::string_view text) {
  const auto ms = ParseDurationMs(text);
  if (!ms.ok()) return ms.status();
  if (*ms > std::numeric_limits<uint32_t>::max()) return OutOfRange("is too long");
  return static_cast<uint32_t>(*ms);
}

Result<std::vector<uint32_t>> ParseDevices(std::string_view text) {
  std::vector<uint32_t> devices;
  for (const std::string_view item : options::SplitList(text)) {
    uint32_t first = 0;
    uint32_t last = 0;
    if (!ParseRange(item, &first, &last) || last > kMaxDeviceId) return BadDevices(text, item);
    for (uint32_t id = first; id <= last; ++id) {
      if (std::ranges::find(devices, id) != devices.end()) {
        return InvalidArgument(fmt::format("\"{}\": device {} is named twice", text, id));
      }
      devices.push_back(id);
    }
  }
  return devices;
}

Result<NamedRate> ParseNamedRate(std::string_view text) {
  size_t equals = text.find('=');
  NamedRate rate;
  rate.name = std::string(text.substr(0, equals));
  if (rate.name.empty()) {
    return InvalidArgument(fmt::format("\"{}\" names no collector; write NAME or NAME=HZ", text));
  }
  if (equals == std::string_view::npos) return rate;
  if (!ParseNumber(text.substr(equals + 1), &rate.hz) || !std::isfinite(rate.hz) ||
      rate.hz <= 0) {
    return InvalidArgument(fmt::format(
        "\"{}\": the rate must be a number of Hz above zero, as in {}=50", text, rate.name));
  }
  return rate;
}

Result<int32_t> ParsePid(std::string_view text) {
  int32_t pid = 0;
  if (!ParseNumber(text, &pid) || pid <= 0) {
    return InvalidArgument(fmt::format("\"{}\" is not a process id", text));
  }
  return pid;
}

Result<std::vector<std::string>> ParseList(std::string_view text) {
  std::vector<std::string> items;
  for (const std::string_view item : options::SplitList(text)) {
    items.emplace_back(Trim(item));
    if (items.back().empty()) return InvalidArgument(fmt::format("\"{}\" has an empty item", text));
  }
  return items;
}

}  // namespace profd::client
