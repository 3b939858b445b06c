// A lock with a deadline that may be held across a driver call. Not std::timed_mutex, because
// waiting on that is invisible to the ThreadSanitizer we build with.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace profd {

class ChannelLock {
 public:
  bool TryLock() {
    std::lock_guard guard(mutex_);
    if (held_) return false;
    held_ = true;
    return true;
  }
  // `steady_ns`: CLOCK_MONOTONIC.
  bool LockUntil(int64_t steady_ns) {
    std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(steady_ns)};
    std::unique_lock guard(mutex_);
    if (!free_.wait_until(guard, until, [this] { return !held_; })) return false;
    held_ = true;
    return true;
  }
  void Unlock() {
    {
      std::lock_guard guard(mutex_);
      held_ = false;
    }
    free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  bool held_ = false;
};

// Unlocks at the end of its scope.
class ChannelLockHolder {
 public:
  explicit ChannelLockHolder(ChannelLock& lock) : lock_(lock) {}
  ~ChannelLockHolder() { lock_.Unlock(); }
  ChannelLockHolder(const ChannelLockHolder&) = delete;
  ChannelLockHolder& operator=(const ChannelLockHolder&) = delete;

 private:
  ChannelLock& lock_;
};

}  // namespace profd
