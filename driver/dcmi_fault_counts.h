// Fault events of one NPU, counted from its lists of current faults.
//
// The library has a subscription too (row 46 of dcmi-and-metrics 1.3), but it is nothing for a daemon:
// its callback carries no context, it can neither be ended nor repeated in a process, it holds one of 64
// places that are shared in the node, it forbids row 45 beside it, and headers disagree about its arguments.
// What this costs: a fault that begins and ends between two polls is not seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/abi/dcmi_structs.h"

namespace profd {

inline constexpr size_t kDcmiSeverities = 5;  // warning, minor, major, critical, anything else
enum class DcmiFaultChange : uint8_t { kRecovered, kRaised, kOneOff };
inline constexpr size_t kDcmiFaultChanges = 3;

// [severity][change]
using DcmiFaultEventCounts = std::array<std::array<uint64_t, kDcmiFaultChanges>, kDcmiSeverities>;

class DcmiFaultCounter {
 public:
  // `list` is complete. The faults of the first list are not events: their begin was not seen.
  void Update(std::span<const abi::DcmiEvent> list);
  const DcmiFaultEventCounts& counts() const { return counts_; }

 private:
  struct Fault {
    uint32_t code;
    uint32_t place;  // node and sub-node
    uint8_t severity;
    bool one_off;
    bool operator==(const Fault&) const = default;
  };

  bool known_ = false;
  std::vector<Fault> current_;  // of the last list
  DcmiFaultEventCounts counts_{};
};

}  // namespace profd
