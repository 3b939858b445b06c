// Timestamps of driver records, checked before any arithmetic: a timestamp is untrusted, and one of 2^63
// would overflow on its way to host time. Nothing here allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "collectors/collector.h"

namespace profd {

// No clock of ours reads more than 36 years, nor differs from another by more.
inline constexpr int64_t kMaxPlausibleNs = int64_t{1} << 60;

// When a record was taken, on two clocks.
struct Timestamp {
  int64_t host_ns = 0;    // CLOCK_MONOTONIC_RAW, for samples
  int64_t source_ns = 0;  // the record's own clock in ns, for intervals: never corrected in between
};

inline std::optional<Timestamp> TimestampFromDeviceNs(uint64_t ns, const TimeBase& time) {
  if (ns > static_cast<uint64_t>(kMaxPlausibleNs)) return std::nullopt;
  auto device_ns = static_cast<int64_t>(ns);
  return Timestamp{time.FromDeviceNs(device_ns), device_ns};
}

inline std::optional<Timestamp> TimestampFromMicros(uint64_t us, const TimeBase& time) {
  if (us > static_cast<uint64_t>(kMaxPlausibleNs) / 1000) return std::nullopt;
  return Timestamp{time.FromMicrosSinceStart(us), static_cast<int64_t>(us) * 1000};
}

// Both counters: cycles between the record and the pair of the time base must be plausible as ns. Intervals are from
// the counter's own zero: a new pair may be taken between two records.
inline std::optional<Timestamp> TimestampFromCycles(uint64_t count, uint64_t base_count, double hz) {
  constexpr auto kMostNs = static_cast<double>(kMaxPlausibleNs);
  const double ns_per_cycle = 1e9 / hz;
  const double from_pair_ns = static_cast<double>(static_cast<int64_t>(count - base_count)) * ns_per_cycle;
  const double ns = static_cast<double>(count) * ns_per_cycle;
  if (!(from_pair_ns > -kMostNs && from_pair_ns < kMostNs && ns < kMostNs)) return std::nullopt;
  return Timestamp{0, static_cast<int64_t>(ns)};
}

inline std::optional<Timestamp> TimestampFromDeviceCount(uint64_t count, const TimeBase& time) {
  if (!(time.device_counter_hz > 0)) return std::nullopt;
  std::optional<Timestamp> timestamp = TimestampFromCycles(count, time.device_count, time.device_counter_hz);
  if (timestamp) timestamp->host_ns = time.FromDeviceCount(count);
  return timestamp;
}

// dump-format 1.7: without a known host counter frequency the timestamp already is host ns.
inline std::optional<Timestamp> TimestampFromHostCount(uint64_t count, const TimeBase& time) {
  if (!(time.host_counter_hz > 0)) {
    if (count > static_cast<uint64_t>(kMaxPlausibleNs)) return std::nullopt;
    return Timestamp{static_cast<int64_t>(count), static_cast<int64_t>(count)};
  }
  std::optional<Timestamp> timestamp = TimestampFromCycles(count, time.host_count, time.host_counter_hz);
  if (timestamp) timestamp->host_ns = time.FromHostCount(count);
  return timestamp;
}

inline std::optional<Timestamp> TimestampFromSeconds(uint64_t seconds, uint64_t ns, const TimeBase& time) {
  if (seconds > static_cast<uint64_t>(kMaxPlausibleNs) / 1'000'000'000 || ns >= 1'000'000'000) {
    return std::nullopt;
  }
  return TimestampFromDeviceNs(seconds * 1'000'000'000 + ns, time);
}

// "176168:391356200": seconds and nanoseconds of the device's CLOCK_MONOTONIC_RAW.
inline std::optional<Timestamp> TimestampFromText(std::string_view text, const TimeBase& time) {
  size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  uint64_t seconds = 0;
  uint64_t ns = 0;
  if (!ParseNumber(text.substr(0, colon), &seconds) || !ParseNumber(text.substr(colon + 1), &ns)) {
    return std::nullopt;
  }
  return TimestampFromSeconds(seconds, ns, time);
}

// Time since the previous record of one series, on the record's own clock.
class IntervalTimer {
 public:
  enum class Step : uint8_t {
    kFirst,     // nothing to compare with
    kForward,   // *seconds is set
    kNotLater,  // same or earlier timestamp: the record must be ignored, the previous one stays
  };
  Step Next(const Timestamp& timestamp, double* seconds) {
    if (!seen_) {
      seen_ = true;
      last_ns_ = timestamp.source_ns;
      return Step::kFirst;
    }
    int64_t elapsed = timestamp.source_ns - last_ns_;
    if (elapsed <= 0) {
      // A timestamp far in the future (garbage) must not silence the series permanently.
      if (++not_later_ >= kGiveUpAfter) {
        last_ns_ = timestamp.source_ns;
        not_later_ = 0;
      }
      return Step::kNotLater;
    }
    not_later_ = 0;
    last_ns_ = timestamp.source_ns;
    *seconds = static_cast<double>(elapsed) * 1e-9;
    return Step::kForward;
  }
  void Reset() { *this = {}; }

 private:
  static constexpr uint32_t kGiveUpAfter = 16;
  int64_t last_ns_ = 0;
  uint32_t not_later_ = 0;
  bool seen_ = false;
};

}  // namespace profd
