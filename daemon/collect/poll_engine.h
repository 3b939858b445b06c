// Runs the polled collectors on absolute deadlines: host collectors on the sampler threads, DCMI
// collectors all on one thread that nothing else uses, because a DCMI call may never return. A late
// tick is counted and left out, never made up for in a burst.
//
// Threading: Start, Stop and CheckStuck on the control strand; sinks are called on sampler threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "collectors/collector.h"
#include "daemon/collect/collector_stats.h"
#include "daemon/collect/sampler_pool.h"
#include "daemon/data/stream_hub.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

// Receives what an instance produces: raw lines for the dump and the decoded samples.
class PollSink : public RawSink {
 public:
  virtual void OnSamples(std::span<const Sample> samples) = 0;
  // After each poll, with its error if it failed. `late`: points of its grid that were missed; `left_out`: those that
  // are left out next (PollEngine::SetPace).
  virtual void OnReading(const Status& status, uint64_t late, uint64_t left_out) = 0;
};

class DcmiRunner;

class PollEngine {
 public:
  struct Deps {
    const Host& host;
    MetricStore& store;
    StreamHub& hub;
    SamplerPool& samplers;
    CollectorStatsTable& stats;
  };
  using Handle = uint64_t;

  explicit PollEngine(const Deps& deps);
  ~PollEngine();  // every handle must be stopped; abandons a DCMI thread that does not answer

  // A host collector gets an instance of its own; a DCMI collector is shared: it runs at the fastest
  // rate asked for and `sink` gets every n-th poll. `sink_or_null` is kept until Stop's `done`.
  Result<Handle> Start(CollectorIndex collector, const PollOptions& options,
                       std::shared_ptr<PollSink> sink_or_null);
  // `done` runs on some sampler thread (or here, if the handle is unknown); the sink is not called
  // afterwards.
  void Stop(Handle handle, std::function<void()> done);

  // Runs `task`, which may call DCMI, on the DCMI thread from now on. What it captures must stay valid
  // for as long as the process lives: the thread may be left behind.
  Status StartDcmiTask(double hz, std::function<void()> task);

  // Of collectors that are read more often than once a second only one of `pace` points of the grid is read, as long as
  // they are read once a second. 1: all. Any thread.
  void SetPace(int pace) { pace_->store(pace, std::memory_order_relaxed); }

  // Writes off the DCMI thread if its call is overdue, and continues with a new one without the device.
  // Answers what has just been found stuck, in words.
  std::vector<std::string> CheckStuck(int64_t stuck_after_ns);

 private:
  class HostInstance;
  void Count(Handle handle, CollectorIndex collector);

  Deps deps_;
  const std::shared_ptr<std::atomic<int>> pace_ = std::make_shared<std::atomic<int>>(1);
  const int64_t base_ns_;
  Handle next_ = 1;
  std::unordered_map<Handle, CollectorIndex> running_;
  std::unordered_map<Handle, std::shared_ptr<HostInstance>> host_;
  std::unique_ptr<DcmiRunner> dcmi_;
};

}  // namespace profd
