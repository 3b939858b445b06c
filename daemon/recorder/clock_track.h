// Pairs of clock values over the time the recorder reaches back, and the clocks at instants between
// and around them: linear between the nearest two, so that the clocks' drift is taken out.
#pragma once

#include <cstdint>
#include <vector>

#include "driver/device_clock.h"

namespace profd {

class ClockTrack {
 public:
  explicit ClockTrack(size_t most = 512) : most_(most) { pairs_.reserve(most); }

  // Pairs must come in order of host_ns. A device clock that has jumped (the card was reset) makes
  // what was known before worthless.
  void Add(const ClockPair& pair);
  // False without any pair. With one only, the device's clock is taken to run like the host's and its
  // counter at `device_counter_hz`; host_count likewise at `host_counter_hz` (0: unknown, stays).
  bool At(int64_t host_ns, double device_counter_hz, double host_counter_hz, ClockPair* out) const;
  const std::vector<ClockPair>& pairs() const { return pairs_; }

 private:
  const size_t most_;
  std::vector<ClockPair> pairs_;
};

}  // namespace profd
