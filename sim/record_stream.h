// How a started channel makes its records: one or more tickers on absolute grids of the device's
// clock, filled lazily up to "now". What a tick contains depends only on the tick's time, never on
// when it was requested.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/node.h"
#include "sim/record_ring.h"

namespace profd::sim {

struct Tick {
  int64_t index;        // 1, 2, ...
  int64_t start_ns;     // device clock, when the channel was started
  int64_t now_ns;       // device clock, start + index * period
  int64_t scenario_ns;  // the same instant in scenario time
  int64_t before_ns;    // scenario time of the tick before
};

struct Emitter {
  // Every tick yields at least this much, or less rarely enough not to matter; limits how far back
  // is generated.
  size_t bytes_per_tick;
  std::function<void(const Tick& tick, std::string* out)> emit;
  // Event-driven channels: no tick before the one returned has anything to say.
  std::function<int64_t(int64_t index, int64_t start_ns)> next_tick = [](int64_t index, int64_t) { return index; };
};

// What a stream has put, or would have put, into its ring.
struct Produced {
  uint64_t records = 0;  // complete ones; what was never generated is not among them
  uint64_t bytes = 0;
};

class RecordStream {
 public:
  // `record_size` 0 for text.
  RecordStream(const Node& node, unsigned device, unsigned channel, size_t record_size);

  void AddTicker(int64_t period_ns, Emitter emitter);
  // Bytes that are there at once, like a header line.
  void SetPrologue(std::string prologue) { prologue_ = std::move(prologue); }
  // Starts the grid. Once, before anything else below.
  void Begin(int64_t device_now_ns, RecordRing* ring);
  void GenerateUntil(int64_t device_now_ns, RecordRing* ring);
  // Device time of the next record; kForever if there will be none.
  int64_t NextDue() const { return next_due_ns_; }
  size_t record_size() const { return record_size_; }
  const Produced& made() const { return made_; }

 private:
  struct Ticker {
    int64_t period_ns;
    int64_t next;
    Emitter emitter;
  };
  int64_t DueOf(const Ticker& ticker) const { return start_ns_ + ticker.next * ticker.period_ns; }
  void SkipWhatCannotSurvive(Ticker& ticker, int64_t device_now_ns, RecordRing* ring);
  void Put(const Tick& tick, RecordRing* ring);
  // A card that is missing samples nothing, and nothing is made up for when it is back.
  bool CardIsGone(const Tick& tick) const;
  void Corrupt(const Tick& tick, std::string* bytes) const;
  void UpdateNextDue();

  const Node& node_;
  unsigned device_;
  unsigned channel_;
  size_t record_size_;
  int64_t start_ns_ = 0;
  int64_t next_due_ns_ = kForever;
  std::string prologue_;
  std::vector<Ticker> tickers_;
  std::string scratch_;
  Produced made_;
};

}  // namespace profd::sim
