#include "collectors/memory_traffic.h"

#include <string>
#include <string_view>

#include "driver/abi/hal_abi.h"

namespace profd {

ChannelRequest MemoryTrafficRequest(uint32_t channel, double hz) {
  ChannelRequest request = PeriodicRequest(channel, PeriodMs(hz, kMinMemoryPeriodMs));
  request.user_data =
      UserData(abi::MemEventCfg{.period = request.sample_period_ms,
                                .master_id = abi::kAllMasters,
                                .event_num = 2,
                                .event = {abi::kMemEventRead, abi::kMemEventWrite}});
  return request;
}

bool MemoryTraffic::Add(uint32_t unit, uint32_t direction, const Timestamp& timestamp, double bytes, SampleBatch& out) {
  Unit* of = units_.FindOrAdd(unit, [this, unit] { return MakeUnit(unit); });
  if (of == nullptr) return false;
  double seconds = 0;
  const IntervalTimer::Step step = of->timers[direction].Next(timestamp, &seconds);
  if (step != IntervalTimer::Step::kForward) return step == IntervalTimer::Step::kFirst;
  out.Emit(of->bandwidth[direction], timestamp.host_ns, bytes / seconds);
  if (bytes / seconds < kMaxPlausibleBytesPerSecond) of->bytes[direction] += bytes;
  out.Emit(of->total[direction], timestamp.host_ns, of->bytes[direction]);
  return true;
}

void MemoryTraffic::Reset() {
  for (Unit& unit : units_.states()) {
    for (IntervalTimer& timer : unit.timers) timer.Reset();
  }
}

MemoryTraffic::Unit MemoryTraffic::MakeUnit(uint32_t id) {
  constexpr std::array<std::string_view, kDirections> kNames = {"read", "write"};
  const std::string label = std::to_string(id);
  Unit unit{};
  for (size_t i = 0; i < kDirections; ++i) {
    unit.bandwidth[i] = series_.Add(bandwidth_, device_, {label, kNames[i]});
    unit.total[i] = series_.Add(total_, device_, {label, kNames[i]});
    unit.bytes[i] = series_.LastTotal(unit.total[i]);
  }
  return unit;
}

}  // namespace profd
