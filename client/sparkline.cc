#include "client/sparkline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace profd::client {
namespace {

constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kAscii = {".", ":", "-", "=", "+", "*", "%", "#"};

// With three digits and a prefix that keeps them before the point or close to it.
std::string Scaled(double value, double base, std::span<const std::string_view> prefixes,
                   std::string_view unit) {
  double size = std::fabs(value);
  size_t i = 0;
  while (size >= base * 0.9995 && i + 1 < prefixes.size()) {
    size /= base;
    value /= base;
    ++i;
  }
  std::string number = size == std::floor(size) && i == 0 ? fmt::format("{:.0f}", value)
                       : size < 10                        ? fmt::format("{:.2f}", value)
                       : size < 100                       ? fmt::format("{:.1f}", value)
                                                          : fmt::format("{:.0f}", value);
  std::string suffix = std::string(prefixes[i]) + std::string(unit);
  return suffix.empty() ? number : number + " " + suffix;
}

std::string Small(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"", "m", "u", "n"};
  size_t i = 0;
  while (value != 0 && std::fabs(value) < 0.9995 && i + 1 < kPrefixes.size()) {
    value *= 1000;
    ++i;
  }
  return fmt::format("{:.3g} {}{}", value, kPrefixes[i], unit);
}

}  // namespace

std::string Sparkline(std::span<const double> values, bool ascii) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > 0 && low < high / 2) low = 0;
  std::string line;
  const auto& levels = ascii ? kAscii : kBlocks;
  for (double value : values) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    double part = high > low ? (value - low) / (high - low) : value == 0 ? 0 : 0.5;
    auto level = static_cast<size_t>(part * static_cast<double>(levels.size()));
    line += levels[std::min(level, levels.size() - 1)];
  }
  return line;
}

std::string FormatQuantity(double value, std::string_view unit, bool rate) {
  constexpr std::array<std::string_view, 6> kBinary = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  constexpr std::array<std::string_view, 5> kDecimal = {"", "k", "M", "G", "T"};
  std::string per = rate ? "/s" : "";
  if (!std::isfinite(value)) return "-";
  if (unit == "bytes_per_second") return Scaled(value, 1024, kBinary, "B/s");
  if (unit == "bytes") return Scaled(value, 1024, kBinary, "B" + per);
  if (unit == "packets_per_second") return Scaled(value, 1000, kDecimal, "/s");
  if (unit == "ratio") return fmt::format("{:.1f} %", value * 100);
  if (unit == "hertz") return Scaled(value, 1000, kDecimal, "Hz");
  if (unit == "seconds" && rate) return fmt::format("{:.1f} %", value * 100);
  if (unit == "seconds") return Small(value, "s");
  if (unit == "volts") return Small(value, "V");
  if (unit == "celsius") return fmt::format("{:.1f} C", value);
  if (unit == "watts") return Scaled(value, 1000, kDecimal, "W");
  if (unit == "joules") return Scaled(value, 1000, kDecimal, rate ? "W" : "J");
  return Scaled(value, 1000, kDecimal, per);
}

}  // namespace profd::client
