// The kind HCCL: calls of HCCL that were taken over, and marks on the stream around what they launch.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "base/mutex.h"
#include "sim/ascendcl/ascendcl.h"

namespace profd::sim::mspti {

// Of HCCL's domain; 0: none.
uint32_t CollectiveCallback(std::string_view function);

class Collectives {
 public:
  static Collectives& The();

  // 0: not requested.
  uint64_t Begin(const acl::Communication& communication, const void* group, void* stream);
  void End(uint64_t mark, void* stream);
  void OnLog(uint32_t device, const acl::LogRecord& record);

 private:
  struct Open {
    std::string name, group;
    uint64_t bytes = 0;
    int64_t begin_ns = 0;
  };

  std::atomic<uint64_t> next_{1};
  Mutex mutex_;
  std::map<uint64_t, Open> open_ GUARDED_BY(mutex_);
};

}  // namespace profd::sim::mspti
