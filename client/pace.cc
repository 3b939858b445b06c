#include "client/pace.h"

#include <algorithm>

namespace profd::client {

bool Pace::Take(uint64_t bytes) {
  if (bytes_per_s_ == 0) return true;
  const int64_t now = clock_.SteadyNs();
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_s_);
  // A pause before saves nothing up: there are no bursts.
  paid_ns_ = std::max(paid_ns_, now) + static_cast<int64_t>(seconds * static_cast<double>(kNsPerSecond));
  for (;;) {
    const int64_t left_ns = paid_ns_ - clock_.SteadyNs();
    if (left_ns <= 0) return true;
    if (!wait_((left_ns + kNsPerMs - 1) / kNsPerMs)) return false;
  }
}

}  // namespace profd::client
