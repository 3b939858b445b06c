#include "daemon/collect/sampler_pool.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace profd {
namespace {

// So late a task may get because the thread runs another before it.
constexpr int64_t kMayWaitNs = 300'000;
// Between looks whether a task takes much longer than it ever did: a period, but within these.
constexpr int64_t kLeastLookNs = 100 * kNsPerMs;
constexpr int64_t kMostLookNs = kNsPerSecond;
// The kernel may wake a thread so much late, to save wakeups of its own.
constexpr unsigned long kSlackNs = 1000;

int64_t NowNs() { return SystemClock().SteadyNs(); }

std::chrono::steady_clock::time_point PointOf(int64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

SamplerPool::SamplerPool(std::string name, int threads) {
  waits_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
      ::prctl(PR_SET_TIMERSLACK, kSlackNs);
      Loop();
    });
  }
}

SamplerPool::~SamplerPool() { Stop(); }

void SamplerPool::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  due_.NotifyAll();
  help_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  MutexLock lock(mutex_);
  entries_.clear();
}

void SamplerPool::Add(std::shared_ptr<Task> task, int64_t due_ns) {
  auto entry = std::make_unique<Entry>();
  entry->task = std::move(task);
  entry->due_ns = due_ns;
  {
    MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  due_.NotifyOne();
}

void SamplerPool::Remove(const Task* task, std::function<void()> done) {
  {
    MutexLock lock(mutex_);
    auto found = std::ranges::find_if(entries_, [task](const auto& entry) {
      return entry->task.get() == task && !entry->ending;
    });
    if (found != entries_.end()) {
      (*found)->ending = true;
      (*found)->due_ns = 0;
      (*found)->done = std::exchange(done, nullptr);
    }
  }
  if (done) done();
  due_.NotifyOne();
}

SamplerPool::Entry* SamplerPool::Earliest() {
  Entry* earliest = nullptr;
  for (const auto& entry : entries_) {
    if (entry->running) continue;
    if (earliest == nullptr || entry->due_ns < earliest->due_ns) earliest = entry.get();
  }
  return earliest;
}

void SamplerPool::Loop() {
  MutexLock lock(mutex_);
  while (!stop_) {
    Entry* next = Earliest();
    const int64_t due_ns = next == nullptr ? INT64_MAX : next->due_ns;
    if (due_ns > NowNs()) {
      Wait(due_ns, lock);
    } else if (next->ending) {
      EndOne(*next);
    } else {
      RunOne(*next);
    }
  }
}

int64_t SamplerPool::LookNs() const {
  int64_t shortest = kMostLookNs;
  for (const auto& entry : entries_) shortest = std::min(shortest, entry->period_ns);
  return std::max(shortest, kLeastLookNs);
}

bool SamplerPool::IsWaitedFor(int64_t due_ns) const {
  return std::ranges::any_of(waits_, [due_ns](int64_t ns) { return ns <= due_ns; });
}

// For the earliest task, if no other thread does; else to be of help.
void SamplerPool::Wait(int64_t due_ns, MutexLock& lock) {
  if (IsWaitedFor(due_ns)) {
    help_.WaitFor(lock, std::chrono::nanoseconds(LookNs()));
    return;
  }
  waits_.push_back(due_ns);
  if (due_ns == INT64_MAX) {
    due_.Wait(lock);
  } else {
    due_.WaitUntil(lock, PointOf(due_ns));
  }
  waits_.erase(std::ranges::find(waits_, due_ns));
}

// Does another thread have to serve what falls due before the task is over?
bool SamplerPool::NeedsHelp(const Entry& starting, int64_t now_ns) {
  const Entry* next = Earliest();
  if (next == nullptr || IsWaitedFor(next->due_ns)) return false;
  return starting.expected_ns - kMayWaitNs > next->due_ns - now_ns;
}

void SamplerPool::RunOne(Entry& entry) {
  entry.running = true;
  const int64_t begin = NowNs();
  const bool help = NeedsHelp(entry, begin);
  mutex_.Unlock();
  if (help) help_.NotifyOne();
  const int64_t due = entry.task->Run();
  const int64_t took = NowNs() - begin;
  mutex_.Lock();
  entry.running = false;
  entry.period_ns = due - entry.due_ns;
  if (!entry.ending) entry.due_ns = due;
  const int64_t before = entry.expected_ns == INT64_MAX ? 0 : entry.expected_ns;
  entry.expected_ns = std::max(took, before - before / 16);
}

void SamplerPool::EndOne(Entry& entry) {
  auto found = std::ranges::find_if(entries_, [&entry](const auto& one) { return one.get() == &entry; });
  std::unique_ptr<Entry> ending = std::move(*found);
  entries_.erase(found);
  help_.NotifyOne();
  mutex_.Unlock();
  ending->task->End();
  const std::function<void()> done = std::move(ending->done);
  ending.reset();
  done();
  mutex_.Lock();
}

}  // namespace profd
