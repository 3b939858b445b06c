// What the processes of a session leave as files (aclprof): the copies into the session's dump, one after the other, and
// what became of each. Control strand.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "daemon/data/process_files_dump.h"
#include "daemon/jobs/collected_files.h"
#include "daemon/jobs/job_directory.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SessionFiles : public std::enable_shared_from_this<SessionFiles> {
 public:
  // Of one process.
  static constexpr int64_t kCopyNs = 120 * kNsPerSecond;
  // Of all processes together.
  static constexpr uint64_t kMaxFolders = 256;

  struct Deps {
    Strand& control;
    const Clock& clock;
    JobDirectory& directory;
    FileCopier& copier;
    std::shared_ptr<ProcessFilesDump> dump;
    DumpOwner owner;
    // No copy is under way any more.
    std::function<void()> on_idle;
  };
  explicit SessionFiles(Deps deps) : deps_(std::move(deps)) {}

  // A process of the session hands its directory over.
  void Take(const TrainingProcess& process, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory);
  // Processes whose files are still to be copied.
  size_t pending() const { return waiting_.size() + (copying_ ? 1 : 0); }
  bool idle() const { return waiting_.empty() && !copying_; }
  const std::vector<ManifestProcessFiles>& results() const { return results_; }
  // Where the dump has put them.
  void SetPlaced(std::vector<ManifestProcessFiles> placed) { results_ = std::move(placed); }
  // What is still being copied is too late for the dump; the processes are notified.
  void Abandon();

 private:
  struct Copy {
    uint64_t attach_id = 0;
    attach::CollectorReport report;
    uid_t user = 0;
    std::shared_ptr<UniqueFd> directory;
    ManifestProcessFiles facts;
  };
  void Next();
  void Begin(std::shared_ptr<Copy> copy, Result<UniqueFd> folder);
  void End(const std::shared_ptr<Copy>& copy, CopiedFiles copied);

  const Deps deps_;
  std::deque<std::shared_ptr<Copy>> waiting_;
  bool copying_ = false;
  uint64_t folders_ = 0;
  bool abandoned_ = false;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<ManifestProcessFiles> results_;
};

// Options that leave files leave them together: each has the bytes of all, and where they are.
void AddFiles(std::span<const ManifestProcessFiles> files, v1::Outcome* out);

}  // namespace profd
