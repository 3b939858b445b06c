// What the processes of a session leave as files (aclprof): the copies under way into the session's dump, and what
// became of each. Control strand.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strand.h"
#include "daemon/jobs/collected_files.h"
#include "daemon/jobs/job_directory.h"

namespace profd {

// The files of one process.
struct ProcessFiles {
  pid_t pid = 0;
  std::string folder;  // of the dump
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t left_out = 0;
  std::string problem;  // what is missing and why; empty: all of it is there
};

class SessionFiles : public std::enable_shared_from_this<SessionFiles> {
 public:
  static constexpr int64_t kCopyNs = 120 * kNsPerSecond;
  // Of all processes together.
  static constexpr uint64_t kMaxFolders = 256;

  struct Deps {
    Strand& control;
    const Clock& clock;
    JobDirectory& directory;
    FileCopier& copier;
    // A new folder among the dump's own files; answers once, on any thread.
    std::function<void(const std::string& name, std::function<void(Result<UniqueFd>)> done)> make_folder;
    DumpOwner owner;
    uint64_t max_bytes = 0;  // of all processes together
    // No copy is under way any more.
    std::function<void()> on_idle;
  };
  explicit SessionFiles(Deps deps) : deps_(std::move(deps)) {}

  // A process of the session hands its directory over.
  void Take(const TrainingProcess& process, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory);
  bool idle() const { return under_way_ == 0; }
  const std::vector<ProcessFiles>& results() const { return results_; }
  // What is still under way comes too late for the dump; the processes are notified.
  void Abandon();

 private:
  struct Copy {
    uint64_t attach_id = 0;
    attach::CollectorReport report;
    uid_t user = 0;
    std::shared_ptr<UniqueFd> directory;
    ProcessFiles result;
  };
  void Begin(std::shared_ptr<Copy> copy, Result<UniqueFd> folder);
  void End(const std::shared_ptr<Copy>& copy, CopiedFiles copied);

  const Deps deps_;
  size_t under_way_ = 0;
  uint64_t folders_ = 0;
  uint64_t bytes_ = 0;
  bool abandoned_ = false;
  std::vector<ProcessFiles> results_;
};

}  // namespace profd
