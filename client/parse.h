// The small languages of profctl's arguments. Only syntax: what a value may be is the daemon's
// business. Every error has what was written and what would be right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd::client {

// "500ms", "30s", "5m", "1h" -> milliseconds, above zero.
Result<uint64_t> ParseDurationMs(std::string_view text);

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

}  // namespace profd::client
