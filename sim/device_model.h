// One device doing its share of the training job: every number either library reports about it, as
// a function of scenario time. Immutable after construction, so any thread may ask.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/chip.h"
#include "sim/curve.h"
#include "sim/fault_table.h"
#include "sim/timeline.h"

namespace profd::sim {

// What grows. Bytes unless the name has another unit; *Busy are ns. PCIe names follow the device's
// point of view.
enum Quantity : unsigned {
  kHbmRead,
  kHbmWrite,
  kDdrRead,
  kDdrWrite,
  kLlcLines,  // accesses of 64 B
  kLlcHits,
  kRoceTx,
  kRoceRx,
  kPcieTxPosted,
  kPcieTxNonPosted,
  kPcieTxCompletion,
  kPcieRxPosted,
  kPcieRxNonPosted,
  kPcieRxCompletion,
  kSioTx,
  kSioRx,
  kCubeBusy,
  kVectorBusy,
  kAicpuBusy,
  kCtrlCpuBusy,
  kDvppVdecBusy,
  kDvppJpegdBusy,
  kDvppPngdBusy,
  kDvppJpegeBusy,
  kDvppVpcBusy,
  kDvppVencBusy,
  kDvppScdBusy,
  kQuantities,
};
inline constexpr unsigned kDvppEngines =
    7;  // engine type = quantity - kDvppVdecBusy (dump-format 2.4)

// Packets a byte count makes on the wire: RoCE fills 4 KiB MTUs.
inline constexpr uint64_t kPacketBytes = 4096;
constexpr uint64_t PacketsOf(uint64_t bytes) { return bytes / kPacketBytes; }

struct FreqEvent {
  int64_t t_ns;
  unsigned mhz;
};

struct ModuleMemory {
  uint32_t id;        // dump-format 2.10
  double share;       // of what the job uses
  uint64_t fixed_mb;  // always there
};
std::span<const ModuleMemory> ModuleTable();

class DeviceModel {
 public:
  DeviceModel(int device, const Scenario& scenario, const ChipSpec& chip, const Timeline& timeline,
              const FaultTable& faults);

  uint64_t Total(Quantity quantity, int64_t t_ns) const;
  uint64_t LinkTx(unsigned link, int64_t t_ns) const;  // bytes; link of chip.hccs_links
  uint64_t LinkRx(unsigned link, int64_t t_ns) const;
  uint64_t HccsTx(int64_t t_ns) const;  // all links
  uint64_t HccsRx(int64_t t_ns) const;
  // Share of the last 200 ms that a *Busy quantity was busy, 0..1.
  double BusyRatio(Quantity quantity, int64_t t_ns) const;
  double HbmBandwidthRatio(int64_t t_ns) const;
  // MAC level: RoCE plus a trickle of management traffic.
  uint64_t MacTx(int64_t t_ns) const;
  uint64_t MacRx(int64_t t_ns) const;

  unsigned AicoreMhz(int64_t t_ns) const;
  // Changes of AicoreMhz in (from, to], in order.
  std::vector<FreqEvent> FreqEvents(int64_t from_ns, int64_t to_ns) const;
  // A time not after the first change after `t_ns`, and after `t_ns` itself.
  int64_t NextFreqEvent(int64_t t_ns) const;
  uint32_t ThrottleCause(int64_t t_ns) const;
  static unsigned AicoreMillivolts(unsigned mhz);

  double PowerWatts(int64_t t_ns) const;
  double ChipCelsius(int64_t t_ns) const;
  double HbmCelsius(int64_t t_ns) const { return ChipCelsius(t_ns) + 4; }
  uint64_t ModuleBytes(const ModuleMemory& module, int64_t t_ns) const;
  uint64_t HbmUsedBytes(int64_t t_ns) const;  // sum over ModuleTable()
  uint64_t HbmAppBytes(int64_t t_ns) const;
  uint64_t DdrUsedBytes(int64_t t_ns) const;

  // Fault-driven counters; what has happened stays counted when the fault ends.
  uint64_t RoceRetries(int64_t t_ns) const;
  uint64_t HccsRetries(unsigned link, int64_t t_ns) const;
  bool LinkIsSlow(unsigned link, int64_t t_ns) const;
  uint32_t EccSingle(int64_t t_ns) const;
  uint32_t EccDouble(int64_t t_ns) const;

  int device() const { return device_; }
  const ChipSpec& chip() const { return chip_; }
  // 0 nothing, 0.5 forward half done, 1 end of forward, back to 0 at the end of backward.
  double ActivationRatio(int64_t t_ns) const;

 private:
  Position Locate(int64_t t_ns) const { return timeline_.Locate(t_ns - skew_ns_); }
  bool DipStep(int64_t step) const;
  double TargetWatts(Phase phase, bool active, unsigned mhz) const;
  double MeanWatts(const Segment& segment) const;
  double SegmentCelsius(size_t segment) const;  // where the temperature tends to
  void BuildCurves(const Scenario& scenario);
  void BuildTemperatures();

  int device_;
  uint64_t seed_;
  const ChipSpec& chip_;
  const Timeline& timeline_;
  const FaultTable& faults_;
  int64_t skew_ns_;
  std::vector<Curve> curves_;
  std::vector<Curve> link_tx_;
  std::vector<Curve> link_rx_;
  std::vector<double> celsius_at_start_;  // by segment
};

}  // namespace profd::sim
