// A mutex of which clang's -Wthread-safety checks the use: what a member's GUARDED_BY names is held
// where the member is touched, and what a function REQUIRES is held where it is called
// (scripts/tidy --thread-safety). Without clang the annotations are nothing, and Mutex is
// std::mutex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#ifdef __clang__
#define PROFD_THREAD_SAFETY(x) __attribute__((x))
#else
#define PROFD_THREAD_SAFETY(x)
#endif

#define CAPABILITY(x) PROFD_THREAD_SAFETY(capability(x))
#define SCOPED_CAPABILITY PROFD_THREAD_SAFETY(scoped_lockable)
#undef GUARDED_BY  // an older header of Abseil has the same under the same name
#define GUARDED_BY(x) PROFD_THREAD_SAFETY(guarded_by(x))
#define REQUIRES(...) PROFD_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) PROFD_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) PROFD_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) PROFD_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) PROFD_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) PROFD_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
// Of a function whose locking the analysis cannot follow; a comment there has the reason.
#define UNCHECKED_LOCKING PROFD_THREAD_SAFETY(no_thread_safety_analysis)

namespace profd {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  bool TryLock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a Mutex while it lives, except between Unlock() and Lock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Lock() ACQUIRE() { lock_.lock(); }
  void Unlock() RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// Held by one writer (SharedMutex itself) or by any number of SharedLocks.
class CAPABILITY("mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  void LockShared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void UnlockShared() RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex.LockShared();
  }
  ~SharedLock() RELEASE() { mutex_.UnlockShared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Waits release the lock and hold it again when they return. A condition is a lambda that names
// what it reads under: [this]() REQUIRES(mutex_) { return done_; }.
class CondVar {
 public:
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

  void Wait(MutexLock& lock) { changed_.wait(lock.lock_); }
  template <typename Condition>
  void Wait(MutexLock& lock, Condition condition) {
    changed_.wait(lock.lock_, std::move(condition));
  }
  // What the condition is when the time has passed.
  template <typename Duration, typename Condition>
  bool WaitFor(MutexLock& lock, Duration duration, Condition condition) {
    return changed_.wait_for(lock.lock_, duration, std::move(condition));
  }
  template <typename Duration>
  std::cv_status WaitFor(MutexLock& lock, Duration duration) {
    return changed_.wait_for(lock.lock_, duration);
  }
  template <typename Time, typename Condition>
  bool WaitUntil(MutexLock& lock, Time time, Condition condition) {
    return changed_.wait_until(lock.lock_, time, std::move(condition));
  }
  template <typename Time>
  std::cv_status WaitUntil(MutexLock& lock, Time time) {
    return changed_.wait_until(lock.lock_, time);
  }

 private:
  std::condition_variable changed_;
};

}  // namespace profd
