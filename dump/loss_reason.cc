#include "dump/loss_reason.h"

#include <algorithm>
#include <array>

namespace profd {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kLossReasons> kNames = {
    "unknown",     "queue_full",  "no_buffer", "ring_full",       "write_error",    "storage_limit",
    "file_limit",  "aged",        "late",      "driver",          "channel_restart", "channel_silent",
    "channel_released", "not_fetched", "not_recorded", "recorder_evicted", "daemon_ended",
    "vendor_buffer", "process_ended", "not_noted", "over_budget", "profiler_busy"};
static_assert(!kNames.back().empty());

}  // namespace

std::string_view ToString(LossReason reason) { return kNames[static_cast<size_t>(reason)]; }

LossReason LossReasonOf(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  return found == kNames.end() ? LossReason::kUnknown : static_cast<LossReason>(found - kNames.begin());
}

}  // namespace profd
