// Work of one call on several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include "base/mutex.h"

namespace profd::exporting {

// Runs run(0) ... run(count - 1), each on a thread of its own, the first on the caller's; returns when all have. One
// for which no thread is to be had runs on the caller's, too.
void RunBeside(size_t count, const std::function<void(size_t)>& run);

// Takes make(0) ... make(count - 1) in this order on the caller's thread, while another one makes those that come next,
// at most `ahead` of them. What nothing has begun to make when it is to be taken, the caller's thread makes itself.
template <class Made>
class MakeAhead {
 public:
  using Make = std::function<Made(size_t)>;
  using Take = std::function<void(Made)>;

  static void Run(size_t count, size_t ahead, const Make& make, const Take& take) {
    MakeAhead work(count, ahead, make);
    RunBeside(count < 2 ? 1 : 2, [&](size_t part) { part == 0 ? work.TakeAll(take) : work.MakeAll(); });
  }

 private:
  MakeAhead(size_t count, size_t ahead, const Make& make) : count_(count), ahead_(ahead), make_(make) {}

  void TakeAll(const Take& take) {
    for (size_t i = 0; i < count_; ++i) {
      take(Get(i));
      const MutexLock lock(mutex_);
      taken_ = i + 1;
      changed_.NotifyAll();
    }
  }

  Made Get(size_t i) {
    {
      MutexLock lock(mutex_);
      if (i < begun_) {
        changed_.Wait(lock, [this, i]() REQUIRES(mutex_) { return made_.contains(i); });
        return std::move(made_.extract(i).mapped());
      }
      begun_ = i + 1;
    }
    return make_(i);
  }

  void MakeAll() {
    for (;;) {
      size_t i = 0;
      {
        MutexLock lock(mutex_);
        changed_.Wait(lock, [this]() REQUIRES(mutex_) { return begun_ == count_ || begun_ < taken_ + ahead_; });
        if (begun_ == count_) return;
        i = begun_++;
      }
      Made made = make_(i);
      const MutexLock lock(mutex_);
      made_.emplace(i, std::move(made));
      changed_.NotifyAll();
    }
  }

  const size_t count_;
  const size_t ahead_;
  const Make& make_;
  Mutex mutex_;
  CondVar changed_;
  size_t begun_ GUARDED_BY(mutex_) = 0;
  size_t taken_ GUARDED_BY(mutex_) = 0;
  std::map<size_t, Made> made_ GUARDED_BY(mutex_);
};

}  // namespace profd::exporting
