#include "export/clock_map.h"

#include <algorithm>
#include <cmath>

#include "export/number_text.h"

namespace profd::exporting {
namespace {

// How far apart two reads of the host's clocks, one after the other, may be.
constexpr int64_t kHostUncertaintyNs = 100'000;
// No clock is slewed by more; what is beyond was set anew during the session, at an unknown instant.
constexpr double kMaxSlew = 1e-3;
// On a busy node so much may lie between two reads of clocks that are meant to be one instant.
constexpr double kLeastStepNs = 100e6;

}  // namespace

int64_t EndByClockOfStart(int64_t begin_wall_ns, int64_t end_wall_ns, int64_t begin_raw_ns, int64_t end_raw_ns) {
  const double lasted = static_cast<double>(end_raw_ns) - static_cast<double>(begin_raw_ns);
  const double set_by = static_cast<double>(end_wall_ns) - static_cast<double>(begin_wall_ns) - lasted;
  if (begin_wall_ns <= 0 || end_wall_ns <= 0 || !(lasted > 0) || std::fabs(set_by) <= kMaxSlew * lasted + kLeastStepNs) return end_wall_ns;
  return static_cast<int64_t>(static_cast<uint64_t>(begin_wall_ns) + static_cast<uint64_t>(end_raw_ns) - static_cast<uint64_t>(begin_raw_ns));
}

void ClockDrift::Add(int64_t t_ns, int64_t correction_ns, int64_t uncertainty_ns) {
  const Point last = points_.empty() ? Point{t_ns, 0} : points_.back();
  if (points_.size() > 1 && t_ns <= last.t_ns) return;
  const double change = static_cast<double>(correction_ns) - static_cast<double>(last.correction_ns);
  if (!points_.empty() && std::fabs(change) <= static_cast<double>(uncertainty_ns)) return;
  points_.push_back({t_ns, correction_ns});
}

int64_t ClockDrift::At(int64_t t_ns) const {
  if (points_.size() < 2 || t_ns <= points_.front().t_ns) return 0;
  auto after = std::ranges::lower_bound(points_, t_ns, {}, &Point::t_ns);
  if (after == points_.end()) --after;
  const Point& to = *after;
  const Point& from = *(after - 1);
  const double part = std::min(
      2.0, static_cast<double>(t_ns - from.t_ns) / static_cast<double>(to.t_ns - from.t_ns));
  const auto change = static_cast<double>(to.correction_ns - from.correction_ns);
  return from.correction_ns + static_cast<int64_t>(std::llround(part * change));
}

// Doubles and their order of operations as the vendor's analyser has them (dump-format 1.7).
ClockMap::ClockMap(const ClockFacts& facts) : facts_(facts) {
  device_mhz_ = facts.device_hz / 1e6;
  host_mhz_ = facts.host_hz / 1e6;
  host_ns_ = facts.host_ns;
  if (host_mhz_ > 0 && facts.host_count_diff > 0) {
    double diff = static_cast<double>(facts.host_count_diff) * 1000 / host_mhz_;
    if (diff < 9e18) {
      host_ns_ =
          static_cast<int64_t>(static_cast<uint64_t>(facts.host_ns) + static_cast<uint64_t>(diff));
    }
  }
  delta_ns_ =
      (static_cast<double>(host_ns_) / 1e9 - static_cast<double>(facts.device_ns) / 1e9) * 1e9;
  offset_ns_ =
      (static_cast<double>(facts.begin_us) - static_cast<double>(facts.begin_raw_ns) / 1000) * 1000;
  offset_exact_ns_ = Plus(Times(facts.begin_us, 1000), -facts.begin_raw_ns);
}

ClockMap::ClockMap(const ClockFacts& facts, std::span<const DumpClocks> pairs) : ClockMap(facts) {
  if (pairs.empty()) return;
  auto drifts = std::make_shared<Drifts>();
  const int64_t start_ns = StartHostNs(host_ns_);
  for (ClockDrift Drifts::* drift : {&Drifts::device, &Drifts::counter, &Drifts::host}) {
    ((*drifts).*drift).Add(start_ns, 0, 0);
  }
  for (const DumpClocks& pair : pairs) {
    if (pair.host_ns <= host_ns_) continue;
    const int64_t true_ns = StartHostNs(pair.host_ns);
    auto add = [&](ClockDrift Drifts::* drift, int64_t t_ns) {
      const int64_t correction = Plus(true_ns, -t_ns);
      if (t_ns <= start_ns || std::fabs(static_cast<double>(correction)) >
                                  kMaxSlew * static_cast<double>(t_ns - start_ns)) {
        return;
      }
      ((*drifts).*drift).Add(t_ns, correction, 2 * pair.uncertainty_ns);
    };
    if (pair.device_ns > facts.device_ns && facts.device_ns > 0) {
      add(&Drifts::device,
          StartHostNs(Plus(pair.device_ns, Plus(host_ns_, -facts.device_ns))));
    }
    if (pair.device_count > facts.device_count && device_mhz_ > 0) {
      add(&Drifts::counter, Counter(pair.device_count, facts.device_count, device_mhz_));
    }
    if (pair.host_count > facts.host_count && facts.host_count > 0 && host_mhz_ > 0) {
      add(&Drifts::host, Counter(pair.host_count, facts.host_count, host_mhz_));
    }
  }
  const int64_t lasted = facts.end_raw_ns - facts.begin_raw_ns;
  if (facts.end_us > facts.begin_us && facts.begin_us > 0 && lasted > 0) {
    const int64_t end_ns = StartHostNs(facts.end_raw_ns);
    const int64_t correction = Plus(Times(facts.end_us, 1000), -end_ns);
    drifts->wall.Add(Times(facts.begin_us, 1000), 0, 0);
    if (std::fabs(static_cast<double>(correction)) <= kMaxSlew * static_cast<double>(lasted)) {
      drifts->wall.Add(end_ns, correction, kHostUncertaintyNs);
    }
  }
  drifts_ = std::move(drifts);
}

int64_t ClockMap::StartHostNs(int64_t host_monotonic_raw_ns) const {
  return Plus(host_monotonic_raw_ns, offset_exact_ns_);
}

int64_t ClockMap::HostNs(int64_t host_monotonic_raw_ns) const {
  const int64_t t_ns = StartHostNs(host_monotonic_raw_ns);
  return drifts_ == nullptr ? t_ns : Plus(t_ns, drifts_->wall.At(t_ns));
}

int64_t ClockMap::DeviceNs(int64_t device_monotonic_ns) const {
  return Correct(StartHostNs(Plus(device_monotonic_ns, Plus(host_ns_, -facts_.device_ns))),
                 &Drifts::device);
}

int64_t ClockMap::DeviceMicros(int64_t micros_since_start) const {
  auto device = static_cast<double>(Plus(Times(micros_since_start, 1000), facts_.device_ns));
  double t_ns = device + delta_ns_ + offset_ns_;
  if (!(t_ns > -9.2e18 && t_ns < 9.2e18)) return 0;
  return Correct(static_cast<int64_t>(t_ns), &Drifts::device);
}

// The analyser divides in double, takes the microseconds with six decimals, and cuts the sum to ns.
int64_t ClockMap::Counter(uint64_t cycles, uint64_t start, double mhz) const {
  bool after = cycles >= start;
  double micros = static_cast<double>(after ? cycles - start : start - cycles) / mhz;
  if (!(micros < 9e12)) return StartHostNs(host_ns_);
  int64_t picos = RoundScaled(micros, 1e6);  // thousandths of a ns
  int64_t ns = after ? picos / 1000 : -((picos + 999) / 1000);
  return StartHostNs(Plus(host_ns_, ns));
}

int64_t ClockMap::DeviceCounter(uint64_t cycles) const {
  if (!(device_mhz_ > 0)) return HostNs(host_ns_);
  return CorrectCounter(Counter(cycles, facts_.device_count, device_mhz_));
}

int64_t ClockMap::HostCounter(uint64_t cycles) const {
  if (!(host_mhz_ > 0)) return HostNs(static_cast<int64_t>(cycles));
  return Correct(Counter(cycles, facts_.host_count, host_mhz_), &Drifts::host);
}

ClockMap::CutTime ClockMap::Record(uint64_t cycles, uint64_t start, double mhz, int64_t start_ns) const {
  const double ns = static_cast<double>(static_cast<int64_t>(cycles - start)) * 1000.0 / mhz + static_cast<double>(start_ns);
  if (!(ns > -9.2e18 && ns < 9.2e18)) return {StartHostNs(start_ns), 0};
  const auto whole = static_cast<int64_t>(ns);
  return {StartHostNs(whole), static_cast<float>(ns - static_cast<double>(whole))};
}

ClockMap::CutTime ClockMap::DeviceTask(uint64_t cycles) const {
  if (!(device_mhz_ > 0)) return {HostNs(host_ns_), 0};
  CutTime time = Record(cycles, facts_.device_count, device_mhz_, host_ns_);
  time.ns = CorrectCounter(time.ns);
  return time;
}

int64_t ClockMap::HostRecord(uint64_t cycles) const {
  if (!(host_mhz_ > 0)) return HostNs(static_cast<int64_t>(cycles));
  return Correct(Record(cycles, facts_.host_count, host_mhz_, facts_.host_ns).ns, &Drifts::host);
}

}  // namespace profd::exporting
