// Fault events of one NPU, counted from its lists of current faults: the one with severities, and the
// one of codes alone, which may have more and is all that some drivers have.
//
// The library has a subscription too (row 46 of dcmi-and-metrics 1.3), but it is nothing for a daemon:
// its callback carries no context, it can neither be ended nor repeated in a process, it holds one of 64
// places that are shared in the node, it forbids row 45 beside it, and headers disagree about its arguments.
// What this costs: a fault that begins and ends between two polls is not seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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
  // The codes, which the next update compares. They must be older than its list, so that a fault that
  // began in between has its severity.
  void SetCodes(std::span<const unsigned> codes) { codes_.emplace(codes.begin(), codes.end()); }
  // `list` is complete. The faults of the first list are not events: their begin was not seen.
  void Update(std::span<const abi::DcmiEvent> list);
  // The list could not be read.
  void UpdateWithoutList();
  const DcmiFaultEventCounts& counts() const { return counts_; }

 private:
  struct Fault {
    uint32_t code;
    uint32_t place;  // node and sub-node
    uint8_t severity;
    bool one_off;
    bool operator==(const Fault&) const = default;
  };

  void AddCodes(std::vector<Fault>* now) const;
  void Compare(std::vector<Fault> now);

  bool list_known_ = false;
  bool codes_known_ = false;
  std::optional<std::vector<uint32_t>> codes_;  // not compared yet
  std::vector<Fault> current_;                  // of the last lists
  DcmiFaultEventCounts counts_{};
};

}  // namespace profd
