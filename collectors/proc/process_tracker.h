// Finds the processes a session asked for and keeps one file of each of them open, so that a sample
// costs one pread per process. Not a collector: what host_cpu and host_mem have in common.
//
// A process is found at most a second after it appeared. It is watched because everything is
// (`all`), because it or an ancestor was given as a root, or because its environment names the job;
// this sticks until it exits. A descriptor of a /proc file belongs to the process, not to its
// number, so a kept file never shows a successor; where files are opened per poll, start times
// tell: in every stat line read, and of a few processes per second in turn.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collectors/collector.h"
#include "collectors/proc/proc_text.h"
#include "collectors/proc/process_clock.h"
#include "collectors/proc/text_file.h"
#include "driver/rooted_fs.h"

namespace profd {

// What a collector keeps per process (its series, its block counter); destroyed with the process.
struct ProcessAttachment {
  virtual ~ProcessAttachment() = default;
};

struct TrackedThread {
  int tid = 0;
  KeptFile file;  // of task/[tid]/stat; not valid: opened per poll
  bool gone = false;
};

struct TrackedProcess {
  int pid = 0;
  uint64_t start_ticks = 0;
  std::string comm;     // as the kernel has it: any bytes
  bool in_job = false;  // a root, its descendant, or of the job; not merely there because of `all`
  bool kernel_thread = false;
  bool gone = false;                   // dropped at the next Refresh
  KeptFile file;                       // not valid: opened per poll
  std::vector<TrackedThread> threads;  // sorted by tid; only if asked for and in_job
  std::unique_ptr<ProcessAttachment> attachment;
};

class ProcessTracker {
 public:
  struct Options {
    std::string_view file = "stat";  // of /proc/[pid]/
    bool threads = false;            // list task/ of processes in the job
    size_t max_processes = 4096;
    size_t max_threads = 8192;
    // Descriptors kept for processes and threads together, the others are opened per poll;
    // 0 = 2048, or a sixteenth of what this process may open if that is less.
    size_t max_kept_files = 0;
  };

  // `proc` must outlive it.
  ProcessTracker(const RootedFs& proc, ProcessScope scope, Options options);

  // Looks for new processes and forgets those that are gone, at most once per second of `due_ns`.
  // The error names what is missing or left out (each such finding once), or why nothing could be
  // listed; processes() is valid all the same.
  Status Refresh(int64_t due_ns);

  std::span<TrackedProcess* const> processes() const { return tracked_; }

  // The file's text now. kNotFound: it is gone (and marked so).
  Result<std::string_view> Read(TrackedProcess& process);
  Result<std::string_view> Read(const TrackedProcess& process, TrackedThread& thread);

  // The number belongs to another process now, or the file makes no sense any more.
  void MarkGone(TrackedProcess& process) {
    process.gone = true;
    some_gone_ = true;
  }

  size_t kept_files() const { return kept_files_; }

 private:
  // A process that was listed, watched or not.
  struct ListedProcess {
    int pid = 0;
    int ppid = 0;
    uint64_t start_ticks = 0;
    int64_t ran_ns = -1;  // its clock when it was last verified; -1: not known
    uint8_t looks = 0;
    bool allowed = false;  // by only_uid
    bool in_job = false;
    bool kernel_thread = false;
    bool gone = false;
    std::string comm;
    std::unique_ptr<TrackedProcess> process;
  };

  Status ListPids();
  void ForgetGone();
  void AddListed();
  void LookAtSome();
  void Look(ListedProcess& known);
  bool LookAtStat(ListedProcess& known);
  bool RanSinceLook(ListedProcess& known) const;
  bool OwnerAllowed(int pid) const;
  bool EnvironmentNamesJob(int pid);
  void SpreadToDescendants();
  void UpdateTracked();
  void Track(ListedProcess& known);
  void RefreshThreads(TrackedProcess& process);
  void Release(TrackedProcess& process);
  KeptFile KeepBelowLimit(std::string_view path);
  // Of the file that is kept, else of the one at the path.
  template <class... Args>
  Result<std::string_view> ReadAt(const KeptFile& kept, fmt::format_string<const Args&...> path, const Args&... args);
  ListedProcess* Find(int pid);
  Status Findings();

  const RootedFs* proc_;
  ProcessScope scope_;
  Options options_;
  SlowPace pace_;
  ProcessClock clock_;
  bool first_scan_ = true;
  bool some_gone_ = false;  // of the tracked ones, since they were last forgotten
  size_t next_verified_ = 0;
  size_t kept_files_ = 0;
  size_t thread_count_ = 0;
  size_t processes_left_out_ = 0;
  size_t threads_left_out_ = 0;
  bool processes_reported_ = false;
  bool threads_reported_ = false;
  std::vector<int> listed_;               // sorted
  std::vector<int> tids_;                 // of the process at hand, sorted
  std::vector<ListedProcess> known_;              // sorted by pid
  std::vector<TrackedProcess*> tracked_;  // sorted by pid; point into known_
  std::string path_;
  TextBuffer buffer_{4096};   // of Read
  TextBuffer scratch_{4096};  // of scans
};

}  // namespace profd
