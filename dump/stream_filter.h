// A session's view of one driver channel. The channel runs once, at the fastest rate requested
// for, perhaps since long before the session began; the session gets what it would have got with
// the channel to itself: its own rate (thinning) and timestamps that count from its own start
// (rebasing). When neither is needed the bytes pass through untouched.
//
// Thinning follows abi::ChannelFormat. With t0 the first timestamp seen, a session of period P keeps of
// every series the record nearest to each of t0, t0 + P, t0 + 2P, ...; P need not be a multiple of
// the channel's period. Counts per interval (Thinning::kSum, and SIO in channel 52) are added up
// over the records left out, so that their total is conserved; a sum still open at the end is what
// the last, incomplete interval would have been, and is not written.
//
// One thread. Allocates only while blocks still grow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "driver/abi/channels.h"

namespace profd {

// How channel 52 treats one of its record types (they run at different rates, driver-abi 3.4).
struct SocRate {
  int64_t channel_period_ns = 0;  // 0 = unknown: keep every record
  int64_t session_period_ns = 0;
  bool wanted = true;  // false: the session did not ask for this type
};

struct StreamFilterOptions {
  const abi::ChannelFormat* format = nullptr;
  // Equal, or either 0, means no thinning. Ignored for channel 52, which has `soc`.
  int64_t channel_period_ns = 0;
  int64_t session_period_ns = 0;
  // Added to timestamps in microseconds since the channel's start: (channel start - session start) /
  // 1000 on the host's clock, so usually negative. Ignored for other kinds of timestamps.
  int64_t rebase_us = 0;
  // How long the channel had been running when the filter was made: gives how often a 32-bit timestamp
  // has already wrapped (every 71.6 minutes).
  int64_t channel_age_us = 0;
  // To compare timestamps that are counter cycles.
  double device_counter_hz = 0;
  double host_counter_hz = 0;  // 0: kHostCounter timestamps are ns already
  // abi::ChipId; 950-class chips lay out SIO records of channel 52 differently.
  uint32_t chip_id = 0;
  // Channel 52 only: by abi::SocProfileType - kFirstSocType.
  static constexpr uint8_t kFirstSocType = 24;
  std::array<SocRate, 6> soc = {};
  SocRate& Soc(abi::SocProfileType type) { return soc[static_cast<size_t>(type) - kFirstSocType]; }
};

class StreamFilter {
 public:
  explicit StreamFilter(const StreamFilterOptions& options);

  struct Output {
    std::span<const std::byte> bytes;  // valid until the next call
    uint64_t records = 0;
  };
  // `block_untrusted` is complete records or lines, `records` of them as the pump counted (header
  // lines are none).
  Output Filter(std::span<const std::byte> block_untrusted, uint64_t records);

  bool verbatim() const { return !thins_ && !rebases_; }
  bool thins() const { return thins_; }
  bool rebases() const { return rebases_; }

  struct Counters {
    uint64_t records_in = 0;
    uint64_t records_out = 0;
    uint64_t thinned = 0;  // left out because the session is slower, or did not ask for the type
    uint64_t before_start = 0;  // left out because they are older than the session
    uint64_t malformed = 0;     // left out because their timestamp or type made no sense
    uint64_t malformed_bytes = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  static constexpr size_t kMaxSeries = 256;
  static constexpr size_t kSumWords = 8;

  // One series of records. Series beyond kMaxSeries (only garbage has so many) are all kept.
  struct Series {
    uint64_t key = 0;
    int64_t due_ns = 0;
    int64_t kept_ns = 0;
    bool started = false;
    bool kept = false;
    std::array<uint64_t, kSumWords> sum = {};
  };
  // Where a slower view samples: origin, origin + session period, ...
  struct Grid {
    int64_t channel_period_ns = 0;
    int64_t session_period_ns = 0;
    int64_t origin_ns = 0;
    bool anchored = false;
    bool thins() const { return channel_period_ns > 0 && session_period_ns > channel_period_ns; }
  };
  // Counts inside a record that are per interval.
  struct Counts {
    std::array<uint16_t, kSumWords> offset = {};
    size_t size = 0;
    uint8_t width = 4;
  };

  Output FilterBinary(std::span<const std::byte> block);
  Output FilterText(std::span<const std::byte> block);
  // True if `record` (a copy, about to be written) stays; rebases its timestamp, settles its counts.
  bool TakeRecord(std::span<std::byte> record);
  bool TakeSocRecord(std::span<std::byte> record);
  bool Decide(Grid& grid, uint64_t key, int64_t timestamp_ns, const Counts& counts,
              std::span<std::byte> record);
  bool RebaseMicros(std::span<std::byte> record, int64_t* timestamp_ns);
  void Malformed(size_t bytes);
  Series* FindSeries(uint64_t key);
  static bool IsDue(Grid& grid, Series& series, int64_t timestamp_ns);
  int64_t CyclesToNs(uint64_t cycles, double hz);

  StreamFilterOptions options_;
  bool thins_ = false;
  bool rebases_ = false;
  Grid grid_;
  std::array<Grid, 6> soc_grids_;
  std::vector<Series> series_;
  std::vector<std::byte> out_;
  bool has_first_cycles_ = false;
  uint64_t first_cycles_ = 0;
  int64_t last_micros_ = 0;  // the last 32-bit timestamp with its wraps counted
  Counters counters_;
};

}  // namespace profd
