// How a series of an NPU is read from libdcmi; the rows are kDeviceReadings in metrics_device.h.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>

#include "driver/abi/dcmi_table.h"

namespace profd {

// With every tick of npu_state, about every 10 s, about once a minute.
enum class ReadingPace : uint8_t { kFast, kMedium, kSlow };

// An answer, and what is made of it in the metric's unit. Not finite: there is no value.
struct ReadingSource {
  const DcmiQueryRow* query = nullptr;
  double (*value)(const void* answer) = nullptr;
  bool v1_only = false;  // the second generation of the interface puts something else there
};

// Values of a metric's own labels, in their order.
struct ReadingLabels {
  std::string_view first = "";
  std::string_view second = "";
};

struct ReadingRow {
  ReadingPace pace;
  std::string_view metric;
  ReadingLabels labels;
  // The first of them that answers is the source of the series; the others are not called then.
  std::array<ReadingSource, 2> sources;
  // Asked only on NPUs whose driver does not support this question.
  const DcmiQueryRow* unless_supported = nullptr;
};

// What the rows are written with.
namespace reading {

// `value` is a lambda without captures.
template <class T, class Value>
constexpr ReadingSource From(const DcmiQuery<T>& query, Value) {
  return {&query,
          [](const void* answer) -> double {
            return static_cast<double>(Value{}(*static_cast<const T*>(answer)));
          },
          false};
}
// A member of the answer.
template <auto kMember, class T, class Value = std::identity>
constexpr ReadingSource Of(const DcmiQuery<T>& query, Value = {}) {
  return From(query, [](const T& answer) { return Value{}(answer.*kMember); });
}
template <class T, class Value>
constexpr ReadingSource FromV1(const DcmiQuery<T>& query, Value value) {
  ReadingSource source = From(query, value);
  source.v1_only = true;
  return source;
}

inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// The driver's units. What no chip can have says that there is no value: most often all bits are set.
inline constexpr std::identity kAsIs;
inline constexpr auto kMegahertz = [](unsigned value) {
  return value <= 100'000 ? value * 1e6 : kNoValue;
};
inline constexpr auto kMebibytes = [](uint64_t value) {
  return static_cast<double>(value) * 1024 * 1024;
};
// The driver's way to say that it does not know is a number beyond 100.
inline constexpr auto kPercent = [](int64_t value) {
  return value >= 0 && value <= 100 ? static_cast<double>(value) / 100 : kNoValue;
};
// Sensors that are not fitted answer absurd values.
inline constexpr auto kCelsius = [](int value) {
  return value > -275 && value < 300 ? value : kNoValue;
};
inline constexpr auto kDeciwatts = [](int value) {
  return abi::IsDcmiPower(value) ? value / 10.0 : kNoValue;
};
inline constexpr auto kWatts = [](unsigned value) {
  return value <= 10'000 ? static_cast<double>(value) : kNoValue;
};
inline constexpr auto kCentivolts = [](unsigned value) {
  return value <= 10'000 ? value / 100.0 : kNoValue;
};
// All bits set is how drivers fill in what they do not count.
inline constexpr auto kCount = [](uint64_t value) {
  return value != UINT64_MAX ? static_cast<double>(value) : kNoValue;
};
inline constexpr auto kRatio = [](double value) {
  return value >= 0 && value <= 1 ? value : kNoValue;
};
inline constexpr auto kCompatible = [](int answer) {
  return answer == 1 ? 1.0 : answer == 2 ? 0.0 : kNoValue;
};
inline constexpr auto kNetworkCode = [](int code) {
  return code >= abi::kNetOk && code <= abi::kNetIpSet ? code : kNoValue;
};
inline constexpr auto kNetworkHealthy = [](int code) {
  return std::isnan(kNetworkCode(code)) ? kNoValue : code == abi::kNetOk || code == abi::kNetInit;
};
// `value` of a memory the chip may not have.
inline constexpr auto IfThere = [](const auto& memory, double value) {
  bool there = memory.memory_size > 0;
  if constexpr (requires { memory.memory_available; }) {
    there = there && memory.memory_available <= memory.memory_size;
  }
  return there ? value : kNoValue;
};

}  // namespace reading
}  // namespace profd
