// The words of hccn_tool (dcmi-and-metrics 1.8). The lines are "key : value", sometimes after
// "[device 0]"; blanks and case are not relied on.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "driver/hccn_tool.h"

namespace profd {
namespace {

struct Line {
  std::string_view key;
  std::string_view value;
};

// Takes lines off `*text` until one has a key; false at the end.
bool NextPair(std::string_view* text, Line* out) {
  std::string_view line;
  while (NextLine(text, &line)) {
    line = Trim(line);
    if (line.starts_with('[')) {
      const size_t end = line.find(']');
      if (end == std::string_view::npos) continue;
      line = Trim(line.substr(end + 1));
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    *out = {Trim(line.substr(0, colon)), Trim(line.substr(colon + 1))};
    return true;
  }
  return false;
}

// The value of the first line of that key; empty if there is none.
std::string_view Find(std::string_view text, std::string_view key) {
  Line line;
  while (NextPair(&text, &line)) {
    if (SameIgnoringCase(line.key, key)) return line.value;
  }
  return {};
}

struct Quantity {
  double number = 0;
  std::string_view unit;
};

// "3301.40 mV"; the number must be finite and within `limit`.
std::optional<Quantity> ParseQuantity(std::string_view value, double limit) {
  Quantity quantity;
  if (!ParseNumber(NextToken(&value), &quantity.number)) return std::nullopt;
  if (!std::isfinite(quantity.number) || std::abs(quantity.number) > limit) return std::nullopt;
  quantity.unit = Trim(value);
  return quantity;
}

std::optional<double> Temperature(std::string_view value) {
  const std::optional<Quantity> read = ParseQuantity(value, 300);
  if (!read || !(read->unit.empty() || SameIgnoringCase(read->unit, "C"))) return std::nullopt;
  return read->number;
}

std::optional<double> Volts(std::string_view value) {
  const std::optional<Quantity> read = ParseQuantity(value, 1e5);
  if (!read || read->number < 0) return std::nullopt;
  if (SameIgnoringCase(read->unit, "mV")) return read->number / 1e3;
  if (SameIgnoringCase(read->unit, "V")) return read->number;
  return std::nullopt;
}

// mW on A2 and A3, dBm (decibels over a milliwatt) on A5.
std::optional<double> Watts(std::string_view value) {
  const std::optional<Quantity> read = ParseQuantity(value, 1e4);
  if (!read) return std::nullopt;
  if (SameIgnoringCase(read->unit, "dBm")) {
    return read->number > 60 ? std::nullopt : std::optional(std::pow(10, read->number / 10) / 1e3);
  }
  if (read->number < 0) return std::nullopt;
  if (SameIgnoringCase(read->unit, "mW")) return read->number / 1e3;
  if (SameIgnoringCase(read->unit, "uW")) return read->number / 1e6;
  return std::nullopt;
}

// "Tx Power0": the lane; nullopt for another key.
std::optional<size_t> LaneOf(std::string_view key, std::string_view prefix, size_t lanes) {
  if (key.size() != prefix.size() + 1 || !SameIgnoringCase(key.substr(0, prefix.size()), prefix)) {
    return std::nullopt;
  }
  const char digit = key.back();
  if (digit < '0' || digit > '9') return std::nullopt;
  const auto lane = static_cast<size_t>(digit - '0');
  return lane < lanes ? std::optional(lane) : std::nullopt;
}

// The cell at `*row`'s front, which begins with a bar.
std::string_view NextCell(std::string_view* row) {
  if (row->empty() || row->front() != '|') return {};
  row->remove_prefix(1);
  const size_t end = std::min(row->find('|'), row->size());
  const std::string_view cell = Trim(row->substr(0, end));
  row->remove_prefix(end);
  return cell;
}

}  // namespace

std::optional<bool> ParseHccnLink(std::string_view text) {
  const std::string_view value = Find(text, "link status");
  if (SameIgnoringCase(value, "UP")) return true;
  if (SameIgnoringCase(value, "DOWN")) return false;
  return std::nullopt;
}

std::optional<double> ParseHccnSpeed(std::string_view text) {
  constexpr double kBitsPerByte = 8;
  const std::optional<Quantity> read = ParseQuantity(Find(text, "speed"), 1e9);
  if (!read || read->number < 0) return std::nullopt;
  if (SameIgnoringCase(read->unit, "Mb/s")) return read->number * 1e6 / kBitsPerByte;
  if (SameIgnoringCase(read->unit, "Gb/s")) return read->number * 1e9 / kBitsPerByte;
  return std::nullopt;
}

std::optional<uint64_t> ParseHccnLinkUps(std::string_view text) {
  uint64_t count = 0;
  if (!ParseNumber(Find(text, "link up count"), &count)) return std::nullopt;
  return count;
}

OpticalValues ParseHccnOptical(std::string_view text) {
  OpticalValues values;
  Line line;
  while (NextPair(&text, &line)) {
    if (SameIgnoringCase(line.key, "present")) {
      if (SameIgnoringCase(line.value, "present")) values.present = true;
      if (SameIgnoringCase(line.value, "not present")) values.present = false;
    } else if (SameIgnoringCase(line.key, "temperature")) {
      values.temperature_celsius = Temperature(line.value);
    } else if (SameIgnoringCase(line.key, "Vcc")) {
      values.supply_volts = Volts(line.value);
    } else if (auto tx = LaneOf(line.key, "Tx Power", values.tx_power_watts.size())) {
      values.tx_power_watts[*tx] = Watts(line.value);
    } else if (auto rx = LaneOf(line.key, "Rx Power", values.rx_power_watts.size())) {
      values.rx_power_watts[*rx] = Watts(line.value);
    }
  }
  return values;
}

std::vector<HccnPort> ParseHccnPorts(std::string_view text) {
  constexpr int kMaxNumber = 255;
  std::vector<HccnPort> ports;
  std::string_view line;
  while (NextLine(&text, &line) && ports.size() < kMaxHccnPorts) {
    std::string_view row = Trim(line);
    HccnPort port;
    if (!ParseNumber(NextCell(&row), &port.die) || !ParseNumber(NextCell(&row), &port.port))
      continue;
    if (port.die < 0 || port.die > kMaxNumber || port.port < 0 || port.port > kMaxNumber) continue;
    if (std::ranges::find(ports, port) == ports.end()) ports.push_back(port);
  }
  return ports;
}

}  // namespace profd
