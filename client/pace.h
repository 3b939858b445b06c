// A limit of bytes per second: the sender of bytes calls it before each piece and waits until the piece fits, so that never
// more has been moved than the time since the first one allows.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"

namespace profd::client {

class Pace {
 public:
  // `wait`: for at most so long; false gives up.
  Pace(const Clock& clock, std::function<bool(int64_t ms)> wait) : clock_(clock), wait_(std::move(wait)) {}

  // 0 = no limit.
  void SetLimit(uint64_t bytes_per_s) { bytes_per_s_ = bytes_per_s; }
  // False when it was given up.
  bool Take(uint64_t bytes);

 private:
  const Clock& clock_;
  std::function<bool(int64_t ms)> wait_;
  uint64_t bytes_per_s_ = 0;
  int64_t paid_ns_ = 0;  // until when what was moved so far takes
};

}  // namespace profd::client
