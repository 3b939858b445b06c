// Copies what a training process's profiler wrote out of the process's own directory, which is received as a
// descriptor. The tree is the process's and untrusted: it may change while it is read, it may never end, and
// the file system under it may not answer. What does not belong to the process's user stays where it is,
// so that no process can have files copied that it could not read itself.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/strand.h"
#include "driver/guarded_thread.h"
#include "dump/dump_io.h"
#include "dump/manifest.h"
#include "dump/process_files.h"

namespace profd {

struct CopyLimits {
  int depth = 6;  // folders below the directory
  uint64_t entries = 100'000;
  uint64_t files = 20'000;
  uint64_t bytes = 0;
  uint64_t free_bytes = 20'000'000;  // that stay free on the volume of the copy
  int64_t until_steady_ns = 0;
  // Reserves bytes of the dump's limit before a file is written; kResourceExhausted refuses the file, other errors end
  // the copy. May wait until then. Null: no limit.
  std::function<Status(uint64_t bytes)> reserve = nullptr;
  // Set when what is still to come is not wanted any more.
  std::shared_ptr<const std::atomic<bool>> cancelled = nullptr;
};

struct CopiedFiles {
  static constexpr size_t kMaxExamples = 16;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t left_out = 0;  // entries
  uint64_t left_out_bytes = 0;
  std::vector<ManifestProcessFiles::Example> examples;  // paths of printable ASCII
  std::vector<ProcessFile> list;  // what was copied
  uint64_t reserved = 0;          // by CopyLimits::reserve, of which `bytes` are taken
  Status status;  // not ok: it ended early and there may be more, or a limit has refused files
};

// Where from and where to; the descriptors stay the caller's.
struct CopyPlaces {
  int from = -1;
  uid_t user = 0;  // whose files may be copied
  int to = -1;     // a new and empty folder
  DumpOwner owner;  // of all that is made there
};

// Of `from` only folders and regular files of `user` with one name, on one file system, with names that may be in a
// dump, as long as they are when they are opened. May block as long as the file system below `from` does.
CopiedFiles CopyTree(const CopyPlaces& places, const CopyLimits& limits, const Clock& clock,
                     DumpIo& io = SystemDumpIo());

// Copies on threads of its own, one for each user at a time, so that a user whose file system does not answer
// keeps no other user waiting. Lives on the control strand.
class FileCopier {
 public:
  static constexpr size_t kMaxThreads = 4;

  // `io` outlives the threads, also one that is left behind.
  FileCopier(Strand& control, const Clock& clock, DumpIo& io = SystemDumpIo())
      : control_(control), clock_(clock), io_(io) {}

  struct Request {
    UniqueFd from;
    uid_t user = 0;  // whose files may be copied
    UniqueFd to;
    DumpOwner owner;
    CopyLimits limits;
  };
  // `done` on the control strand, exactly once as long as that runs, at the latest a little after
  // limits.until_steady_ns. What had been copied by then is in `to` in any case.
  void Copy(Request request, std::function<void(CopiedFiles)> done);
  // Every 50 ms or so.
  void CheckDeadlines(int64_t now_steady_ns);
  bool stuck() const;

 private:
  struct Worker {
    uid_t user = 0;
    std::shared_ptr<size_t> waiting = std::make_shared<size_t>(0);  // requests not yet answered
    std::unique_ptr<GuardedThread> thread;
  };
  // Null: all are at work for others.
  Worker* WorkerFor(uid_t user);

  Strand& control_;
  const Clock& clock_;
  DumpIo& io_;
  std::vector<Worker> workers_;
};

}  // namespace profd
