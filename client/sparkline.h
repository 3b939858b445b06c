// Numbers for people at a glance: a line of blocks, and values with units.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace profd::client {

// What the lowest and the highest block of a line stand for.
// Zero is always on it: a value 8 % below the others looks so.
struct Scale {
  double low = 0;
  double high = 0;
  void Widen(std::span<const double> values);
};
// One character per value; NaN is a blank.
std::string Sparkline(std::span<const double> values, const Scale& scale, bool ascii);

// `share` (0 to 1) of `columns`; at least a sliver of what is more than nothing.
std::string Bar(double share, size_t columns, bool ascii);

// "1.5 MiB/s", "85.2 %", "1.80 GHz". `unit` as metric names end: "bytes_per_second", "ratio", ...;
// `rate`: per second.
std::string FormatQuantity(double value, std::string_view unit, bool rate = false);

}  // namespace profd::client
