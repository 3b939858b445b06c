// What differs from chip to chip (driver-abi 2.3). THE table; nothing else compares chip ids.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "driver/abi/channels.h"
#include "driver/abi/hal_abi.h"

namespace profd {

enum ChipFeature : uint32_t {
  kChipHasLpInfo = 1u << 0,      // channel 132 carries voltages too (AICORE_LPM_INFO)
  kChipMicroseconds = 1u << 1,   // periods of channel 52 are in microseconds ("US")
  kChipStarsQos = 1u << 2,       // channel 52 takes the longer configuration with QoS
  kChipLowPower = 1u << 3,       // channel 52 samples low power
  kChipDvppEx = 1u << 4,         // one channel per DVPP engine (135..141)
  kChipNoVectorCores = 1u << 6,  // VECTOR_CORE is not asked (answers make no sense)
  kChipHccnTool = 1u << 7,       // hccn_tool knows its network ports (dcmi-and-metrics 1.8)
  kChipHccnByPort = 1u << 8,     // ... several of them, by die and number
  kChipFixedCounter = 1u << 9,   // its counter runs at counter_mhz, whatever the driver reports (driver-abi 5.5)
};

struct ChipFacts {
  uint32_t id;
  std::string_view name;
  double counter_mhz;  // system counter, where the driver does not report it
  int aicore_mhz;      // rated AI Core clock, where the driver does not report it
  uint32_t features;  // ChipFeature bits
  constexpr bool Has(ChipFeature feature) const { return (features & feature) != 0; }
};

inline constexpr uint32_t kDavidFeatures =
    kChipMicroseconds | kChipStarsQos | kChipLowPower | kChipDvppEx | kChipHccnTool | kChipHccnByPort | kChipFixedCounter;

inline constexpr auto kChips = std::to_array<ChipFacts>({
    {abi::kChip310, "Ascend310", 19.2, 680, kChipNoVectorCores},
    {abi::kChip910, "Ascend910", 100, 800, kChipNoVectorCores | kChipHccnTool},
    {abi::kChipMdc, "MDC", 38.4, 960, kChipDvppEx},
    {abi::kChip310P, "Ascend310P", 38.4, 1150, kChipDvppEx | kChipNoVectorCores},
    {abi::kChip910B, "Ascend910B", 50, 800, kChipHasLpInfo | kChipDvppEx | kChipHccnTool},
    {abi::kChip310B, "Ascend310B", 48, 1250, kChipDvppEx},
    {abi::kChipTinyV1, "Tiny", 48, 1250, 0},
    {abi::kChipNanoV1, "Nano", 0, 0, 0},
    {abi::kChipMdcMiniV3, "MDC Mini V3", 48, 1250, kChipDvppEx},
    {abi::kChipMdcLite, "MDC Lite", 38.4, 1250, kChipDvppEx},
    {abi::kChip950, "Ascend950", 1000, 800, kDavidFeatures},
    {abi::kChip950V121, "Ascend950 V121", 1000, 1650, kDavidFeatures},
    {abi::kChipMdcV2, "MDC V2", 38.4, 1400, kChipMicroseconds | kChipDvppEx},
    {abi::kChipMdcLiteV2, "MDC Lite V2", 38.4, 1500, kChipMicroseconds | kChipDvppEx},
    {abi::kChip5162A, "5162A", 20, 20, 0},
});

// Null for an unknown id.
constexpr const ChipFacts* FindChip(uint32_t id) {
  for (const ChipFacts& chip : kChips) {
    if (chip.id == id) return &chip;
  }
  return nullptr;
}

// The base name of a channel's dump files: that of the LP channel differs where it carries voltages too.
constexpr std::string_view FileOf(const abi::ChannelFormat& format, uint32_t chip_id) {
  const ChipFacts* chip = FindChip(chip_id);
  const bool voltages = format.id == abi::kChannelLp && chip != nullptr && chip->Has(kChipHasLpInfo);
  return voltages ? abi::kLpInfoFile : format.file;
}

// Whether hccn_tool knows ports of such a board; its id as DCMI has it ("0x28"), empty = unknown. Of the 910B, 300I A2
// cards have none (dcmi-and-metrics 1.2, 2.1); on other chips these numbers are other boards.
constexpr bool HasHccnPorts(const ChipFacts& chip, std::string_view board_id) {
  return chip.Has(kChipHccnTool) && !(chip.id == abi::kChip910B && (board_id == "0x28" || board_id == "0x29"));
}

}  // namespace profd
