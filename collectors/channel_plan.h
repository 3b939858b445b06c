// What the probe and plan functions of all channel collectors share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "collectors/collector.h"
#include "driver/chips.h"

namespace profd {

// driver-abi 4.1: HBM, LLC, DDR and memory channels are never read faster than this.
inline constexpr uint32_t kMinMemoryPeriodMs = 10;

bool HasChannel(const DeviceInfo& device, uint32_t channel);
bool HasFeature(const DeviceInfo& device, ChipFeature feature);

// Ok if the driver lists one of `channels` for this device; else kUnimplemented: "no channel 133".
Status NeedAnyChannel(const DeviceInfo& device, std::initializer_list<uint32_t> channels);

// The driver's period for a rate: 1000 / hz ms, rounded down, at least `min_ms`, at most the 1000
// the driver accepts (above, it silently takes 1 ms).
uint32_t PeriodMs(double hz, uint32_t min_ms = 1);

// Of sample.json: the names of the streams whose bandwidth is in a record's `slots`. One sample.json serves all devices: the
// streams are the node's configuration, not a card's.
std::string QosEvents(std::span<const DeviceInfo* const> devices, size_t slots);

// A peripheral channel read every `period_ms`, without user data.
ChannelRequest PeriodicRequest(uint32_t channel, uint32_t period_ms);

// Probe and plan of a collector with one channel; the plan is for channels without user data.
template <uint32_t kChannel>
Status ProbeChannel(const Host&, const DeviceInfo& device) {
  return NeedAnyChannel(device, {kChannel});
}
template <uint32_t kChannel>
std::vector<ChannelRequest> PlanPeriodic(const DeviceInfo& device, const ChannelOptions& options) {
  if (!HasChannel(device, kChannel)) return {};
  return {PeriodicRequest(kChannel, PeriodMs(options.hz))};
}

// The bytes of a driver struct.
template <class Struct>
std::vector<std::byte> UserData(const Struct& config) {
  std::vector<std::byte> bytes(sizeof config);
  StoreUnchecked(std::span<std::byte>(bytes), 0, config);
  return bytes;
}

}  // namespace profd
