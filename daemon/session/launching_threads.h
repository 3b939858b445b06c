// The thread of each process of a session that launches its kernels, by the calls it was recorded with, and the CPUs
// it may run on. Frameworks launch from a thread of their own and may bind it apart from the process's first one, while
// the job runs. Control strand.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "daemon/jobs/job_directory.h"

namespace profd {

class LaunchingThreads {
 public:
  // Looked at when its first calls come, and again after twice as long each time: the first binding counts most.
  static constexpr int64_t kLookAgainNs = 2 * kNsPerSecond;
  static constexpr int64_t kLongestNs = 300 * kNsPerSecond;
  static constexpr size_t kMaxThreads = 64;  // of a process; calls of more are not counted

  // As JobDirectory::LookupThreads.
  using Look = std::function<void(uint64_t attach_id, std::function<void(Result<ProcessThreads>)> done)>;
  explicit LaunchingThreads(Look look) : look_(std::move(look)) {}

  void Take(const ActivityBatch& batch, int64_t now_ns);
  // As the kernel lists them; empty: not known (yet).
  std::string CpusOf(pid_t pid) const;

 private:
  struct Process {
    std::map<uint32_t, uint64_t> calls;  // by thread, as the process numbers it
    int64_t next_look_ns = 0;
    int64_t pause_ns = kLookAgainNs;
    std::string cpus;
  };
  static uint32_t LauncherOf(const Process& process);

  Look look_;
  // Of one that is looked at, too, as long as this lives.
  std::shared_ptr<std::map<pid_t, Process>> processes_ = std::make_shared<std::map<pid_t, Process>>();
};

}  // namespace profd
