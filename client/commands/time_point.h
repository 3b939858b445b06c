// Times as people write them for --from and --to.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace profd::client {

// A point in time as --from and --to take it (docs/export.md).
struct TimePoint {
  enum class Kind { kAbsolute, kFromStart, kFromEnd };
  Kind kind = Kind::kAbsolute;
  int64_t ns = 0;  // since the epoch, after the start, or before the end
};
Result<TimePoint> ParseTimePoint(std::string_view text);

}  // namespace profd::client
