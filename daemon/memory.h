// Memory goes back to the system when what it was for is over: a daemon that runs for months is as large
// as what it does now, not as what it did once.
#pragma once

#include <cstdint>

#include "driver/block.h"

namespace profd {

// Before the first thread.
void LimitMemory();

class MemoryTrim {
 public:
  // Every second. `ended`: sessions and attached processes so far.
  void Tick(uint64_t ended, int64_t now_ns, BlockPool* pool);

 private:
  int64_t next_ns_ = 0;
  uint64_t trimmed_at_ = 0;  // as many had ended
};

}  // namespace profd
