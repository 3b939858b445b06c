#include "daemon/recorder/clock_track.h"

#include <algorithm>
#include <cmath>

namespace profd {
namespace {

// Far more than any oscillator drifts, far less than a reset clock is off.
constexpr double kMostDrift = 0.001;
constexpr int64_t kMostJumpNs = 10'000'000;

int64_t Scaled(int64_t value, double factor) {
  return static_cast<int64_t>(std::llround(static_cast<double>(value) * factor));
}

uint64_t Moved(uint64_t count, int64_t by) { return count + static_cast<uint64_t>(by); }

int64_t Delta(uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); }

}  // namespace

void ClockTrack::Add(const ClockPair& pair) {
  if (!pairs_.empty()) {
    const ClockPair& last = pairs_.back();
    int64_t host = pair.host_ns - last.host_ns;
    if (host <= 0) return;
    int64_t off = std::abs(pair.device_ns - last.device_ns - host);
    if (pair.device_ns != 0 && off > kMostJumpNs + Scaled(host, kMostDrift)) pairs_.clear();
  }
  if (pairs_.size() == most_) pairs_.erase(pairs_.begin());
  pairs_.push_back(pair);
}

bool ClockTrack::At(int64_t host_ns, double device_counter_hz, double host_counter_hz,
                    ClockPair* out) const {
  if (pairs_.empty()) return false;
  if (pairs_.size() == 1) {
    *out = pairs_.front();
    int64_t by = host_ns - out->host_ns;
    out->host_ns = host_ns;
    if (out->device_ns != 0) out->device_ns += by;
    if (out->device_count != 0) out->device_count = Moved(out->device_count, Scaled(by, device_counter_hz / 1e9));
    out->host_count = Moved(out->host_count, Scaled(by, host_counter_hz / 1e9));
    return true;
  }
  auto after = std::ranges::lower_bound(pairs_, host_ns, {}, &ClockPair::host_ns);
  bool inside = after != pairs_.begin() && after != pairs_.end();
  // Outside, the longest stretch there is gives the best drift.
  const ClockPair& a = inside ? *(after - 1) : pairs_.front();
  const ClockPair& b = inside ? *after : pairs_.back();
  double share = static_cast<double>(host_ns - a.host_ns) / static_cast<double>(b.host_ns - a.host_ns);
  out->host_ns = host_ns;
  out->device_ns = a.device_ns + Scaled(b.device_ns - a.device_ns, share);
  out->device_count = Moved(a.device_count, Scaled(Delta(a.device_count, b.device_count), share));
  out->host_count = Moved(a.host_count, Scaled(Delta(a.host_count, b.host_count), share));
  out->uncertainty_ns = std::max(a.uncertainty_ns, b.uncertainty_ns);
  return true;
}

}  // namespace profd
