// Brings dumps to the disk behind the writer's back. fdatasync waits for the disk, the writer must
// not; so descriptors of what was written are handed to a thread of their own. When the disk cannot
// keep up, descriptors beyond a bound are turned away, not queued: the end of the session syncs the
// rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "dump/dump_io.h"

namespace profd {

// A file that is to replace another once it is on the disk. The writer may call it off.
class PendingReplacement {
 public:
  PendingReplacement(UniqueFd dir, std::string from, std::string to)
      : dir_(std::move(dir)), from_(std::move(from)), to_(std::move(to)) {}
  // False if it was called off. Any thread.
  bool Rename();
  // Afterwards nothing happens any more. True: it had not happened yet.
  bool CallOff();
  bool over() const { return over_.load(std::memory_order_acquire); }

 private:
  Mutex mutex_;
  UniqueFd dir_ GUARDED_BY(mutex_);
  std::string from_ GUARDED_BY(mutex_);
  std::string to_ GUARDED_BY(mutex_);
  std::atomic<bool> over_{false};
};

class DumpSync {
 public:
  explicit DumpSync(DumpIo& io = SystemDumpIo());
  // Does what was handed over, then joins.
  ~DumpSync();
  DumpSync(const DumpSync&) = delete;
  DumpSync& operator=(const DumpSync&) = delete;

  // First errno of a session's files; 0 = none.
  using Outcome = std::shared_ptr<std::atomic<int>>;

  enum class SyncMode : uint8_t {
    kStart,   // only ask for it to be written
    kSync,    // see it on the disk
    kClosed,  // the same, and out of the page cache afterwards
    kVolume,  // everything on its volume
  };
  // False: too much is waiting, the descriptor is closed.
  bool Take(UniqueFd fd, SyncMode what, const Outcome& outcome);
  // `fd` is on the disk before the replacement happens.
  bool Replace(UniqueFd fd, std::shared_ptr<PendingReplacement> replacement,
               const Outcome& outcome);
  // Runs on the sync thread, after everything handed over before; never turned away.
  void Then(UniqueFd volume, const Outcome& outcome, std::function<void()> done);

  // Nothing is waiting or being done.
  bool idle() const;

 private:
  static constexpr size_t kMaxWaiting = 1024;
  struct Job {
    UniqueFd fd = {};
    SyncMode what = SyncMode::kSync;
    Outcome outcome = nullptr;
    std::shared_ptr<PendingReplacement> replacement = nullptr;
    std::function<void()> done = nullptr;
  };
  bool Push(Job job, bool must);
  void Run();
  void Do(Job& job);

  DumpIo& io_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::vector<Job> waiting_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// What one dump hands over while it is written, and the first error of that. Without a thread nothing is taken.
class RunningSync {
 public:
  // The thread outlives the object.
  explicit RunningSync(DumpSync* sync_or_null) : sync_(sync_or_null) {}

  bool on() const { return sync_ != nullptr; }
  bool Take(UniqueFd fd, DumpSync::SyncMode what = DumpSync::SyncMode::kSync) const {
    return on() && sync_->Take(std::move(fd), what, outcome_);
  }
  bool TakeCopy(int fd) const { return on() && Take(CopyOf(fd)); }
  bool Replace(UniqueFd fd, std::shared_ptr<PendingReplacement> replacement) const {
    return on() && sync_->Replace(std::move(fd), std::move(replacement), outcome_);
  }
  const DumpSync::Outcome& outcome() const { return outcome_; }

 private:
  DumpSync* const sync_;
  const DumpSync::Outcome outcome_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace profd
