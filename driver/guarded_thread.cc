#include "driver/guarded_thread.h"

#include <fmt/format.h>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "driver/abandonable_thread.h"

namespace profd {
namespace internal {

// What a GuardedThread is at.
struct RunningJob {
  std::string what;
  int key = -1;
  int64_t deadline_ns = 0;
  int64_t since_ns = 0;
  std::function<void(const Status&)> done;  // empty once answered
  bool answered = false;
};

}  // namespace internal

namespace {

using internal::RunningJob;

double Seconds(int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

using Done = std::function<void(const Status&)>;
// Answers collected under the lock, given after it was released.
using Answers = std::vector<std::pair<Done, Status>>;

void Give(Answers& answers) {
  for (auto& [done, status] : answers) {
    if (done) done(status);
  }
}

}  // namespace

// Shared with the thread, which may outlive the GuardedThread. After `quit` the clock is not used.
struct GuardedThread::Core {
  Core(const Clock& c, Options o) : clock(c), options(o) {}

  const Clock& clock;
  const Options options;
  AbandonableThread thread;  // GuardedThread's side only

  Mutex mutex;
  CondVar work;
  std::deque<GuardedJob> queue GUARDED_BY(mutex);
  std::optional<RunningJob> running GUARDED_BY(mutex);
  bool stuck GUARDED_BY(mutex) = false;
  bool quit GUARDED_BY(mutex) = false;

  void Loop();
  bool Take(GuardedJob* job);
  bool Leave(bool undone, Done* done);
  Status StuckStatus() const REQUIRES(mutex);
};

Status GuardedThread::Core::StuckStatus() const {
  if (!stuck || !running.has_value() || quit) return Status::Ok();
  return Unavailable(fmt::format("{} has not returned for {:.1f} s", running->what,
                                 Seconds(clock.SteadyNs() - running->since_ns)));
}

bool GuardedThread::Core::Take(GuardedJob* job) {
  MutexLock lock(mutex);
  work.Wait(lock, [this]() REQUIRES(mutex) { return quit || !queue.empty(); });
  if (quit) return false;
  *job = std::move(queue.front());
  queue.pop_front();
  running.emplace();
  running->what = job->what;
  running->key = job->key;
  running->since_ns = clock.SteadyNs();
  running->deadline_ns =
      job->run_limit_ns > 0 ? running->since_ns + job->run_limit_ns : job->deadline_steady_ns;
  running->done = std::move(job->done);
  return true;
}

// The call has returned: was it answered already? Then it stays the running one until `undone`.
bool GuardedThread::Core::Leave(bool undone, Done* done) {
  MutexLock lock(mutex);
  const bool answered = running->answered;
  *done = std::exchange(running->done, nullptr);
  if (answered && !undone) return true;
  running.reset();
  stuck = false;
  return answered;
}

void GuardedThread::Core::Loop() {
  GuardedJob job;
  while (Take(&job)) {
    job.run();
    Done done;
    const bool answered = Leave(false, &done);
    if (!answered && done) done(Status::Ok());
    // Until it is undone, nothing else about the same key may run on another thread.
    if (answered && job.late) job.late();
    if (answered) Leave(true, &done);
    job = {};  // its captures may matter to the caller that waits for the answer's consequences
  }
}

GuardedThread::GuardedThread(std::string name, const Clock& clock, Options options)
    : core_(std::make_shared<Core>(clock, options)) {
  // Without a thread Submit refuses.
  [[maybe_unused]] bool started = core_->thread.Start(name, [core = core_] { core->Loop(); });
}

GuardedThread::~GuardedThread() {
  Answers answers;
  int64_t patience_ns = 0;
  {
    MutexLock lock(core_->mutex);
    core_->quit = true;
    for (GuardedJob& job : core_->queue) {
      answers.emplace_back(std::move(job.done),
                           Status(StatusCode::kCancelled, job.what + ": shutting down"));
    }
    core_->queue.clear();
    core_->work.NotifyAll();
    if (!core_->stuck) patience_ns = core_->options.grace_ns;
  }
  if (!core_->thread.JoinWithin(patience_ns)) {
    MutexLock lock(core_->mutex);
    if (core_->running.has_value() && !core_->running->answered) {
      core_->running->answered = true;
      answers.emplace_back(
          std::exchange(core_->running->done, nullptr),
          Status(StatusCode::kCancelled, core_->running->what + ": shutting down"));
    }
  }
  Give(answers);
}

Status GuardedThread::Submit(GuardedJob job) {
  Status refusal;
  {
    MutexLock lock(core_->mutex);
    refusal = core_->StuckStatus();
    if (refusal.ok() && !core_->thread.joinable()) {
      refusal = Unavailable(job.what + ": no thread could be started");
    }
    if (refusal.ok() && core_->queue.size() >= core_->options.queue) {
      refusal = ResourceExhausted(
          fmt::format("{}: {} calls are waiting already", job.what, core_->queue.size()));
    }
    if (refusal.ok()) {
      core_->queue.push_back(std::move(job));
      core_->work.NotifyOne();
      return Status::Ok();
    }
  }
  if (job.done) job.done(refusal);
  return refusal;
}

void GuardedThread::CheckDeadlines(int64_t now_steady_ns) {
  Answers answers;
  {
    MutexLock lock(core_->mutex);
    std::optional<RunningJob>& running = core_->running;
    if (running.has_value() && !running->answered && now_steady_ns > running->deadline_ns) {
      running->answered = true;
      core_->stuck = true;
      answers.emplace_back(
          std::exchange(running->done, nullptr),
          DeadlineExceeded(fmt::format("{} has not returned within {:.1f} s", running->what,
                                       Seconds(now_steady_ns - running->since_ns))));
    }
    // An empty deque allocates, and nearly always there is nothing in the queue.
    std::optional<std::deque<GuardedJob>> waiting;
    if (!core_->queue.empty()) waiting = std::exchange(core_->queue, {});
    for (size_t i = 0; waiting.has_value() && i < waiting->size(); ++i) {
      GuardedJob& job = (*waiting)[i];
      if (core_->stuck) {
        answers.emplace_back(std::move(job.done), core_->StuckStatus());
      } else if (now_steady_ns > job.deadline_steady_ns) {
        answers.emplace_back(std::move(job.done),
                             DeadlineExceeded(job.what + " was not reached in time"));
      } else {
        core_->queue.push_back(std::move(job));
      }
    }
  }
  Give(answers);
}

std::vector<GuardedJob> GuardedThread::TakeWaiting(int64_t now_steady_ns) {
  std::vector<GuardedJob> waiting;
  MutexLock lock(core_->mutex);
  if (!core_->running.has_value() || now_steady_ns <= core_->running->deadline_ns) return waiting;
  std::move(core_->queue.begin(), core_->queue.end(), std::back_inserter(waiting));
  core_->queue.clear();
  return waiting;
}

std::optional<int> GuardedThread::StuckKey() const {
  MutexLock lock(core_->mutex);
  if (core_->StuckStatus().ok()) return std::nullopt;
  return core_->running->key;
}

Status GuardedThread::Health() const {
  MutexLock lock(core_->mutex);
  return core_->StuckStatus();
}

}  // namespace profd
