// A worker thread for calls that may never return. The caller gets an answer by its deadline in any
// case; a thread that is stuck is left behind and is usable again when the call returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace profd {

struct GuardedJob {
  std::string what;  // "prof_stop of device 3 channel hccs": for messages
  std::function<void()>
      run;  // on the worker; captures must stay valid if the thread is left behind
  // Of waiting in the queue and, without `run_limit_ns`, of the call too.
  int64_t deadline_steady_ns = 0;
  // Exactly once: Ok when `run` returned, kDeadlineExceeded when it had not by the deadline (or was
  // not reached in time), kUnavailable when the thread is stuck, kCancelled when the GuardedThread
  // goes away. On the worker, or on the thread that calls Submit, CheckDeadlines or the destructor.
  std::function<void(const Status&)> done;
  // On the worker, when `run` returned after `done` had been called with an error: undo here.
  std::function<void()> late = nullptr;
  // What the job is about, for StuckKey.
  int key = -1;
  // What the call itself may take, from when it is taken from the queue: what waits behind many calls that are all
  // in time is in time itself. 0: no limit of its own.
  int64_t run_limit_ns = 0;
};

// A job that finds something out, but for its deadline. `done` as GuardedJob has it, with the answer or why there is none.
template <class Found>
GuardedJob AskingJob(std::string what, std::function<Result<Found>()> ask, std::function<void(const Result<Found>&)> done) {
  auto answer = std::make_shared<Result<Found>>(Unavailable("not asked"));
  GuardedJob job;
  job.what = std::move(what);
  job.run = [ask = std::move(ask), answer] { *answer = ask(); };
  // A thread that is late still writes to *answer: it must not be read then.
  job.done = [answer, done = std::move(done)](const Status& status) { done(status.ok() ? *answer : Result<Found>(status)); };
  return job;
}

class GuardedThread {
 public:
  struct Options {
    size_t queue = 64;
    // How long the destructor waits for a job that is running and not overdue.
    int64_t grace_ns = 2 * kNsPerSecond;
  };
  // `name` as the kernel shows it (15 characters). `clock` must outlive this object.
  GuardedThread(std::string name, const Clock& clock, Options options);
  GuardedThread(std::string name, const Clock& clock)
      : GuardedThread(std::move(name), clock, Options{}) {}
  // Never hangs. Jobs that are not running are cancelled. May run in a `done` on the worker.
  ~GuardedThread();
  GuardedThread(const GuardedThread&) = delete;
  GuardedThread& operator=(const GuardedThread&) = delete;

  // Thread-safe; jobs run one at a time, in order. An error (also given to `done` exactly once):
  // kUnavailable "X has not returned for 12 s", kResourceExhausted when the queue is full.
  Status Submit(GuardedJob job);

  // Answers overdue jobs. Call it every 50 ms or so; one timer may serve many threads.
  void CheckDeadlines(int64_t now_steady_ns);
  // Hands over, unanswered, the jobs that wait behind one that is overdue.
  std::vector<GuardedJob> TakeWaiting(int64_t now_steady_ns);

  // Ok, or kUnavailable with what it is stuck in; what `late` undoes is a part of it.
  Status Health() const;
  bool stuck() const { return !Health().ok(); }
  // The key of the job it is stuck in.
  std::optional<int> StuckKey() const;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace profd
