#include "sim/chip.h"

#include <algorithm>
#include <array>

#include "driver/abi/hal_abi.h"

namespace profd::sim {
namespace {

constexpr auto k910Channels =
    std::to_array<ChannelRange>({{1, 1}, {3, 4}, {6, 10}, {43, 47}, {129, 142}});
constexpr auto k910BChannels = std::to_array<ChannelRange>(
    {{1, 1}, {3, 4}, {6, 6}, {8, 42}, {44, 44}, {47, 47}, {50, 50}, {52, 84}, {86, 98}, {129, 142}});

// Only channels whose records are the same on every chip.
constexpr auto k950Channels =
    std::to_array<ChannelRange>({{1, 1}, {3, 4}, {6, 6}, {8, 8}, {129, 131}, {135, 142}});

constexpr ChipSpec k910B = {
    .key = "910B",
    .chip_id = abi::kChip910B,
    .chip_name = "910B2",
    .npu_name = "Ascend910B2",
    .product = "Atlas 800T A2 (simulated)",
    .board_id = 0x30,
    .devices_per_card = 1,
    .counter_hz = 50'000'000,
    .aic_cores = 24,
    .aiv_cores = 48,
    .aicpu_cores = 7,
    .aic_mhz = 1800,
    .aic_dip_mhz = 1650,
    .hbm_mhz = 1600,
    .hbm_mb = 65536,
    .hbm_bytes_per_s = 1.6e12,
    .hccs_links = 7,
    .hccs_link_bytes_per_s = 28e9,
    .roce_bytes_per_s = 25e9,
    .roce_mbit_per_s = 200'000,
    .pcie_bytes_per_s = 63e9,
    .idle_watts = 92,
    .max_watts = 400,
    .llc_ids = 2,
    .channels = k910BChannels,
};

// Two of its dies on a card.
constexpr ChipSpec kA3 = [] {
  ChipSpec chip = k910B;
  chip.key = "A3";
  chip.chip_name = "Ascend910";
  chip.npu_name = "Ascend910_9392";
  chip.product = "Atlas 800T A3 (simulated)";
  chip.board_id = 0xb0;
  chip.devices_per_card = 2;
  chip.sio_bytes_per_s = 270e9;
  return chip;
}();

constexpr auto kChips = std::to_array<ChipSpec>({
    {.key = "910",
     .chip_id = abi::kChip910,
     .chip_name = "910A",
     .npu_name = "Ascend910A",
     .product = "Atlas 800 training (simulated)",
     .board_id = 0x20 << 4,
     .devices_per_card = 1,
     .counter_hz = 100'000'000,
     .aic_cores = 32,
     .aicpu_cores = 14,
     .aic_mhz = 1000,
     .aic_dip_mhz = 900,
     .hbm_mhz = 1200,
     .hbm_mb = 32768,
     .hbm_bytes_per_s = 1.2e12,
     .ddr_mb = 15000,
     .ddr_bytes_per_s = 40e9,
     .hccs_links = 3,
     .hccs_link_bytes_per_s = 15e9,
     .roce_bytes_per_s = 12.5e9,
     .roce_mbit_per_s = 100'000,
     .pcie_bytes_per_s = 31.5e9,
     .idle_watts = 70,
     .max_watts = 310,
     .llc_ids = 4,
     .channels = k910Channels},
    k910B,
    kA3,
    {.key = "950",
     .chip_id = abi::kChip950,
     .chip_name = "Ascend950DT",
     .npu_name = "Ascend950DT",
     .product = "Atlas 850 (simulated)",
     .board_id = 0x61,
     .devices_per_card = 1,
     .counter_hz = 1'000'000'000,
     .aic_cores = 32,
     .aiv_cores = 64,
     .aicpu_cores = 7,
     .aic_mhz = 1650,
     .aic_dip_mhz = 1500,
     .hbm_mhz = 1600,
     .hbm_mb = 131072,
     .hbm_bytes_per_s = 4e12,
     .hccs_links = 7,  // what the Unified Bus ports carry
     .hccs_link_bytes_per_s = 28e9,
     .roce_bytes_per_s = 25e9,
     .roce_mbit_per_s = 200'000,
     .pcie_bytes_per_s = 63e9,
     .sio_bytes_per_s = 270e9,
     .idle_watts = 120,
     .max_watts = 600,
     .llc_ids = 2,
     .channels = k950Channels},
});

}  // namespace

const ChipSpec* FindChip(std::string_view key) {
  for (const ChipSpec& chip : kChips) {
    if (chip.key == key) return &chip;
  }
  return nullptr;
}

bool ChipHasChannel(const ChipSpec& chip, unsigned channel) {
  return std::ranges::any_of(chip.channels, [channel](const ChannelRange& range) {
    return channel >= range.first && channel <= range.last;
  });
}

}  // namespace profd::sim
