// A session that begins in the past, with what the flight recorder holds of it.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/session/session.h"

namespace profd {

// Moves the session's start back as far as it was requested and the recorder reaches.
Status Session::BeginInHistory() {
  if (!spec_.schedule().has_since_ms()) return {};
  if (deps_.history_or_null == nullptr) {
    return {StatusCode::kFailedPrecondition,
            Problem{.kind = Problem::Kind::kFailed,
                    .field = "since_ms",
                    .value = std::to_string(spec_.schedule().since_ms()),
                    .text = "the flight recorder is off here (recorder.enabled)"}};
  }
  RecorderHistory& past = *deps_.history_or_null;
  int64_t now = start_raw_ns_;
  // Not before the clock began.
  const auto since_ms = std::min(spec_.schedule().since_ms(), static_cast<uint64_t>(now / kNsPerMs));
  int64_t wanted = now - static_cast<int64_t>(since_ms) * kNsPerMs;
  int64_t from = std::min(now, std::max(wanted, past.Reach()));
  if (from > wanted) {
    warnings_.push_back(fmt::format(
        "the flight recorder reaches back {:.3f} s only, {:.3f} s were requested", static_cast<double>(now - from) / 1e9,
        static_cast<double>(spec_.schedule().since_ms()) / 1e3));
  }
  start_raw_ns_ = from - kPastLeadNs;
  ordered_wall_ns_ = start_wall_ns_;
  start_wall_ns_ -= now - start_raw_ns_;
  past.ClockAt(kHostDevice, start_raw_ns_, &host_clock_);
  host_clock_.host_ns = start_raw_ns_;
  std::string without;
  for (const PlannedCollector& planned : plan_.collectors) {
    if (!planned.named || past.Records(planned.index)) continue;
    without += fmt::format("{}{}", without.empty() ? "" : ", ",
                           Collectors()[planned.index].spec->name);
  }
  const SessionCollect& collect = processes_->collect();
  if (!collect.empty() && (collect.leaves_files() || !past.RecordsActivity())) {
    without += fmt::format("{}operators", without.empty() ? "" : ", ");
  }
  if (!without.empty()) {
    warnings_.push_back("not in the flight recorder, so without a past: " + without);
  }
  return {};
}

// The devices' clocks as they were at the start, in place of those read just now.
void Session::TakePastClocks() {
  if (!spec_.schedule().has_since_ms()) return;
  for (auto& [device, pair] : clocks_) {
    ClockPair then;
    // Without it the pair read just now has to do; it is as right, but for the clocks' drift.
    if (deps_.history_or_null->ClockAt(device, start_raw_ns_, &then)) pair = then;
  }
}

}  // namespace profd
