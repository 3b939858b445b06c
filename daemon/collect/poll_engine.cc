#include "daemon/collect/poll_engine.h"

#include <algorithm>
#include <utility>

#include "daemon/collect/dcmi_runner.h"
#include "daemon/collect/tick_grid.h"

namespace profd {

namespace {

// Grids begin at multiples of this since the engine was made, so that collectors whose rates divide
// 50 Hz are due together, and one wakeup serves them all.
constexpr int64_t kPhaseNs = 20 * kNsPerMs;
// What begins so shortly after such a point is not put off to the next one.
constexpr int64_t kJustNowNs = kNsPerMs;

int64_t FirstTick(int64_t base_ns, int64_t now_ns) {
  const int64_t since = now_ns - base_ns - kJustNowNs;
  return since <= 0 ? base_ns : base_ns + (since + kPhaseNs - 1) / kPhaseNs * kPhaseNs;
}

}  // namespace

// One instance of a host collector.
class PollEngine::HostInstance final : public SamplerPool::Task {
 public:
  HostInstance(const Deps& deps, CollectorIndex index, std::unique_ptr<PolledCollector> poller,
               TickGrid grid, std::shared_ptr<PollSink> sink, std::shared_ptr<const std::atomic<int>> pace)
      : deps_(deps),
        index_(index),
        poller_(std::move(poller)),
        sink_(std::move(sink)),
        pace_(std::move(pace)),
        grid_(grid) {}

  int64_t Run() override {
    Poll();
    return grid_.due_ns();
  }

  void End() override {
    poller_.reset();
    sink_.reset();
  }

 private:
  void Poll() {
    const Clock& clock = deps_.host.clock;
    int64_t begin = clock.SteadyNs();
    int64_t due = grid_.due_ns();
    Tick tick{clock.MonotonicRawNs() - (begin - due), clock.MonotonicRawNs(), missed_};
    batch_.Clear();
    NullSink nowhere;
    PollOutput out{batch_, sink_ ? static_cast<RawSink&>(*sink_) : nowhere};
    Status status = poller_->Poll(tick, out);
    const int64_t end = clock.SteadyNs();
    // Late points are reported with it: there may be no next one.
    missed_ = grid_.Advance(end);
    const uint64_t left_out = grid_.Skip(TicksLeftOut(*pace_, grid_.period_ns()));
    RecordReading(deps_.stats[index_], status, {begin - due, end - begin, missed_, left_out, end},
                  batch_.samples().size());
    deps_.store.Write(batch_.samples());
    deps_.hub.Publish(index_, batch_.samples());
    if (sink_) {
      sink_->OnSamples(batch_.samples());
      sink_->OnReading(status, missed_, left_out);
    }
  }

  Deps deps_;
  CollectorIndex index_;
  std::unique_ptr<PolledCollector> poller_;
  std::shared_ptr<PollSink> sink_;
  std::shared_ptr<const std::atomic<int>> pace_;
  TickGrid grid_;
  SampleBatch batch_;
  uint64_t missed_ = 0;
};

int64_t TicksLeftOut(int pace, int64_t period_ns) {
  return std::max<int64_t>(std::min<int64_t>(pace, kNsPerSecond / period_ns) - 1, 0);
}

void RecordReading(CollectorStats& stats, const Status& status, const ReadingTimes& times,
                   size_t samples) {
  stats.readings.fetch_add(1, std::memory_order_relaxed);
  stats.records.fetch_add(samples, std::memory_order_relaxed);
  stats.missed_ticks.fetch_add(times.missed, std::memory_order_relaxed);
  stats.left_out_ticks.fetch_add(times.left_out, std::memory_order_relaxed);
  stats.last_lateness_ns.store(times.lateness_ns, std::memory_order_relaxed);
  stats.last_duration_ns.store(times.duration_ns, std::memory_order_relaxed);
  stats.last_ok.store(status.ok(), std::memory_order_relaxed);
  if (status.ok() && samples > 0) {
    stats.last_sample_ns.store(times.end_steady_ns, std::memory_order_relaxed);
  }
  if (!status.ok()) {
    stats.errors.fetch_add(1, std::memory_order_relaxed);
    stats.SetLastError(status.ToString());
  }
}

PollEngine::PollEngine(const Deps& deps)
    : deps_(deps), base_ns_(deps.host.clock.SteadyNs()), dcmi_(std::make_unique<DcmiRunner>(deps, pace_)) {}

PollEngine::~PollEngine() = default;

Result<PollEngine::Handle> PollEngine::Start(CollectorIndex collector, const PollOptions& options,
                                             std::shared_ptr<PollSink> sink_or_null) {
  const CollectorEntry& entry = Collectors()[collector];
  Handle handle = next_++;
  if (entry.spec->source == CollectorSource::kDcmi) {
    RETURN_IF_ERROR(dcmi_->Add(handle, collector, options, std::move(sink_or_null)));
    Count(handle, collector);
    return handle;
  }
  Result<std::unique_ptr<PolledCollector>> poller =
      entry.make_poller(deps_.host, options, deps_.store);
  if (!poller.ok()) return poller.status();
  const TickGrid grid(FirstTick(base_ns_, deps_.host.clock.SteadyNs()), options.hz);
  auto instance = std::make_shared<HostInstance>(deps_, collector, std::move(poller).value(), grid,
                                                 std::move(sink_or_null), pace_);
  host_.emplace(handle, instance);
  Count(handle, collector);
  deps_.samplers.Add(std::move(instance), grid.due_ns());
  return handle;
}

void PollEngine::Count(Handle handle, CollectorIndex collector) {
  running_.emplace(handle, collector);
  deps_.stats[collector].running.fetch_add(1, std::memory_order_relaxed);
}

void PollEngine::Stop(Handle handle, std::function<void()> done) {
  if (const auto counted = running_.find(handle); counted != running_.end()) {
    deps_.stats[counted->second].running.fetch_sub(1, std::memory_order_relaxed);
    running_.erase(counted);
  }
  auto found = host_.find(handle);
  if (found == host_.end()) {
    dcmi_->Remove(handle);
    done();
    return;
  }
  deps_.samplers.Remove(found->second.get(), std::move(done));
  host_.erase(found);
}

Status PollEngine::StartDcmiTask(double hz, std::function<void()> task) {
  return dcmi_->AddTask(hz, std::move(task));
}

std::vector<std::string> PollEngine::CheckStuck(int64_t stuck_after_ns) {
  return dcmi_->CheckStuck(stuck_after_ns);
}

}  // namespace profd
