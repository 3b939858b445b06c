// The small languages of a request's flags. Only syntax, as in client/parse.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "profd/v1/profd.pb.h"

namespace profd::client {

// "0,8-15" -> {0, 8, ..., 15}; at most 65536 of them.
Result<std::vector<uint32_t>> ParseRanks(std::string_view text);

// A point in time, ns since the epoch: RFC 3339 ("2026-01-01T00:00:00Z", "...+08:00", a fraction;
// without a zone local time; a blank for the T), or seconds since the epoch ("1767225600.25").
Result<int64_t> ParseInstant(std::string_view text);

// "30s" or "-30s": how long ago, in ms.
Result<uint64_t> ParseAgoMs(std::string_view text);

// An integer, zero and up.
Result<uint32_t> ParseCount(std::string_view text);

// "NAME=VALUE"; the value may be empty, the name may not.
Result<std::pair<std::string, std::string>> ParsePair(std::string_view text);

// "hccs" or "hccs=50" each, of --collector.
void ReadCollectors(const std::vector<std::string>& texts, std::vector<std::string>* problems, v1::SessionSpec* request);

}  // namespace profd::client
