// Finds where records of a driver channel are missing, by their timestamps: the driver drops silently when
// its ring is full, without a report. Used by the daemon while it writes and by the verifier
// when it reads, so that both see the same gaps.
//
// A series (one HBM stack and direction, one port, one engine, one die, ...) has a gap where two neighbours are
// 1.5 periods or more apart and the next record does not make up for it (a late record followed by a
// punctual one is jitter). Event-driven channels and series whose timestamps follow no period have none.
//
// Samples of a polled collector are never early and may stay late, so their spacing is not enough: they
// are put on the collector's grid, and what is missing is a point of it without a sample.
//
// One thread. Bounded: series beyond kMaxSeries (only garbage has so many) are not watched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "driver/abi/channels.h"

namespace profd {

class GapDetector {
 public:
  static constexpr size_t kMaxSeries = 1024;

  struct Options {
    const abi::ChannelFormat* format = nullptr;
    // What a series without a regular step of its own should have; 0 = nothing is known. Where the
    // first records of a series do have one, that is its period: the driver knows best.
    int64_t period_ns = 0;
    // Not 0: the series were thinned from ones of this period, to the records nearest to the points of a grid of
    // `period_ns`, which then is their period. Neighbours may be further apart than that by as much.
    int64_t source_period_ns = 0;
    double device_counter_hz = 0;
    double host_counter_hz = 0;  // 0: kHostCounter timestamps are ns
    uint32_t chip_id = 0;
    uint64_t origin_count = 0;  // counters are given in ns since this sample
    bool polled = false;        // samples of a collector of ours, every `period_ns`
    // Where other runs of the channel begin, in order, on the timestamps' clock in ns. Each run has a rate of its own;
    // `period_ns` is that of the last.
    std::vector<int64_t> runs_ns = {};
  };
  // Between two timestamps of one series, on the timestamps' own clock in ns.
  struct Gap {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    uint64_t missing = 0;
  };
  using OnGap = std::function<void(const Gap&)>;

  GapDetector(const Options& options, OnGap on_gap);

  // Complete records or lines.
  void Feed(std::span<const std::byte> bytes_untrusted);
  // A record of a file without a ChannelFormat: its series and its timestamp.
  void FeedTimestamp(uint64_t series, int64_t timestamp_ns) {
    ++records_;
    Take(series, timestamp_ns);
  }
  // The next records need not follow the earlier ones: a known loss, a restart of the channel.
  void Resync();
  // The next records have another rate.
  void Restart(int64_t period_ns);
  // Decides what waited for one more record.
  void Finish();

  uint64_t records() const { return records_; }
  uint64_t missing() const { return missing_; }
  uint64_t backwards() const { return backwards_; }  // timestamps before their predecessor's
  uint64_t unreadable() const { return unreadable_; }
  // Of the first and last record that has a timestamp; only when records() > unreadable().
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  static constexpr size_t kLearn = 16;
  struct Series {
    uint64_t key = 0;
    Series* next = nullptr;  // what followed it the last time
    int64_t last_ns = 0;
    bool has_last = false;
    int64_t period_ns = 0;   // 0: not known yet, -1: has none
    bool on_grid = false;    // polled, and its period is the one that was given
    int64_t point_ns = -1;   // the grid point the last sample belongs to; -1: none yet
    bool in_doubt = false;   // `pending` is a gap only if its last sample was a little early
    Gap pending = {};       // missing 0 = none
    size_t learned = 0;
    std::array<Gap, kLearn> steps = {};  // while learning
  };

  void FeedBinary(std::span<const std::byte> bytes);
  void FeedText(std::span<const std::byte> bytes);
  void Take(uint64_t key, int64_t timestamp_ns);
  void BeginRun();
  bool in_last_run() const { return run_ == options_.runs_ns.size(); }
  Series* SeriesOf(uint64_t key);  // null: there are too many
  void Step(Series& series, const Gap& step);
  void Judge(Series& series, const Gap& step);
  void JudgeOnGrid(Series& series, const Gap& step);
  void Learn(Series& series);
  void Report(const Gap& gap);
  uint64_t KeyOf(const std::byte* record) const;
  int64_t TimestampOf(const std::byte* record);

  Options options_;
  OnGap on_gap_;
  size_t run_ = 0;  // of options_.runs_ns, the next to begin
  int64_t last_micros_ = 0;  // of 32-bit timestamps, with their wraps
  bool has_micros_ = false;
  std::unordered_map<uint64_t, Series> series_;
  Series* latest_ = nullptr;
  uint64_t records_ = 0;
  uint64_t missing_ = 0;
  uint64_t backwards_ = 0;
  uint64_t unreadable_ = 0;
  bool has_first_ = false;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace profd
