// An Executor is a fixed set of threads; a Strand runs its tasks on them one at a time, in order.
// State that belongs to a strand is touched only on it, so it needs no lock; DCHECK_ON checks it at the
// entry of what touches it. Built on Boost.Asio, which stays inside strand.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace profd {

class Strand;

class Executor {
 public:
  // Starts `threads` threads named `name` (at most 15 characters, as the kernel shows them). With none,
  // tasks run in base/manual_executor.h.
  Executor(std::string name, int threads);
  // Stops and joins; tasks not yet begun are dropped.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Stops taking tasks and joins the threads. Idempotent. Not from one of its own threads.
  void Stop();

 private:
  friend class ManualExecutor;
  friend class Strand;
  friend class Timer;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

class Strand {
 public:
  explicit Strand(Executor& executor);
  ~Strand();
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // Thread-safe. Runs `task` later on this strand; dropped if the executor stops first.
  void Post(std::function<void()> task);
  // The same, and waits until it has run. Not on this strand, and not with a manual executor.
  void RunAndWait(const std::function<void()>& task);
  // True on the thread that runs a task of this strand right now, and anywhere once the executor has
  // stopped: no task runs any more. With a manual executor: on the thread that made it.
  bool RunsHere() const;

 private:
  friend class FdWatch;
  friend class ManualExecutor;
  friend class Timer;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A timer whose callback runs on its strand. Use, move and destroy it on that strand only.
// Re-arming allocates nothing beyond what Asio recycles.
class Timer {
 public:
  explicit Timer(Strand& strand);
  ~Timer();  // cancels; the callback will not run afterwards
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls `callback` once, at the CLOCK_MONOTONIC instant `steady_ns`; replaces what was set before.
  void At(int64_t steady_ns, std::function<void()> callback);
  void After(int64_t delay_ns, std::function<void()> callback);
  void Cancel();

 private:
  friend class ManualExecutor;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Waits until a descriptor can be read or written. Use and destroy it on its strand only, or when the
// executor has stopped; one wait of each kind at a time.
class FdWatch {
 public:
  // The descriptor stays the caller's, who closes it after this object is gone.
  FdWatch(Strand& strand, int fd);
  ~FdWatch();  // cancels; no callback runs afterwards
  // False: the kernel watches no more descriptors (or this one cannot be watched), and no callback runs.
  bool ok() const;
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;

  // Calls `callback` once: there is something to read, an end or an error (of a pidfd: the process has
  // ended; of a listener: a connection).
  void WhenReadable(std::function<void()> callback);
  void WhenWritable(std::function<void()> callback);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

namespace internal {
[[noreturn]] void DieOffStrand(const char* strand, const char* file, int line);
}  // namespace internal

}  // namespace profd

// In builds with assertions: ends the program where code that belongs to a strand runs elsewhere.
#ifdef NDEBUG
#define DCHECK_ON(strand) static_cast<void>(0)
#else
#define DCHECK_ON(strand) \
  ((strand).RunsHere() ? static_cast<void>(0) \
                       : ::profd::internal::DieOffStrand(#strand, __FILE__, __LINE__))
#endif
