#include "dump/dump_sync.h"

#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace profd {

bool PendingReplacement::Rename() {
  MutexLock lock(mutex_);
  if (over_.load(std::memory_order_relaxed)) return false;
  const bool renamed = ::renameat(dir_.get(), from_.c_str(), dir_.get(), to_.c_str()) == 0;
  over_.store(true, std::memory_order_release);
  return renamed;
}

bool PendingReplacement::CallOff() {
  MutexLock lock(mutex_);
  if (over_.exchange(true, std::memory_order_acq_rel)) return false;
  ::unlinkat(dir_.get(), from_.c_str(), 0);
  return true;
}

DumpSync::DumpSync(DumpIo& io) : io_(io) {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "profd-sync");
    Run();
  });
}

DumpSync::~DumpSync() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

bool DumpSync::Push(Job job, bool must) {
  {
    MutexLock lock(mutex_);
    if (!must && waiting_.size() >= kMaxWaiting) return false;
    waiting_.push_back(std::move(job));
  }
  wake_.NotifyOne();
  return true;
}

bool DumpSync::Take(UniqueFd fd, SyncMode what, const Outcome& outcome) {
  return fd.valid() && Push({.fd = std::move(fd), .what = what, .outcome = outcome}, false);
}

bool DumpSync::Replace(UniqueFd fd, std::shared_ptr<PendingReplacement> replacement,
                       const Outcome& outcome) {
  return Push({.fd = std::move(fd), .outcome = outcome, .replacement = std::move(replacement)}, false);
}

void DumpSync::Then(UniqueFd volume, const Outcome& outcome, std::function<void()> done) {
  Push({.fd = std::move(volume), .what = SyncMode::kVolume, .outcome = outcome, .done = std::move(done)}, true);
}

bool DumpSync::idle() const {
  MutexLock lock(mutex_);
  return waiting_.empty() && !busy_;
}

void DumpSync::Run() {
  std::vector<Job> batch;
  for (;;) {
    {
      MutexLock lock(mutex_);
      busy_ = false;
      wake_.Wait(lock, [this]() REQUIRES(mutex_) { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      batch.swap(waiting_);
      busy_ = true;
    }
    // Of many files at once: space is found for all of them first, else every one's sync would wait for
    // a commit of the file system's journal of its own.
    if (batch.size() > 1) {
      for (const Job& job : batch) {
        if (job.what == SyncMode::kSync && job.fd.valid()) io_.StartWriteback(job.fd.get());
      }
    }
    for (Job& job : batch) Do(job);
    batch.clear();
  }
}

void DumpSync::Do(Job& job) {
  int failed = 0;
  if (job.fd.valid()) {
    if (job.what == SyncMode::kStart) {
      io_.StartWriteback(job.fd.get());
    } else {
      const int result = job.what == SyncMode::kVolume ? io_.SyncFileSystem(job.fd.get())
                                                   : io_.Sync(job.fd.get());
      if (result != 0) failed = errno;
    }
  }
  if (failed != 0 && job.outcome != nullptr) {
    int none = 0;
    job.outcome->compare_exchange_strong(none, failed);
  }
  if (job.what == SyncMode::kClosed && failed == 0) io_.DropCache(job.fd.get());
  job.fd.Reset();
  if (job.replacement != nullptr) {
    if (failed == 0) {
      job.replacement->Rename();
    } else {
      job.replacement->CallOff();
    }
  }
  if (job.done) job.done();
}

}  // namespace profd
