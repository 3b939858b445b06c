// Who one NPU is and how it is: identity, health, faults, neighbours, the processes that use it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "collectors/metric_table.h"
#include "collectors/npu_state/device_pass.h"
#include "collectors/process_names.h"

namespace profd {

class StateReadings {
 public:
  // `identity` keeps its series while the NPU is gone, `owner` does not.
  StateReadings(SlotOwner& identity, SlotOwner& owner, const DcmiDevice& device,
                const RootedFs& sys, const ProcessNames* names_or_null);
  // Gives the health status, or the code that kept us from it.
  DcmiAnswer<unsigned> Medium(DevicePass& pass);
  void Slow(DevicePass& pass, std::span<const DcmiDevice> all);
  // The sample of atlas_npu_info, with every tick's `up`.
  SeriesId info() const { return info_; }

 private:
  struct Neighbour {
    SeriesId series = kNoSeries;  // also: the driver knows no way to it
    uint32_t epoch = 0;
  };

  void ReadFaults(DevicePass& pass);
  void PutFaultEvents(DevicePass& pass, bool events_known, bool codes_known);
  void ReadProcesses(DevicePass& pass);
  void ReadTopology(DevicePass& pass, std::span<const DcmiDevice> all);

  SlotOwner& owner_;
  SeriesId info_ = kNoSeries;
  SeriesSlot health_{MetricByName("atlas_npu_health_status")};
  std::array<SeriesSlot, kDcmiSeverities> fault_counts_;
  std::array<std::array<SeriesSlot, kDcmiFaultChanges>, kDcmiSeverities> fault_events_;
  SeriesSlot process_count_{MetricByName("atlas_npu_processes")};
  ComingAndGoing<std::pair<uint32_t, size_t>> faults_;  // code, severity
  const ProcessNames* const names_or_null_;
  // By pid and name: a process that gets its name later has another series from then on.
  ComingAndGoing<std::array<std::string, 3>> processes_;
  std::vector<Neighbour> neighbours_;                   // by device index; read once
};

}  // namespace profd
