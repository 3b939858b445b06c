// The Unified Bus ports of one NPU (A5): links and counters.
#pragma once

#include <tuple>

#include "collectors/metric_table.h"
#include "collectors/npu_state/device_pass.h"

namespace profd {

class UbReadings {
 public:
  explicit UbReadings(SlotOwner& owner) : links_(owner), counters_(owner) {}
  void Slow(DevicePass& pass);

 private:
  void ReadLinks(DevicePass& pass);
  void ReadCounters(DevicePass& pass);
  void PutCounters(DevicePass& pass, const DcmiUbPort& port, const abi::DcmiPortPktStats& stats);

  ComingAndGoing<int> links_;                              // port
  ComingAndGoing<std::tuple<int, int, size_t>> counters_;  // udie, port, counter
};

}  // namespace profd
