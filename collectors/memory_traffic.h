// What HBM and DDR share: accesses by unit (stack, controller) and direction since the last record.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/metric_spec.h"

namespace profd {

// Reads and writes of all masters (driver-abi 3.3).
ChannelRequest MemoryTrafficRequest(uint32_t channel, double hz);

template <uint32_t kChannel>
std::vector<ChannelRequest> PlanMemoryTraffic(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, kChannel)) return {};
  return {MemoryTrafficRequest(kChannel, options.hz)};
}

// Bandwidth and totals of a device's memory.
class MemoryTraffic {
 public:
  // Both metrics have the labels unit and direction.
  MemoryTraffic(int device, MetricId bandwidth, MetricId total, SeriesRegistry& registry)
      : device_(device), bandwidth_(bandwidth), total_(total), series_(registry) {}

  // `direction`: 0 read, 1 write. False: the record cannot be used.
  bool Add(uint32_t unit, uint32_t direction, const Timestamp& timestamp, double bytes, SampleBatch& out);
  void Reset();

 private:
  static constexpr size_t kDirections = 2;
  struct Unit {
    std::array<SeriesId, kDirections> bandwidth;
    std::array<SeriesId, kDirections> total;
    // Continues where an earlier run of the channel ended. Multiples of an access stay exact
    // beyond a double's 53 bits.
    std::array<double, kDirections> bytes;
    std::array<IntervalTimer, kDirections> timers;
  };
  Unit MakeUnit(uint32_t id);

  int device_;
  MetricId bandwidth_;
  MetricId total_;
  SeriesSet series_;
  IdTable<Unit> units_;
};

}  // namespace profd
