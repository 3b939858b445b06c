#include "sim/device_model.h"

#include <algorithm>
#include <cmath>

#include "sim/noise.h"

namespace profd::sim {
namespace {

using Levels = std::array<double, kPhases>;  // forward, backward, all-reduce, update, data-wait

struct QuantityRow {
  Levels levels;  // share of the peak
  bool busy = false;
  double idle = 0;  // busy curves: level while waiting for slower devices
};

// Reads plus writes of HBM, and posted plus completions per PCIe direction, stay below the peak in
// every phase.
constexpr std::array<QuantityRow, kQuantities> kRows = {{
    {{.42, .52, .30, .52, .04}},             // kHbmRead
    {{.22, .32, .25, .36, .03}},             // kHbmWrite
    {{.20, .20, .10, .25, .45}},             // kDdrRead
    {{.10, .12, .08, .15, .30}},             // kDdrWrite
    {{.62, .78, .40, .70, .05}},             // kLlcLines
    {{.43, .50, .22, .38, .03}},             // kLlcHits: never above kLlcLines
    {{.01, .06, .82, .02, .00}},             // kRoceTx
    {{.01, .06, .81, .02, .00}},             // kRoceRx
    {{.03, .05, .02, .08, .02}},             // kPcieTxPosted
    {{.004, .004, .002, .004, .03}},         // kPcieTxNonPosted
    {{.01, .01, .01, .01, .02}},             // kPcieTxCompletion
    {{.02, .02, .01, .03, .04}},             // kPcieRxPosted
    {{.002, .002, .002, .002, .004}},        // kPcieRxNonPosted
    {{.08, .06, .03, .08, .62}},             // kPcieRxCompletion
    {{.05, .12, .70, .04, .00}},             // kSioTx
    {{.05, .11, .71, .04, .00}},             // kSioRx
    {{.80, .89, .10, .28, .01}, true, .01},  // kCubeBusy
    {{.38, .46, .10, .72, .01}, true, .01},  // kVectorBusy
    {{.10, .08, .14, .10, .32}, true, .05},  // kAicpuBusy
    {{.06, .06, .09, .06, .08}, true, .05},  // kCtrlCpuBusy
    {{.20, .12, .10, .10, .55}, true, .05},  // kDvppVdecBusy
    {{.35, .25, .20, .20, .80}, true, .10},  // kDvppJpegdBusy
    {{.02, .01, .01, .01, .05}, true, .00},  // kDvppPngdBusy
    {{.00, .00, .00, .00, .00}, true, .00},  // kDvppJpegeBusy
    {{.30, .22, .18, .18, .72}, true, .08},  // kDvppVpcBusy
    {{.00, .00, .00, .00, .00}, true, .00},  // kDvppVencBusy
    {{.01, .01, .01, .01, .02}, true, .00},  // kDvppScdBusy
}};

constexpr Levels kHccsTxLevels = {.02, .10, .86, .03, .00};
constexpr Levels kHccsRxLevels = {.02, .10, .85, .03, .00};

// Last-level cache against memory: what HBM serves plus what the cache saves it.
constexpr double kLlcGain = 2.2;
constexpr double kLlcLineBytes = 64;

double Peak(const ChipSpec& chip, unsigned quantity) {
  switch (quantity) {
    case kHbmRead:
    case kHbmWrite:
      return chip.hbm_bytes_per_s;
    case kDdrRead:
    case kDdrWrite:
      return chip.ddr_bytes_per_s;
    case kLlcLines:
    case kLlcHits:
      return chip.hbm_bytes_per_s * kLlcGain / kLlcLineBytes;
    case kRoceTx:
    case kRoceRx:
      return chip.roce_bytes_per_s;
    case kSioTx:
    case kSioRx:
      return chip.sio_bytes_per_s;
    default:
      return chip.pcie_bytes_per_s;
  }
}

std::array<double, kPhases> WorkPerPhase(const Timeline& timeline, const Levels& levels,
                                         double peak_per_s) {
  std::array<double, kPhases> work{};
  for (unsigned p = 0; p < kPhases; ++p) {
    work[p] = levels[p] * peak_per_s * static_cast<double>(timeline.nominal_ns()[p]) / 1e9;
  }
  return work;
}

uint64_t SumAt(const std::vector<Curve>& curves, const Position& position) {
  uint64_t sum = 0;
  for (const Curve& curve : curves) sum += curve.Value(position);
  return sum;
}

constexpr int64_t kMaxSkewNs = 1'500'000;
constexpr int64_t kBusyWindowNs = 200'000'000;
constexpr double kPowerLagNs = 15e6;
constexpr double kHeatLagNs = 20e9;
constexpr double kThermalFaultCelsius = 14;

constexpr std::array<ModuleMemory, 9> kModules = {{{3, .035, 512},     // HCCL
                                                   {7, .004, 96},      // RUNTIME
                                                   {10, 0, 1200},      // DRV
                                                   {22, 0, 64},        // DEVMM
                                                   {29, 0, 140},       // ROCE
                                                   {33, .931, 0},      // APP
                                                   {34, 0, 48},        // TS
                                                   {36, .010, 220},    // AICPU
                                                   {45, .020, 300}}};  // GE

}  // namespace

std::span<const ModuleMemory> ModuleTable() { return kModules; }

DeviceModel::DeviceModel(int device, const Scenario& scenario, const ChipSpec& chip,
                         const Timeline& timeline, const FaultTable& faults)
    : device_(device),
      seed_(scenario.seed),
      chip_(chip),
      timeline_(timeline),
      faults_(faults),
      skew_ns_(static_cast<int64_t>(Hash(scenario.seed, kNoiseSkew, static_cast<uint64_t>(device)) %
                                    kMaxSkewNs)) {
  BuildCurves(scenario);
  BuildTemperatures();
}

void DeviceModel::BuildCurves(const Scenario& scenario) {
  const auto d = static_cast<uint64_t>(device_);
  CurveShape shape;
  shape.device = static_cast<unsigned>(device_);
  for (unsigned q = 0; q < kQuantities; ++q) {
    const QuantityRow& row = kRows[q];
    shape.busy = row.busy;
    shape.idle = row.idle;
    // Hits share the noise of the accesses they are part of, so that they can never outnumber them.
    shape.noise = Hash(scenario.seed, kNoiseCurve + (q == kLlcHits ? kLlcLines : q), d);
    const bool counter = q == kRoceTx || q == kRoceRx;  // counts since boot
    shape.offset = counter ? Hash(scenario.seed, kNoiseBoot + q, d) % 5'000'000'000'000ULL : 0;
    shape.work = row.busy ? row.levels : WorkPerPhase(timeline_, row.levels, Peak(chip_, q));
    curves_.emplace_back(timeline_, shape);
  }
  shape.busy = false;
  for (unsigned link = kFirstHccsLink; link < kFirstHccsLink + chip_.hccs_links; ++link) {
    shape.link = link;
    for (unsigned rx = 0; rx < 2; ++rx) {
      const uint64_t key = kNoiseLink + 2 * link + rx;
      const double peak =
          chip_.hccs_link_bytes_per_s * (0.99 + 0.01 * Signed(Hash(scenario.seed, key, d, 1)));
      shape.noise = Hash(scenario.seed, key, d);
      shape.offset = Hash(scenario.seed, key, d, 2) % 500'000'000'000ULL;
      shape.work = WorkPerPhase(timeline_, rx != 0 ? kHccsRxLevels : kHccsTxLevels, peak);
      (rx != 0 ? link_rx_ : link_tx_).emplace_back(timeline_, shape);
    }
  }
}

uint64_t DeviceModel::Total(Quantity quantity, int64_t t_ns) const {
  return curves_[quantity].Value(Locate(t_ns));
}
uint64_t DeviceModel::LinkTx(unsigned link, int64_t t_ns) const {
  return link_tx_[link - kFirstHccsLink].Value(Locate(t_ns));
}
uint64_t DeviceModel::LinkRx(unsigned link, int64_t t_ns) const {
  return link_rx_[link - kFirstHccsLink].Value(Locate(t_ns));
}
uint64_t DeviceModel::HccsTx(int64_t t_ns) const { return SumAt(link_tx_, Locate(t_ns)); }
uint64_t DeviceModel::HccsRx(int64_t t_ns) const { return SumAt(link_rx_, Locate(t_ns)); }

double DeviceModel::BusyRatio(Quantity quantity, int64_t t_ns) const {
  const int64_t now = std::max<int64_t>(t_ns, 1);
  const int64_t window = std::min(kBusyWindowNs, now);
  const uint64_t busy = Total(quantity, now) - Total(quantity, now - window);
  return std::min(1.0, static_cast<double>(busy) / static_cast<double>(window));
}

double DeviceModel::HbmBandwidthRatio(int64_t t_ns) const {
  const int64_t now = std::max<int64_t>(t_ns, 1);
  const int64_t window = std::min(kBusyWindowNs, now);
  const uint64_t bytes = Total(kHbmRead, now) - Total(kHbmRead, now - window) +
                         Total(kHbmWrite, now) - Total(kHbmWrite, now - window);
  return std::min(
      1.0, static_cast<double>(bytes) * 1e9 / static_cast<double>(window) / chip_.hbm_bytes_per_s);
}

namespace {
constexpr int64_t kManagementBytesPerMs = 12;
uint64_t Management(int64_t t_ns) {
  return static_cast<uint64_t>(std::max<int64_t>(0, t_ns) / 1'000'000 * kManagementBytesPerMs);
}
}  // namespace

uint64_t DeviceModel::MacTx(int64_t t_ns) const { return Total(kRoceTx, t_ns) + Management(t_ns); }
uint64_t DeviceModel::MacRx(int64_t t_ns) const { return Total(kRoceRx, t_ns) + Management(t_ns); }

// About one step in eight runs into the power limit in its backward pass.
bool DeviceModel::DipStep(int64_t step) const {
  return Hash(seed_, kNoiseFreq, static_cast<uint64_t>(device_), static_cast<uint64_t>(step)) % 8 ==
         0;
}

unsigned DeviceModel::AicoreMhz(int64_t t_ns) const {
  if (const Fault* fault = faults_.Find(FaultKind::kThrottle, t_ns, device_)) return fault->mhz;
  const Position position = Locate(t_ns);
  const Segment& segment = timeline_.segments()[position.segment];
  const bool dip =
      position.phase == kBackward && DipStep(position.step) &&
      position.in_phase_ns < segment.active_ns[static_cast<size_t>(device_)][kBackward];
  return dip ? chip_.aic_dip_mhz : chip_.aic_mhz;
}

std::vector<FreqEvent> DeviceModel::FreqEvents(int64_t from_ns, int64_t to_ns) const {
  std::vector<int64_t> candidates;
  for (const Fault& fault : faults_.all()) {
    if (fault.kind != FaultKind::kThrottle || !fault.Concerns(device_)) continue;
    candidates.push_back(fault.begin_ns);
    candidates.push_back(fault.end_ns);
  }
  const int64_t last_step = Locate(to_ns).step;
  for (int64_t step = Locate(from_ns).step; step <= last_step; ++step) {
    if (!DipStep(step)) continue;
    const Segment& segment = timeline_.SegmentOfStep(step);
    const int64_t begin = timeline_.StepStart(step) + segment.window_ns[kForward] + skew_ns_;
    candidates.push_back(begin);
    candidates.push_back(begin + segment.active_ns[static_cast<size_t>(device_)][kBackward]);
  }
  std::ranges::sort(candidates);
  std::vector<FreqEvent> events;
  unsigned mhz = AicoreMhz(from_ns);
  for (int64_t t : candidates) {
    if (t <= from_ns || t > to_ns || AicoreMhz(t) == mhz) continue;
    mhz = AicoreMhz(t);
    events.push_back({t, mhz});
  }
  return events;
}

int64_t DeviceModel::NextFreqEvent(int64_t t_ns) const {
  int64_t next = kForever;
  for (const Fault& fault : faults_.all()) {
    if (fault.kind != FaultKind::kThrottle || !fault.Concerns(device_)) continue;
    if (fault.begin_ns > t_ns) next = std::min(next, fault.begin_ns);
    if (fault.end_ns > t_ns) next = std::min(next, fault.end_ns);
  }
  constexpr int64_t kLookAhead = 64;
  const int64_t first = Locate(t_ns).step;
  for (int64_t step = first; step <= first + kLookAhead; ++step) {
    const Segment& segment = timeline_.SegmentOfStep(step);
    const int64_t begin = timeline_.StepStart(step) + segment.window_ns[kForward] + skew_ns_;
    const int64_t end = begin + segment.active_ns[static_cast<size_t>(device_)][kBackward];
    const bool stop_here = DipStep(step) || step == first + kLookAhead;
    if (stop_here && begin > t_ns) return std::min(next, begin);
    if (stop_here && end > t_ns) return std::min(next, end);
  }
  return next;
}

uint32_t DeviceModel::ThrottleCause(int64_t t_ns) const {
  const Fault* fault = faults_.Find(FaultKind::kThrottle, t_ns, device_);
  return fault == nullptr ? 0 : fault->cause;
}

unsigned DeviceModel::AicoreMillivolts(unsigned mhz) { return 650 + mhz * 14 / 100; }

double DeviceModel::TargetWatts(Phase phase, bool active, unsigned mhz) const {
  const auto level = [&](Quantity q) { return active ? kRows[q].levels[phase] : kRows[q].idle; };
  const double speed = static_cast<double>(mhz) / chip_.aic_mhz;
  const double load = 0.70 * level(kCubeBusy) + 0.14 * level(kVectorBusy) +
                      0.16 * (level(kHbmRead) + level(kHbmWrite));
  return chip_.idle_watts + (chip_.max_watts - chip_.idle_watts) * load * speed * speed;
}

double DeviceModel::PowerWatts(int64_t t_ns) const {
  const Position now = Locate(t_ns);
  const Segment& segment = timeline_.segments()[now.segment];
  const auto& active = segment.active_ns[static_cast<size_t>(device_)];
  const unsigned mhz = AicoreMhz(t_ns);
  const bool busy = now.in_phase_ns < active[now.phase];
  const Phase before = static_cast<Phase>((now.phase + kPhases - 1) % kPhases);
  const double from = busy ? TargetWatts(before, active[before] == segment.window_ns[before], mhz)
                           : TargetWatts(now.phase, true, mhz);
  const double to = TargetWatts(now.phase, busy, mhz);
  const auto since =
      static_cast<double>(busy ? now.in_phase_ns : now.in_phase_ns - active[now.phase]);
  const double noise = 0.008 * Signed(Hash(seed_, kNoisePower, static_cast<uint64_t>(device_),
                                           static_cast<uint64_t>(t_ns / 10'000'000)));
  const double watts = to + (from - to) * std::exp(-since / kPowerLagNs);
  return std::min(chip_.max_watts, watts * (1 + noise));
}

double DeviceModel::MeanWatts(const Segment& segment) const {
  const auto& active = segment.active_ns[static_cast<size_t>(device_)];
  const Fault* fault = faults_.Find(FaultKind::kThrottle, segment.edge_ns, device_);
  const unsigned mhz = fault == nullptr ? chip_.aic_mhz : fault->mhz;
  double joules = 0;
  for (unsigned p = 0; p < kPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    const auto wait = static_cast<double>(segment.window_ns[p] - active[p]);
    joules += TargetWatts(phase, true, mhz) * static_cast<double>(active[p]) +
              TargetWatts(phase, false, mhz) * wait;
  }
  return joules / static_cast<double>(segment.step_ns);
}

double DeviceModel::SegmentCelsius(size_t index) const {
  const Segment& segment = timeline_.segments()[index];
  const double own = 2.5 * Signed(Hash(seed_, kNoiseTemp, static_cast<uint64_t>(device_)));
  const Fault* fault = faults_.Find(FaultKind::kThrottle, segment.edge_ns, device_);
  const double hot = fault != nullptr && (fault->cause & 1) != 0 ? kThermalFaultCelsius : 0;
  // 910B at full load settles around 60 degrees with 30 degree intake air.
  return 31 + own + hot + 31 * MeanWatts(segment) / chip_.max_watts;
}

void DeviceModel::BuildTemperatures() {
  const std::vector<Segment>& segments = timeline_.segments();
  celsius_at_start_.push_back(SegmentCelsius(0));
  for (size_t i = 1; i < segments.size(); ++i) {
    const double target = SegmentCelsius(i - 1);
    const auto ns = static_cast<double>(segments[i].start_ns - segments[i - 1].start_ns);
    celsius_at_start_.push_back(target +
                                (celsius_at_start_[i - 1] - target) * std::exp(-ns / kHeatLagNs));
  }
}

double DeviceModel::ChipCelsius(int64_t t_ns) const {
  const int64_t t = std::max<int64_t>(0, t_ns);
  const size_t segment = timeline_.Locate(t).segment;
  const double target = SegmentCelsius(segment);
  const auto ns = static_cast<double>(t - timeline_.segments()[segment].start_ns);
  const double noise = 0.3 * Signed(Hash(seed_, kNoiseTemp, static_cast<uint64_t>(device_),
                                         1 + static_cast<uint64_t>(t / 500'000'000)));
  return target + (celsius_at_start_[segment] - target) * std::exp(-ns / kHeatLagNs) + noise;
}

double DeviceModel::ActivationRatio(int64_t t_ns) const {
  const Position now = Locate(t_ns);
  const auto& window = timeline_.segments()[now.segment].window_ns;
  const double done = window[now.phase] == 0 ? 0
                                             : static_cast<double>(now.in_phase_ns) /
                                                   static_cast<double>(window[now.phase]);
  if (now.phase == kForward) return done;
  return now.phase == kBackward ? 1 - done : 0;
}

uint64_t DeviceModel::ModuleBytes(const ModuleMemory& module, int64_t t_ns) const {
  const double job_mb = static_cast<double>(chip_.hbm_mb) * (0.62 + 0.21 * ActivationRatio(t_ns));
  constexpr uint64_t kPage = 4096;
  const auto bytes = static_cast<uint64_t>(job_mb * module.share * 1048576.0);
  return module.fixed_mb * 1048576 + bytes / kPage * kPage;
}

uint64_t DeviceModel::HbmUsedBytes(int64_t t_ns) const {
  uint64_t sum = 0;
  for (const ModuleMemory& module : kModules) sum += ModuleBytes(module, t_ns);
  return sum;
}

uint64_t DeviceModel::HbmAppBytes(int64_t t_ns) const {
  constexpr uint32_t kApp = 33;
  for (const ModuleMemory& module : kModules) {
    if (module.id == kApp) return ModuleBytes(module, t_ns);
  }
  return 0;
}

uint64_t DeviceModel::DdrUsedBytes(int64_t t_ns) const {
  const double mb = static_cast<double>(chip_.ddr_mb) * (0.22 + 0.02 * ActivationRatio(t_ns));
  return static_cast<uint64_t>(mb * 256) * 4096;
}

namespace {
// How much of [begin, end) lies before t, ns.
int64_t Elapsed(const Fault& fault, int64_t t_ns) {
  return std::clamp<int64_t>(t_ns - fault.begin_ns, 0, fault.end_ns - fault.begin_ns);
}
}  // namespace

uint64_t DeviceModel::RoceRetries(int64_t t_ns) const {
  double count = 0;
  for (const Fault& fault : faults_.all()) {
    if (fault.kind != FaultKind::kRoceRetrans || !fault.Concerns(device_)) continue;
    count += std::floor(fault.rate * static_cast<double>(Elapsed(fault, t_ns)) / 1e9);
  }
  return static_cast<uint64_t>(count);
}

uint64_t DeviceModel::HccsRetries(unsigned link, int64_t t_ns) const {
  constexpr double kRetriesPerSecond = 40;
  double count = 0;
  for (const Fault& fault : faults_.all()) {
    if (fault.kind != FaultKind::kSlowHccs || !fault.Concerns(device_) || fault.link != link) {
      continue;
    }
    count += std::floor(kRetriesPerSecond * (1 - fault.factor) *
                        static_cast<double>(Elapsed(fault, t_ns)) / 1e9);
  }
  return static_cast<uint64_t>(count);
}

bool DeviceModel::LinkIsSlow(unsigned link, int64_t t_ns) const {
  for (const Fault& fault : faults_.all()) {
    if (fault.kind == FaultKind::kSlowHccs && fault.Covers(t_ns) && fault.Concerns(device_) &&
        fault.link == link) {
      return true;
    }
  }
  return false;
}

namespace {
// Errors come spread over the fault's duration, all at once if it has none; the first at its
// beginning.
uint32_t EccSoFar(const Fault& fault, uint32_t count, int64_t t_ns) {
  if (t_ns < fault.begin_ns || count == 0) return 0;
  if (fault.end_ns == kForever || t_ns >= fault.end_ns) return count;
  const double share = static_cast<double>(t_ns - fault.begin_ns) /
                       static_cast<double>(fault.end_ns - fault.begin_ns);
  return std::min(count, 1 + static_cast<uint32_t>(share * count));
}

uint32_t EccSoFar(const FaultTable& faults, int device, uint32_t Fault::*errors, int64_t t_ns) {
  uint32_t count = 0;
  for (const Fault& fault : faults.all()) {
    if (fault.kind == FaultKind::kEcc && fault.Concerns(device)) count += EccSoFar(fault, fault.*errors, t_ns);
  }
  return count;
}
}  // namespace

uint32_t DeviceModel::EccSingle(int64_t t_ns) const { return EccSoFar(faults_, device_, &Fault::single, t_ns); }
uint32_t DeviceModel::EccDouble(int64_t t_ns) const { return EccSoFar(faults_, device_, &Fault::double_, t_ns); }

}  // namespace profd::sim
