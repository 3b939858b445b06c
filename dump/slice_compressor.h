// Compresses closed slices (zstd) while the session runs: one thread at the lowest priority, one
// slice at a time, at most kMaxWaiting of them waiting; a slice that is added while more are waiting stays as it
// is. `x.slice_k` becomes `x.slice_k.zst` in one step; a slice that would not become smaller stays.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "dump/dump_io.h"

namespace profd {

class SliceCompressor {
 public:
  static constexpr size_t kMaxWaiting = 64;

  struct Job {
    uint64_t id = 0;  // the caller's
    UniqueFd dir = {};     // where the slice lies
    std::string name = {};
    uint64_t bytes = 0;
    uint32_t crc32c = 0;  // what is read must have it
  };
  struct Done {
    uint64_t id = 0;
    uint64_t bytes = 0;  // stored; 0 = it stays as it was
    uint32_t crc32c = 0;
  };

  SliceCompressor(DumpIo& io, DumpOwner owner, int level);
  // Gives up what is waiting.
  ~SliceCompressor();
  SliceCompressor(const SliceCompressor&) = delete;
  SliceCompressor& operator=(const SliceCompressor&) = delete;

  // False: too many are waiting.
  bool Take(Job job);
  // What has been done since the last call.
  std::vector<Done> TakeDone();
  // Afterwards the slice is not touched any more; false: it may be in TakeDone.
  bool Forget(uint64_t id);
  // Waits until nothing is left to do, or `max_ns` are over; then gives up the rest.
  void Finish(int64_t max_ns);
  // What the largest slice that is waiting or in hand would take beside itself for a moment.
  uint64_t spare_bytes() const;

 private:
  void Run();
  Done Compress(const Job& job);
  Status CompressTo(const Job& job, int to, Done* done);

  DumpIo& io_;
  const DumpOwner owner_;
  const int level_;
  mutable Mutex mutex_;
  CondVar wake_;
  CondVar idle_;
  std::deque<Job> waiting_ GUARDED_BY(mutex_);
  uint64_t in_hand_ GUARDED_BY(mutex_) = 0;  // its id; kNone
  uint64_t in_hand_bytes_ GUARDED_BY(mutex_) = 0;
  bool forget_in_hand_ GUARDED_BY(mutex_) = false;
  std::vector<Done> done_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace profd
