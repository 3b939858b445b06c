#include "driver/staggered.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "driver/abandonable_thread.h"

namespace profd {
namespace {

using Steady = std::chrono::steady_clock;

// Shared with the threads.
struct Returned {
  explicit Returned(size_t count) : jobs(count, StaggeredEnd::kLeftBehind) {}
  Mutex mutex;
  CondVar changed;
  std::vector<StaggeredEnd> jobs GUARDED_BY(mutex);
};

bool Begin(const std::string& name, size_t index, std::function<void()> job,
           const std::shared_ptr<Returned>& returned) {
  AbandonableThread thread;  // left behind at once: `returned` has its end
  const bool begun = thread.Start(name, [index, job = std::move(job), returned]() mutable {
    job();
    job = nullptr;  // what it holds is released before the end is reported
    MutexLock lock(returned->mutex);
    returned->jobs[index] = StaggeredEnd::kReturned;
    returned->changed.NotifyAll();
  });
  if (begun) return true;
  MutexLock lock(returned->mutex);
  returned->jobs[index] = StaggeredEnd::kNoThread;
  return false;
}

}  // namespace

std::vector<StaggeredEnd> RunStaggered(const std::string& name, std::vector<std::function<void()>> jobs,
                                       const StaggerPace& pace) {
  auto returned = std::make_shared<Returned>(jobs.size());
  const Steady::time_point handover_end = Steady::now() + pace.handovers;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!Begin(name, i, std::move(jobs[i]), returned)) continue;
    MutexLock lock(returned->mutex);
    returned->changed.WaitUntil(lock, std::min(handover_end, Steady::now() + pace.handover),
                                [&]() REQUIRES(returned->mutex) { return returned->jobs[i] == StaggeredEnd::kReturned; });
  }
  MutexLock lock(returned->mutex);
  returned->changed.WaitUntil(lock, Steady::now() + pace.patience, [&]() REQUIRES(returned->mutex) {
    return std::ranges::count(returned->jobs, StaggeredEnd::kLeftBehind) == 0;
  });
  return returned->jobs;
}

}  // namespace profd
