// What the daemon counts about each collector, over all its instances. Written by samplers without
// locks, read by self metrics and GetNode.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "daemon/data/stream_hub.h"

namespace profd {

class CollectorStats {
 public:
  std::atomic<int> running{0};  // instances and channels, in sessions and outside
  std::atomic<uint64_t> readings{0};
  std::atomic<uint64_t> errors{0};
  std::atomic<uint64_t> missed_ticks{0};
  std::atomic<uint64_t> left_out_ticks{0};  // to stay within the budget
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> bad_records{0};
  std::atomic<uint64_t> stale_records{0};  // of a run that had been given up
  std::atomic<int64_t> last_duration_ns{0};
  std::atomic<int64_t> last_lateness_ns{0};
  std::atomic<bool> last_ok{true};
  std::atomic<int64_t> last_sample_ns{0};  // polled ones: a poll with at least one sample, steady clock

  void SetLastError(std::string_view text) {
    MutexLock lock(mutex_);
    last_error_ = text;
  }
  std::string LastError() const {
    MutexLock lock(mutex_);
    return last_error_;
  }

 private:
  mutable Mutex mutex_;
  std::string last_error_ GUARDED_BY(mutex_);
};

using CollectorStatsTable = std::array<CollectorStats, kMaxCollectors>;

}  // namespace profd
