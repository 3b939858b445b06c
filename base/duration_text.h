// Durations as people read and type them.
#pragma once

#include <cstdint>
#include <string>

namespace profd {

// "1.5 s", "12 s", "3m 20s", "4h 05m", "2d 03h".
std::string FormatSpan(int64_t ns);
// As it would be typed, exact: "720h", "90s", "1500ms".
std::string ExactDuration(uint64_t ms);

}  // namespace profd
