// What the simulated chips can do: the limits every curve stays below. Values are those of the
// public data sheets, rounded; where a spec section names one (counter frequency, LLC ids, channel
// list), it is used.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace profd::sim {

inline constexpr unsigned kFirstHccsLink = 1;  // dcmi-and-metrics 1.7: index 0 is never wired

struct ChannelRange {
  uint16_t first;
  uint16_t last;
};

struct ChipSpec {
  std::string_view key;        // as in a scenario file
  uint32_t chip_id;            // driver-abi 2.3
  std::string_view chip_name;  // dcmi chip_name
  std::string_view npu_name;
  std::string_view product;
  uint32_t board_id;
  int devices_per_card;
  int64_t counter_hz;
  unsigned aic_cores;
  unsigned aiv_cores = 0;  // 0: none of their own
  unsigned aicpu_cores;
  unsigned aic_mhz;      // nominal
  unsigned aic_dip_mhz;  // power-limited steps
  unsigned hbm_mhz;
  uint64_t hbm_mb;
  double hbm_bytes_per_s;
  uint64_t ddr_mb = 0;  // 0: no DDR
  double ddr_bytes_per_s = 0;
  unsigned hccs_links;           // wired: kFirstHccsLink .. kFirstHccsLink + hccs_links - 1
  double hccs_link_bytes_per_s;  // one direction of one link
  double roce_bytes_per_s;
  unsigned roce_mbit_per_s;
  double pcie_bytes_per_s;  // one direction
  double sio_bytes_per_s = 0;  // one direction; 0: single die
  double idle_watts;
  double max_watts;
  unsigned llc_ids;
  std::span<const ChannelRange> channels;  // driver-abi 2.4
};

// nullptr for an unknown key.
const ChipSpec* FindChip(std::string_view key);

bool ChipHasChannel(const ChipSpec& chip, unsigned channel);

}  // namespace profd::sim
