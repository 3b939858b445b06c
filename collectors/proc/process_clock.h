// The CPU time of a process by its number, without its /proc file: a fifteenth of the cost, and all
// that is needed to know that nothing has changed. It is the sum the kernel makes the times in
// /proc/[pid]/stat of (sum_exec_runtime), so while it stands still, they do.
#pragma once

#include <cstdint>

#include "driver/rooted_fs.h"

namespace profd {

class ProcessClock {
 public:
  // Usable only where `proc` shows processes by the numbers that we know them by: our own PID
  // namespace's, and not a copy of some other host's /proc.
  explicit ProcessClock(const RootedFs& proc);
  bool usable() const { return usable_; }

  // Nanoseconds on a CPU so far, of all its threads; -1 if there is no such process.
  static int64_t Read(int pid);

 private:
  bool usable_ = false;
};

}  // namespace profd
