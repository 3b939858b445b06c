// How far a node's wall clock is ahead of ours, measured over the RPC.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"
#include "client/api.h"

namespace profd::client {

struct ClockOffset {
  // Node minus us, ns: the node's clock shows our time plus this.
  int64_t offset_ns = 0;
  // The truth is within offset_ns +- this: half of the best round trip.
  int64_t error_ns = 0;
};

// One round trip: our wall clock when it began, the node's in between, how long it took.
struct RoundTrip {
  int64_t began_wall_ns = 0;
  int64_t node_wall_ns = 0;
  // On a clock that is never set.
  int64_t took_ns = 0;
};

// The node read its clock at some instant of the trip; the middle is off by at most half of it.
ClockOffset OffsetOf(const RoundTrip& trip);

inline constexpr int kOffsetRounds = 8;

// Best of `rounds`: the shortest trip decides. Ends early once `budget_ns` have passed and one trip
// was made (a far node need not be asked eight times). The first failing call is the error.
Result<ClockOffset> MeasureOffset(ProfdApi& api, const Clock& clock, int rounds = kOffsetRounds,
                                  int64_t budget_ns = 2 * kNsPerSecond);

}  // namespace profd::client
