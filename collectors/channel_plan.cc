#include "collectors/channel_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "driver/abi/hal_abi.h"

namespace profd {

bool HasChannel(const DeviceInfo& device, uint32_t channel) {
  return std::ranges::find(device.channels, channel) != device.channels.end();
}

bool HasFeature(const DeviceInfo& device, ChipFeature feature) {
  const ChipFacts* chip = FindChip(static_cast<uint32_t>(device.chip_id));
  return chip != nullptr && chip->Has(feature);
}

Status NeedAnyChannel(const DeviceInfo& device, std::initializer_list<uint32_t> channels) {
  for (uint32_t channel : channels) {
    if (HasChannel(device, channel)) return Status::Ok();
  }
  return Unimplemented(fmt::format("no channel {}", fmt::join(channels, ", ")));
}

uint32_t PeriodMs(double hz, uint32_t min_ms) {
  constexpr uint32_t kMaxMs = 1000;
  if (!(hz > 1)) return kMaxMs;
  double ms = std::min(1000.0 / hz, static_cast<double>(kMaxMs));
  return std::max(static_cast<uint32_t>(ms), min_ms);
}

std::string QosEvents(std::span<const DeviceInfo* const> devices, size_t slots) {
  for (const DeviceInfo* device : devices) {
    const size_t count = std::min(device->mpam_names.size(), slots);
    if (count > 0) return fmt::format("{}", fmt::join(std::span(device->mpam_names).first(count), ","));
  }
  return {};
}

ChannelRequest PeriodicRequest(uint32_t channel, uint32_t period_ms) {
  return {.channel = channel, .sample_period_ms = period_ms, .effective_hz = 1000.0 / period_ms};
}

}  // namespace profd
