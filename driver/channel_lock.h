// A lock with a deadline that may be held across a driver call. Not std::timed_mutex, because
// waiting on that is invisible to the ThreadSanitizer we build with.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/mutex.h"

namespace profd {

class ChannelLock {
 public:
  bool TryLock() {
    MutexLock guard(mutex_);
    if (held_) return false;
    held_ = true;
    return true;
  }
  // Waits in real time, whatever clock the caller lives by.
  bool LockFor(int64_t patience_ns) {
    MutexLock guard(mutex_);
    if (!free_.WaitFor(guard, std::chrono::nanoseconds(patience_ns),
                       [this]() REQUIRES(mutex_) { return !held_; })) {
      return false;
    }
    held_ = true;
    return true;
  }
  void Unlock() {
    {
      MutexLock guard(mutex_);
      held_ = false;
    }
    free_.NotifyOne();
  }

 private:
  Mutex mutex_;
  CondVar free_;
  bool held_ GUARDED_BY(mutex_) = false;
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
