// Numbers for people at a glance: a line of blocks, and values with units.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace profd::client {

// One character per value; NaN is a blank. Zero is the floor where that shows more than it hides,
// the least value otherwise.
std::string Sparkline(std::span<const double> values, bool ascii);

// "1.5 MiB/s", "85.2 %", "1.80 GHz". `unit` as metric names end: "bytes_per_second", "ratio", ...;
// `rate`: per second.
std::string FormatQuantity(double value, std::string_view unit, bool rate = false);

}  // namespace profd::client
