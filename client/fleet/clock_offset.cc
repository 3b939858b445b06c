#include "client/fleet/clock_offset.h"

#include <limits>

namespace profd::client {

ClockOffset OffsetOf(const RoundTrip& trip) {
  // Rounded up: the bound stays one.
  int64_t half = trip.took_ns / 2 + trip.took_ns % 2;
  return {trip.node_wall_ns - (trip.began_wall_ns + half), half};
}

Result<ClockOffset> MeasureOffset(ProfdApi& api, const Clock& clock, int rounds,
                                  int64_t budget_ns) {
  const int64_t begin_ns = clock.SteadyNs();
  ClockOffset best{0, std::numeric_limits<int64_t>::max()};
  for (int round = 0; round < rounds; ++round) {
    RoundTrip trip;
    // In this order, so that the time between the two reads widens the bound.
    int64_t began_ns = clock.SteadyNs();
    trip.began_wall_ns = clock.WallNs();
    auto time = api.GetTime();
    int64_t ended_ns = clock.SteadyNs();
    if (!time.ok()) return time.status();
    trip.node_wall_ns = time->wall_ns();
    trip.took_ns = ended_ns - began_ns;
    // A clock before 1970 or far beyond would overflow what is computed with it.
    if (trip.node_wall_ns <= 0 || trip.node_wall_ns > std::numeric_limits<int64_t>::max() / 2) {
      return Internal("the node's clock shows no sane time");
    }
    ClockOffset offset = OffsetOf(trip);
    if (offset.error_ns < best.error_ns) best = offset;
    if (ended_ns - begin_ns > budget_ns) break;
  }
  return best;
}

}  // namespace profd::client
