// How often the pump looks at the driver's channels. A round costs as much for one record of a
// channel as for twenty, so while there is no live subscriber (dumps and scrapes do not mind) rounds are
// further apart; unless channels have just been started, whose first records a client may be
// waiting for, or one of them brings so much at a time that its ring could overflow. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace profd::internal {

class PumpPace {
 public:
  // How long rounds stay close together after something has called for it.
  static constexpr int64_t kHurryNs = 2 * kNsPerSecond;
  // A visit to one channel that brought so much calls for it: the driver's ring may be near its
  // end.
  static constexpr size_t kLargeVisit = 128 * 1024;

  // `relaxed_ns` not above `interval_ns`: always at `interval_ns`.
  PumpPace(int64_t interval_ns, int64_t relaxed_ns) : interval_ns_(interval_ns) { SetRelaxed(relaxed_ns); }

  void SetRelaxed(int64_t relaxed_ns) { relaxed_ns_ = std::max(interval_ns_, relaxed_ns); }

  void BeginRound(int64_t now_ns) {
    if (in_round_) return;
    in_round_ = true;
    begun_ns_ = now_ns;
    visits_ = 0;
  }
  // One registered channel was read.
  void NoteVisit() { ++visits_; }
  // Every channel had its turn: what is ready again arrived meanwhile, and waits for the next round.
  bool HadAll(size_t channels) const { return visits_ >= channels; }
  void Hurry(int64_t now_ns) { hurry_until_ns_ = now_ns + kHurryNs; }
  // How long to wait for the next round; 0 or less = it is time.
  int64_t EndRound(int64_t now_ns, bool watched) {
    in_round_ = false;
    const bool close = watched || now_ns < hurry_until_ns_;
    return (close ? interval_ns_ : relaxed_ns_) - (now_ns - begun_ns_);
  }

 private:
  const int64_t interval_ns_;
  int64_t relaxed_ns_ = 0;
  bool in_round_ = false;
  int64_t begun_ns_ = 0;
  size_t visits_ = 0;
  int64_t hurry_until_ns_ = 0;
};

}  // namespace profd::internal
