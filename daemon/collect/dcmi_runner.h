// The thread that polls DCMI collectors. A DCMI call cannot be cancelled, so the thread can be
// written off: its state is shared, a new thread with new collector instances takes over, and the
// old one ends by itself if its call ever returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/collect/tick_grid.h"

namespace profd {

struct ReadingTimes {
  int64_t lateness_ns;
  int64_t duration_ns;
  uint64_t missed;
  uint64_t left_out = 0;
  int64_t end_steady_ns = 0;
};

// Of polls that no dump takes.
struct NullSink final : RawSink {
  void WriteHostFile(std::string_view, std::string_view) override {}
  bool Wanted() const override { return false; }
};

// Points of a grid that are left out after a poll (PollEngine::SetPace).
int64_t TicksLeftOut(int pace, int64_t period_ns);

// Counts one poll of a collector.
void RecordReading(CollectorStats& stats, const Status& status, const ReadingTimes& times,
                   size_t samples);

class DcmiRunner {
 public:
  DcmiRunner(const PollEngine::Deps& deps, std::shared_ptr<const std::atomic<int>> pace);
  // Waits for the thread unless it is inside an overdue call.
  ~DcmiRunner();

  Status Add(PollEngine::Handle handle, CollectorIndex collector, const PollOptions& options,
             std::shared_ptr<PollSink> sink_or_null);
  // Runs `task` on the thread from now on. It must outlive the thread, which may be left behind.
  Status AddTask(double hz, std::function<void()> task);
  // After it returns the sink is not called again.
  void Remove(PollEngine::Handle handle);

  std::vector<std::string> CheckStuck(int64_t stuck_after_ns);

 private:
  struct Tap {
    PollEngine::Handle handle;
    std::shared_ptr<PollSink> sink;  // may be null
    TickGrid grid;
    double hz;
  };
  struct Shared;
  void StopThread();

  PollEngine::Deps deps_;
  const std::shared_ptr<const std::atomic<int>> pace_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace profd
