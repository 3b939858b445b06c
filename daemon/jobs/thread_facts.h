// The kernel's state of the threads of a process: name, whether it runs, and what it waits for. Says
// where a process hangs that nothing inside of it can be asked about.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace profd {

class RootedFs;

inline constexpr size_t kMaxShownThreads = 256;

struct ThreadFacts {
  pid_t thread = 0;
  pid_t inner = 0;  // the same as the process's own namespace numbers it
  std::string name;
  char state = 0;  // as in /proc/PID/status: 'R', 'S', 'D', 'T', ...; 0 = not known
  std::string kernel_function;  // "futex_wait_queue"; empty = it waits in none, or profd may not see it
  std::string system_call;      // "ioctl"; "number 451" of one without a name here; empty as above
  std::string file;             // that the call is about: "/dev/davinci0", "socket:[4711]"
  std::string cpus = {};        // that it may run on: "0-31,64"; empty = not known
};

struct ProcessThreads {
  std::vector<ThreadFacts> threads;  // the main thread first, then by id; printable strings
  size_t left_out = 0;               // beyond kMaxShownThreads
};

// kNotFound when there is no such process, or another one has its pid by now. A few files of each thread are read, which
// takes some milliseconds for hundreds of them and can wait for a process that just executes another program: not for
// the control strand.
Result<ProcessThreads> ReadThreads(const RootedFs& proc, pid_t pid, uint64_t start_ticks);

}  // namespace profd
