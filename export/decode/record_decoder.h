// What the decoders of binary channels share: walking records, timestamps that make sense, state per
// series that garbage cannot make grow. Nothing here allocates per record.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "driver/records/record.h"
#include "export/decoder.h"

namespace profd::exporting {

// `Record`: of driver/records, or another struct that has the file's bytes. Derived: `bool DecodeRecord(const Record&)`;
// false = it makes no sense and counts as bad; and `FinishRows()`, unless Base is TableDecoder. What the vendor's analyser
// shows is shown, though the framer of a channel would not take it for a record. Bytes that come in parts of records are
// put together, also over the border of slices.
template <class Derived, class Record, class Base = Decoder>
class RecordDecoder : public Base {
 public:
  using Base::Base;

  void Feed(std::span<const std::byte> bytes, bool /*slice_start*/) final {
    if (bytes.empty()) return;
    if (held_ > 0) {
      size_t missing = std::min(kSize - held_, bytes.size());
      std::memcpy(hold_.data() + held_, bytes.data(), missing);
      held_ += missing;
      bytes = bytes.subspan(missing);
      if (held_ < kSize) return;
      held_ = 0;
      One(hold_);
    }
    for (; bytes.size() >= kSize; bytes = bytes.subspan(kSize)) One(bytes);
    if (bytes.empty()) return;
    held_ = bytes.size();
    std::memcpy(hold_.data(), bytes.data(), held_);
  }

  void Finish() final {
    stats_.bad_bytes += held_;
    held_ = 0;
    static_cast<Derived*>(this)->FinishRows();
  }
  void FinishRows() { Base::Finish(); }

 protected:
  using Base::stats_;

  // What DecodeRecord returns for a record in order of which no row is made.
  bool Skip() {
    skip_ = true;
    return true;
  }

 private:
  static constexpr size_t kSize = records::SizeOf<Record>();

  void One(std::span<const std::byte> bytes) {
    skip_ = false;
    if (static_cast<Derived*>(this)->DecodeRecord(records::Read<Record>(bytes))) {
      ++(skip_ ? stats_.skipped : stats_.records);
    } else {
      ++stats_.bad_records;
      stats_.bad_bytes += kSize;
    }
  }

  bool skip_ = false;
  size_t held_ = 0;
  std::array<std::byte, kSize> hold_;
};

// No clock of a node reads more than 36 years, nor differs from another by more.
inline constexpr uint64_t kMaxPlausibleNs = uint64_t{1} << 60;
inline constexpr uint64_t kMaxPlausibleMicros = kMaxPlausibleNs / 1000;
// Since the epoch: until 2262, what int64 holds even when a double rounds it up.
inline constexpr uint64_t kMaxEpochNs = (uint64_t{1} << 63) - 1024;
// Ids of series. The devices known have single digits of each.
inline constexpr size_t kMaxSeries = 64;

constexpr bool FitsInt64(uint64_t value) {
  return value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

// Timestamps of HBM and LLC records in wall clock ns, as doubles in steps of 256 ns like the vendor's
// analyser keeps them: microseconds since the device's start, or (v2) ns since the epoch. Records
// of one instant carry the same timestamp.
class SampleTimestamps {
 public:
  SampleTimestamps(const ClockMap& clock, bool v2) : clock_(clock), v2_(v2), t_ns_(Convert(0)) {}

  // False: no time a record can have.
  [[nodiscard]] bool Get(uint64_t timestamp, double* t_ns) {
    if (timestamp != timestamp_) {
      if (timestamp > (v2_ ? kMaxEpochNs : kMaxPlausibleMicros)) return false;
      timestamp_ = timestamp;
      t_ns_ = Convert(timestamp);
    }
    *t_ns = t_ns_;
    return true;
  }

 private:
  double Convert(uint64_t timestamp) const {
    auto value = static_cast<int64_t>(timestamp);
    return static_cast<double>(v2_ ? value : clock_.DeviceMicros(value));
  }

  ClockMap clock_;
  bool v2_;
  uint64_t timestamp_ = 0;
  double t_ns_;
};

// Time since the last record of a series. A timestamp that is not later is passed over, as the vendor's
// analyser does; many of them in a row mean that the one before was garbage, and the series begins
// anew. T: double (ns), or int64_t.
template <class T>
class IntervalClock {
 public:
  enum class Step : uint8_t { kFirst, kForward, kRepeated, kBackward };

  Step Next(T timestamp, T* elapsed) {
    if (!seen_) {
      seen_ = true;
      last_ = timestamp;
      return Step::kFirst;
    }
    if (timestamp > last_) {
      *elapsed = timestamp - last_;
      last_ = timestamp;
      not_later_ = 0;
      return Step::kForward;
    }
    if (timestamp == last_) return Step::kRepeated;
    if (++not_later_ < kGiveUpAfter) return Step::kBackward;
    not_later_ = 0;
    last_ = timestamp;
    return Step::kFirst;
  }
  T last() const { return last_; }

 private:
  static constexpr int kGiveUpAfter = 8;
  T last_ = 0;
  bool seen_ = false;
  uint8_t not_later_ = 0;
};

// Of the records that the place has: of HBM and LLC there are two versions.
template <template <class> class D, class Record, class RecordV2>
std::unique_ptr<Decoder> MakeVersioned(const DecodeContext& context) {
  if (context.place->record_version == "2.0") return std::make_unique<D<RecordV2>>(context);
  return std::make_unique<D<Record>>(context);
}

// The device's counter in ns of the host's monotonic clock, as the vendor's analyser computes it in
// Python doubles: about 0.1 ns off, which shows in rates and, cut to ns, in timestamps.
class CounterClock {
 public:
  explicit CounterClock(const ClockMap& clock)
      : clock_(clock),
        offset_ns_(ClockMap(clock.facts()).HostNs(0)),
        count_(static_cast<double>(clock.facts().device_count) / 1e9 * 1e9),
        hz_(clock.facts().device_hz),
        host_ns_(static_cast<double>(static_cast<int64_t>(
                     static_cast<uint64_t>(ClockMap(clock.facts()).DeviceNs(clock.facts().device_ns)) -
                     static_cast<uint64_t>(offset_ns_))) /
                 1e9 * 1e9) {}

  // False: no time a record can have, or the counter's frequency is not known.
  [[nodiscard]] bool Get(uint64_t cycles, double* monotonic_ns) const {
    double since = (static_cast<double>(cycles) - count_) / hz_ * 1e9;
    double ns = since + host_ns_;
    if (!(ns >= 0 && ns < static_cast<double>(kMaxPlausibleNs))) return false;
    *monotonic_ns = ns;
    return true;
  }
  int64_t Wall(double monotonic_ns) const {
    return clock_.CorrectCounter(
        static_cast<int64_t>(static_cast<uint64_t>(static_cast<int64_t>(monotonic_ns)) +
                             static_cast<uint64_t>(offset_ns_)));
  }

 private:
  ClockMap clock_;
  int64_t offset_ns_;
  double count_;
  double hz_;
  double host_ns_;
};

}  // namespace profd::exporting
