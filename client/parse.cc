#include "client/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"

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

Result<std::pair<uint32_t, uint32_t>> ParseRange(std::string_view text, std::string_view item) {
  size_t dash = item.find('-');
  uint32_t first = 0;
  uint32_t last = 0;
  bool ok = ParseNumber(item.substr(0, dash), &first);
  if (dash == std::string_view::npos) {
    last = first;
  } else {
    ok = ok && ParseNumber(item.substr(dash + 1), &last);
  }
  if (!ok || last > kMaxDeviceId || first > last) return BadDevices(text, item);
  return std::pair{first, last};
}

}  // namespace

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

Result<std::vector<uint32_t>> ParseDevices(std::string_view text) {
  std::vector<uint32_t> devices;
  std::string_view rest = text;
  for (;;) {
    size_t comma = rest.find(',');
    auto range = ParseRange(text, rest.substr(0, comma));
    if (!range.ok()) return range.status();
    for (uint32_t id = range->first; id <= range->second; ++id) {
      if (std::find(devices.begin(), devices.end(), id) != devices.end()) {
        return InvalidArgument(fmt::format("\"{}\": device {} is named twice", text, id));
      }
      devices.push_back(id);
    }
    if (comma == std::string_view::npos) return devices;
    rest.remove_prefix(comma + 1);
  }
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
  std::string_view rest = text;
  for (;;) {
    size_t comma = rest.find(',');
    std::string_view item = Trim(rest.substr(0, comma));
    if (item.empty()) return InvalidArgument(fmt::format("\"{}\" has an empty item", text));
    items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace profd::client
