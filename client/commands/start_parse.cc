#include "client/commands/start_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "client/parse.h"
#include "proto/options/option_value.h"

namespace profd::client {
namespace {

constexpr size_t kMaxRanks = 65536;

Status BadInstant(std::string_view text) {
  return InvalidArgument(fmt::format(
      "\"{}\" is an invalid time; write 2026-01-01T00:00:00Z, 2026-01-01T00:00:00 (local "
      "time), or seconds since the epoch",
      text));
}

}  // namespace

Result<std::vector<uint32_t>> ParseRanks(std::string_view text) {
  std::set<uint32_t> ranks;
  for (const std::string_view item : options::SplitList(text)) {
    uint32_t first = 0;
    uint32_t last = 0;
    if (!ParseRange(item, &first, &last)) {
      return InvalidArgument(fmt::format(
          "\"{}\": \"{}\" is neither a rank nor a range of ranks; write 0,8-15", text, item));
    }
    if (last - first >= kMaxRanks || ranks.size() + (last - first) >= kMaxRanks) {
      return InvalidArgument(fmt::format("\"{}\": more than {} ranks", text, kMaxRanks));
    }
    for (uint32_t offset = 0; offset <= last - first; ++offset) ranks.insert(first + offset);
  }
  return std::vector<uint32_t>(ranks.begin(), ranks.end());
}

Result<int64_t> ParseInstant(std::string_view text) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  int64_t seconds = 0;
  bool epoch = digits > 0 && (digits == text.size() || text[digits] == '.');
  if (!epoch) {
    const std::optional<int64_t> ns = ParseDate(text);
    return ns && *ns >= kNsPerSecond ? Result<int64_t>(*ns) : BadInstant(text);
  }
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

void ReadCollectors(const std::vector<std::string>& texts, std::vector<std::string>* problems, v1::SessionSpec* request) {
  for (const std::string& text : texts) {
    const auto rate = ReadFlag("--collector", ParseNamedRate(text), problems);
    if (!rate) continue;
    v1::CollectorRequest* added = request->add_collectors();
    added->set_name(rate->name);
    if (rate->hz > 0) added->set_hz(rate->hz);
  }
}

}  // namespace profd::client
