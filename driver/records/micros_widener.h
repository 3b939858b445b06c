// 32-bit microseconds of DDR and memory records, which wrap every 71.6 minutes (driver-abi 3.6, "us since start").
#pragma once

#include <cstdint>

namespace profd::records {

// Only a small step over the end counts as a turn, so that one garbage timestamp does not shift what follows.
class MicrosWidener {
 public:
  uint64_t Widen(uint32_t us) {
    constexpr uint32_t kLargestStep = 1u << 28;  // 4.5 minutes
    constexpr uint64_t kTurn = uint64_t{1} << 32;
    // Of another series of the channel, from before the end that this one has passed.
    if (us > last_ && last_ - us < kLargestStep && high_ > 0) return high_ - kTurn + us;
    if (us < last_ && us - last_ < kLargestStep) high_ += kTurn;
    last_ = us;
    return high_ + us;
  }

 private:
  uint64_t high_ = 0;
  uint32_t last_ = 0;
};

}  // namespace profd::records
