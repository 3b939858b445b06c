// Timestamps of a dump to wall clock (dump-format 1.7). Arithmetic and rounding are the vendor's: the
// one clock pair taken at the start of the session, doubles where its analyser computes in doubles.
// The later clock pairs of a manifest correct what the clocks drifted apart since.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dump/control_files.h"

namespace profd::exporting {

// Of one place (a device, or the host). What a dump does not say is 0, and named in its problems.
struct ClockFacts {
  int64_t begin_us = 0;      // start_info collectionTimeBegin
  int64_t begin_raw_ns = 0;  // start_info clockMonotonicRaw
  int64_t end_us = 0;        // end_info; 0 = none
  int64_t end_raw_ns = 0;
  int64_t stop_raw_ns = 0;       // manifest: when its channels were stopped
  int64_t host_ns = 0;           // H: host_start clock_monotonic_raw
  uint64_t host_count = 0;       // host_start cntvct
  uint64_t host_count_diff = 0;  // host_start cntvct_diff
  int64_t device_ns = 0;         // D: dev_start clock_monotonic_raw
  uint64_t device_count = 0;     // C: dev_start cntvct
  double device_hz = 0;          // F: hwts_frequency
  double host_hz = 0;            // CPU Frequency; 0 = host timestamps are ns

  // Until when something was recorded. The end may be minutes later: a session waits for the last records of processes.
  int64_t RecordedToRawNs() const { return stop_raw_ns > 0 && stop_raw_ns < end_raw_ns ? stop_raw_ns : end_raw_ns; }
  int64_t RecordedToUs() const { return end_us > 0 ? end_us - (end_raw_ns - RecordedToRawNs()) / 1000 : end_us; }
  bool operator==(const ClockFacts&) const = default;
};

// Wall clock at the end of a dump. Where it was set anew since the start: as it would be without that, for every other
// time of the dump is so.
int64_t EndByClockOfStart(int64_t begin_wall_ns, int64_t end_wall_ns, int64_t begin_raw_ns, int64_t end_raw_ns);

// What is to be added to times that were made with the start pair: linear between the later pairs, the
// slope of the last two continues behind them, for as long again.
class ClockDrift {
 public:
  // In the order of time. `uncertainty_ns`: of the measurement; a correction that is not larger than that
  // is not distinguishable from noise, and is ignored.
  void Add(int64_t t_ns, int64_t correction_ns, int64_t uncertainty_ns);
  int64_t At(int64_t t_ns) const;

 private:
  struct Point {
    int64_t t_ns;
    int64_t correction_ns;
  };
  std::vector<Point> points_;
};

class ClockMap {
 public:
  ClockMap() = default;
  explicit ClockMap(const ClockFacts& facts);
  // With the clock pairs read during the session, by time. None: as the vendor's.
  ClockMap(const ClockFacts& facts, std::span<const DumpClocks> pairs);

  // Each: ns since the epoch.
  int64_t DeviceNs(int64_t device_monotonic_ns) const;
  int64_t DeviceMicros(int64_t micros_since_start) const;  // steps of 256 ns, as the vendor's
  int64_t DeviceCounter(uint64_t cycles) const;
  int64_t HostCounter(uint64_t cycles) const;
  int64_t HostNs(int64_t host_monotonic_raw_ns) const;
  // The same counters in operator-level records, which the analyser converts in another way: one sum in doubles, cut
  // to ns (operator-data a.5).
  // `rest`: what the cut took off, in ns. The analyser makes durations of the times before it.
  struct CutTime {
    int64_t ns = 0;
    float rest = 0;
  };
  CutTime DeviceTask(uint64_t cycles) const;
  int64_t HostRecord(uint64_t cycles) const;

  // A time made by arithmetic of one's own from the device's counter and the start pair.
  int64_t CorrectCounter(int64_t t_ns) const { return Correct(t_ns, &Drifts::counter); }

  const ClockFacts& facts() const { return facts_; }

 private:
  // Timestamps are untrusted: sums wrap around rather than overflow.
  static int64_t Plus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static int64_t Times(int64_t a, uint64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * b);
  }
  struct Drifts {
    ClockDrift device;   // the device's clock against the host's
    ClockDrift counter;  // its counter
    ClockDrift host;     // the host's counter against its clock
    ClockDrift wall;     // the host's clock against wall clock
  };
  int64_t Counter(uint64_t cycles, uint64_t start, double mhz) const;
  CutTime Record(uint64_t cycles, uint64_t start, double mhz, int64_t start_ns) const;
  int64_t StartHostNs(int64_t host_monotonic_raw_ns) const;
  int64_t Correct(int64_t t_ns, ClockDrift Drifts::* drift) const {
    if (drifts_ == nullptr) return t_ns;
    t_ns = Plus(t_ns, ((*drifts_).*drift).At(t_ns));
    return Plus(t_ns, drifts_->wall.At(t_ns));
  }

  ClockFacts facts_;
  double device_mhz_ = 0;
  double host_mhz_ = 0;
  int64_t host_ns_ = 0;          // H with cntvct_diff
  int64_t offset_exact_ns_ = 0;  // wall clock - host monotonic raw
  // The same and H - D in doubles, for the one kind of timestamp the analyser computes in doubles.
  double delta_ns_ = 0;
  double offset_ns_ = 0;
  std::shared_ptr<const Drifts> drifts_;  // null: none
};

}  // namespace profd::exporting
