#include "client/sparkline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

void Scale::Widen(std::span<const double> values) {
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
}

std::string Sparkline(std::span<const double> values, const Scale& scale, bool ascii) {
  std::string line;
  const auto& levels = ascii ? kAscii : kBlocks;
  const auto top = static_cast<double>(levels.size() - 1);
  const double span = scale.high - scale.low;
  for (double value : values) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    const double part = span > 0 ? std::clamp((value - scale.low) / span, 0.0, 1.0) : 0;
    line += levels[static_cast<size_t>(std::lround(part * top))];
  }
  return line;
}

std::string Bar(double share, size_t columns, bool ascii) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!std::isfinite(share) || share <= 0) return "";
  const size_t parts = ascii ? 1 : kEighths.size();
  const double all = std::min(share, 1.0) * static_cast<double>(columns * parts);
  const auto filled = std::min(std::max<size_t>(static_cast<size_t>(std::lround(all)), 1), columns * parts);
  std::string bar;
  for (size_t i = 0; i < filled / parts; ++i) bar += ascii ? "#" : "█";
  if (!ascii) bar += kEighths[filled % parts];
  return bar;
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
