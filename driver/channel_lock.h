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
  // Waits in real time, whatever clock the caller lives by.
  bool LockFor(int64_t patience_ns) {
    std::unique_lock guard(mutex_);
    if (!free_.wait_for(guard, std::chrono::nanoseconds(patience_ns), [this] { return !held_; })) {
      return false;
    }
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
