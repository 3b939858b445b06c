// Threads that run tasks at absolute instants of the steady clock. Whatever is due together is run by
// the one thread that was waiting for it, one after the other, as long as nothing gets late by that:
// waking another thread costs more than most tasks. Where a task is known to take longer, or takes
// longer than it used to, another thread looks after the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace profd {

class SamplerPool {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // On some thread, never on two at once. Answers when it is to run next (steady clock).
    virtual int64_t Run() = 0;
    // The last call.
    virtual void End() = 0;
  };

  // Starts `threads` threads named `name` (at most 15 characters, as the kernel shows them).
  SamplerPool(std::string name, int threads);
  ~SamplerPool();
  SamplerPool(const SamplerPool&) = delete;
  SamplerPool& operator=(const SamplerPool&) = delete;

  // Any thread, also from within a task. `done` runs after End on a thread of the pool; of a task that
  // is not known, here.
  void Add(std::shared_ptr<Task> task, int64_t due_ns);
  void Remove(const Task* task, std::function<void()> done);

  // Joins the threads; tasks are let go without End. Idempotent. Not from one of its threads.
  void Stop();

 private:
  struct Entry {
    std::shared_ptr<Task> task;
    int64_t due_ns = 0;
    int64_t expected_ns = INT64_MAX;  // that it takes; forgets its longest run by and by
    int64_t period_ns = 0;
    bool running = false;
    bool ending = false;
    std::function<void()> done = nullptr;
  };

  void Loop();
  Entry* Earliest() REQUIRES(mutex_);
  int64_t LookNs() const REQUIRES(mutex_);
  bool IsWaitedFor(int64_t due_ns) const REQUIRES(mutex_);
  void Wait(int64_t due_ns, MutexLock& lock) REQUIRES(mutex_);
  void RunOne(Entry& entry) REQUIRES(mutex_);
  void EndOne(Entry& entry) REQUIRES(mutex_);
  bool NeedsHelp(const Entry& starting, int64_t now_ns) REQUIRES(mutex_);

  Mutex mutex_;
  CondVar due_;   // of a thread that waits for the earliest task
  CondVar help_;  // of those that wait to be needed
  std::vector<int64_t> waits_ GUARDED_BY(mutex_);  // until when threads wait on due_
  bool stop_ GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Entry>> entries_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace profd
