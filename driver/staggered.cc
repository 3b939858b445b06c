#include "driver/staggered.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace profd {
namespace {

using Steady = std::chrono::steady_clock;

// Shared with the threads.
struct Returned {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> jobs;
};

bool Begin(const std::string& name, size_t index, std::function<void()> job,
           const std::shared_ptr<Returned>& returned) {
  try {
    std::thread([name = name.substr(0, 15), index, job = std::move(job), returned]() mutable {
      ::pthread_setname_np(::pthread_self(), name.c_str());
      job();
      job = nullptr;  // what it holds is released before the end is reported
      std::lock_guard lock(returned->mutex);
      returned->jobs[index] = true;
      returned->changed.notify_all();
    }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;  // has not returned
  }
}

}  // namespace

std::vector<bool> RunStaggered(const std::string& name, std::vector<std::function<void()>> jobs,
                               const StaggerPace& pace) {
  auto returned = std::make_shared<Returned>();
  returned->jobs.resize(jobs.size());
  const Steady::time_point handover_end = Steady::now() + pace.handovers;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!Begin(name, i, std::move(jobs[i]), returned)) continue;
    std::unique_lock lock(returned->mutex);
    returned->changed.wait_until(lock, std::min(handover_end, Steady::now() + pace.handover),
                                 [&] { return returned->jobs[i]; });
  }
  std::unique_lock lock(returned->mutex);
  returned->changed.wait_until(lock, Steady::now() + pace.patience, [&] {
    return std::all_of(returned->jobs.begin(), returned->jobs.end(), [](bool one) { return one; });
  });
  return returned->jobs;
}

}  // namespace profd
