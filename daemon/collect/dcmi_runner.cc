#include "daemon/collect/dcmi_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/mutex.h"
#include "driver/abandonable_thread.h"
#include "driver/dcmi_service.h"

namespace profd {
namespace {

std::chrono::steady_clock::time_point SteadyPoint(int64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

// Everything the thread touches. Held by the thread too, so that a written-off thread that comes
// back to life finds its memory.
struct DcmiRunner::Shared {
  struct Instance {
    CollectorIndex collector;
    PollOptions options;
    TickGrid grid;
    std::vector<Tap> taps;
    std::unique_ptr<PolledCollector> poller;  // made and destroyed on the thread
    SampleBatch batch;
    uint64_t missed = 0;
    std::function<void()> task = nullptr;  // instead of a collector
  };

  Shared(const PollEngine::Deps& d, std::shared_ptr<const std::atomic<int>> p) : deps(d), pace(std::move(p)) {}

  Instance* Next() REQUIRES(mutex);
  // `self`: this. Starts the thread if there is none.
  Status Start(const std::shared_ptr<Shared>& self) REQUIRES(mutex);
  void Run();
  Status PollOne(Instance& instance, const Tick& tick);
  void Deliver(Instance& instance, const Status& status, const ReadingTimes& times) REQUIRES(mutex);
  void DropUnused() REQUIRES(mutex);

  PollEngine::Deps deps;
  const std::shared_ptr<const std::atomic<int>> pace;
  Mutex mutex;
  CondVar changed;
  std::vector<std::unique_ptr<Instance>> instances GUARDED_BY(mutex);
  bool stop GUARDED_BY(mutex) = false;
  bool abandoned GUARDED_BY(mutex) = false;
  AbandonableThread thread;  // DcmiRunner's side only
};

DcmiRunner::Shared::Instance* DcmiRunner::Shared::Next() {
  Instance* next = nullptr;
  for (const auto& instance : instances) {
    if (next == nullptr || instance->grid.due_ns() < next->grid.due_ns()) next = instance.get();
  }
  return next;
}

// Only the thread erases instances, between two polls, so Poll never loses its collector.
void DcmiRunner::Shared::DropUnused() {
  std::erase_if(instances, [](const auto& instance) { return instance->taps.empty(); });
}

Status DcmiRunner::Shared::PollOne(Instance& instance, const Tick& tick) {
  if (instance.task) {
    instance.task();
    return Status::Ok();
  }
  if (instance.poller == nullptr) {
    const CollectorEntry& entry = Collectors()[instance.collector];
    auto made = entry.make_poller(deps.host, instance.options, deps.store);
    if (!made.ok()) return made.status();
    instance.poller = std::move(made).value();
  }
  NullSink nowhere;
  PollOutput out{instance.batch, nowhere};
  return instance.poller->Poll(tick, out);
}

void DcmiRunner::Shared::Deliver(Instance& instance, const Status& status,
                                 const ReadingTimes& times) {
  if (instance.task) return;
  std::span<const Sample> samples = instance.batch.samples();
  RecordReading(deps.stats[instance.collector], status, times, samples.size());
  deps.store.Write(samples);
  deps.hub.Publish(instance.collector, samples);
  int64_t now = deps.host.clock.SteadyNs();
  for (Tap& tap : instance.taps) {
    // Half a period of grace: the tap's grid and the instance's are not in phase.
    if (tap.grid.due_ns() > now + instance.grid.period_ns() / 2) continue;
    // Of the tap's own grid: the instance may be faster, and begins anew when its thread is written off.
    const uint64_t late = tap.grid.Advance(now);
    const uint64_t left_out = tap.grid.Skip(TicksLeftOut(*pace, tap.grid.period_ns()));
    if (tap.sink == nullptr) continue;
    tap.sink->OnSamples(samples);
    tap.sink->OnReading(status, late, left_out);
  }
}

void DcmiRunner::Shared::Run() {
  const Clock& clock = deps.host.clock;
  MutexLock lock(mutex);
  while (!stop) {
    DropUnused();
    Instance* instance = Next();
    if (instance == nullptr) {
      changed.Wait(lock);
      continue;
    }
    int64_t due = instance->grid.due_ns();
    if (clock.SteadyNs() < due) {
      changed.WaitUntil(lock, SteadyPoint(due));
      continue;
    }
    lock.Unlock();
    int64_t begin = clock.SteadyNs();
    int64_t raw = clock.MonotonicRawNs();
    instance->batch.Clear();
    Status status = PollOne(*instance, Tick{raw - (begin - due), raw, instance->missed});
    int64_t end = clock.SteadyNs();
    lock.Lock();
    if (abandoned) break;
    instance->missed = instance->grid.Advance(end);
    const uint64_t left_out = instance->task ? 0 : instance->grid.Skip(TicksLeftOut(*pace, instance->grid.period_ns()));
    Deliver(*instance, status, {begin - due, end - begin, instance->missed, left_out, end});
  }
}

DcmiRunner::DcmiRunner(const PollEngine::Deps& deps, std::shared_ptr<const std::atomic<int>> pace)
    : deps_(deps), pace_(std::move(pace)), shared_(std::make_shared<Shared>(deps, pace_)) {}

DcmiRunner::~DcmiRunner() { StopThread(); }

Status DcmiRunner::Shared::Start(const std::shared_ptr<Shared>& self) {
  if (thread.joinable() || thread.Start("profd-dcmi", [self] { self->Run(); })) return Status::Ok();
  return Unavailable("no thread could be started for DCMI");
}

void DcmiRunner::StopThread() {
  constexpr int64_t kPatienceNs = 2 * kNsPerSecond;
  {
    MutexLock lock(shared_->mutex);
    shared_->stop = true;
    shared_->changed.NotifyAll();
  }
  if (shared_->thread.JoinWithin(kPatienceNs)) return;
  MutexLock lock(shared_->mutex);
  shared_->abandoned = true;
}

Status DcmiRunner::Add(PollEngine::Handle handle, CollectorIndex collector,
                       const PollOptions& options, std::shared_ptr<PollSink> sink_or_null) {
  if (deps_.host.dcmi_or_null == nullptr) return Unavailable("libdcmi.so is not loaded");
  MutexLock lock(shared_->mutex);
  RETURN_IF_ERROR(shared_->Start(shared_));
  int64_t now = deps_.host.clock.SteadyNs();
  Tap tap{handle, std::move(sink_or_null), TickGrid(now, options.hz), options.hz};
  auto found = std::ranges::find_if(shared_->instances, [&](const auto& i) { return !i->task && i->collector == collector; });
  if (found == shared_->instances.end()) {
    auto instance = std::make_unique<Shared::Instance>(
        Shared::Instance{collector, options, TickGrid(now, options.hz), {}, nullptr, {}, 0});
    instance->taps.push_back(std::move(tap));
    shared_->instances.push_back(std::move(instance));
  } else {
    if (options.hz > (*found)->options.hz) {
      (*found)->options.hz = options.hz;
      (*found)->grid = TickGrid(now, options.hz);
    }
    (*found)->taps.push_back(std::move(tap));
  }
  shared_->changed.NotifyAll();
  return Status::Ok();
}

Status DcmiRunner::AddTask(double hz, std::function<void()> task) {
  if (deps_.host.dcmi_or_null == nullptr) return Unavailable("libdcmi.so is not loaded");
  MutexLock lock(shared_->mutex);
  RETURN_IF_ERROR(shared_->Start(shared_));
  TickGrid grid(deps_.host.clock.SteadyNs(), hz);
  PollOptions options;
  options.hz = hz;
  auto instance = std::make_unique<Shared::Instance>(
      Shared::Instance{0, options, grid, {}, nullptr, {}, 0, std::move(task)});
  // A handle without owner: it stays.
  instance->taps.push_back(Tap{0, nullptr, grid, hz});
  shared_->instances.push_back(std::move(instance));
  shared_->changed.NotifyAll();
  return Status::Ok();
}

void DcmiRunner::Remove(PollEngine::Handle handle) {
  MutexLock lock(shared_->mutex);
  for (const auto& instance : shared_->instances) {
    double fastest = 0;
    std::erase_if(instance->taps, [handle](const Tap& tap) { return tap.handle == handle; });
    for (const Tap& tap : instance->taps) fastest = std::max(fastest, tap.hz);
    if (fastest > 0 && fastest < instance->options.hz) {
      instance->options.hz = fastest;
      instance->grid = TickGrid(deps_.host.clock.SteadyNs(), fastest);
    }
  }
  shared_->changed.NotifyAll();
}

std::vector<std::string> DcmiRunner::CheckStuck(int64_t stuck_after_ns) {
  std::vector<std::string> texts;
  DcmiService* dcmi = deps_.host.dcmi_or_null;
  int64_t now = deps_.host.clock.SteadyNs();
  if (dcmi == nullptr) return texts;
  {
    MutexLock lock(shared_->mutex);
    // Again, if there was no thread to be had when the last one was abandoned.
    if (!shared_->instances.empty()) shared_->Start(shared_).Ignore();
  }
  if (!dcmi->CheckStuck(now, stuck_after_ns)) return texts;
  for (DcmiStuckCall& call : dcmi->StuckCalls(now)) texts.push_back(std::move(call.text));
  if (!shared_->thread.joinable()) return texts;
  auto old = shared_;
  shared_ = std::make_shared<Shared>(deps_, pace_);
  {
    MutexLock lock(old->mutex);
    MutexLock mine(shared_->mutex);
    old->abandoned = true;
    old->stop = true;
    for (const auto& instance : old->instances) {
      shared_->instances.push_back(std::make_unique<Shared::Instance>(Shared::Instance{
          instance->collector, instance->options,
          TickGrid(deps_.host.clock.SteadyNs(), instance->options.hz), std::move(instance->taps),
          nullptr, {}, 0, instance->task}));
      instance->taps.clear();
    }
    shared_->Start(shared_).Ignore();
  }
  old->thread.Abandon();
  return texts;
}

}  // namespace profd
