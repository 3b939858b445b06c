// The training processes of one session while it lives: who has come and gone, which of them counts
// the steps, notifying them of the session's state. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/jobs/job_directory.h"
#include "daemon/node/node_access.h"
#include "daemon/session/session_targets.h"

namespace profd {

namespace v1 {
class SessionStatus;
}

class SessionJob {
 public:
  struct Events {
    // What the counting process reports of its steps. `last`: it answers that the last of the steps
    // this session is to last has ended.
    std::function<void(const TrainingProcess&, int64_t step, bool begin, bool last)> on_step;
    std::function<void(const TrainingProcess&, const MarkBatch&)> on_marks;
    std::function<void(const ActivityBatch&)> on_activity = nullptr;
    std::function<void(const TrainingProcess&, const attach::CollectorReport&)> on_collector = nullptr;
    // True: the session takes the directory.
    std::function<bool(const TrainingProcess&, const attach::CollectorReport&, std::shared_ptr<UniqueFd>)> on_files =
        nullptr;
    // `attach_id` is that it had.
    std::function<void(const TrainingProcess&, uint64_t attach_id, bool in_good_order)> on_gone;
    // Another process of the job has attached.
    std::function<void()> on_come = nullptr;
  };

  // `directory_or_null`: without one no process attaches, and only processes named by pid are known.
  SessionJob(JobDirectory* directory_or_null, SessionTargets targets, const NodeProcesses& processes,
             std::string session_id);

  // Events from now on, until the object goes. `with_rings`: what is in their rings is wanted now.
  void Watch(Events events, std::function<bool()> with_rings);
  // Notifies every attached process, and those that attach later: "armed", "running", "ended".
  void Notify(attach::SessionNotice notice);
  // No more events.
  void Leave() { watch_.reset(); }
  // The last marks, before an end.
  void Drain();
  // Devices of members that were found out since.
  void Refresh();

  // The attached process with the lowest rank; null if none is attached.
  const TrainingProcess* CountingProcess() const;
  // Is any process of it alive? Queries the kernel.
  bool AnyAlive() const;
  bool any() const { return !members_.empty(); }
  bool IsHere(uint64_t attach_id) const { return attached_.contains(attach_id); }
  const SessionTargets& targets() const { return targets_; }
  std::vector<TrainingProcess> Processes() const;
  void Fill(v1::SessionStatus* out) const;

 private:
  void Join(const TrainingProcess& process);
  void OnStep(uint64_t attach_id, const attach::StepReport& report);
  void OnMarks(const MarkBatch& batch);
  void OnActivity(const ActivityBatch& batch);
  void OnCollector(uint64_t attach_id, const attach::CollectorReport& report);
  bool OnFiles(uint64_t attach_id, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory);
  // The member of this connection; nothing: there is none.
  std::optional<TrainingProcess> MemberOf(uint64_t attach_id) const;
  void OnDetached(const TrainingProcess& process, bool in_good_order);

  JobDirectory* const directory_;
  const SessionTargets targets_;
  const NodeProcesses& processes_;
  const std::string session_id_;
  Events events_;
  // By pid. A process that detached stays for as long as it lives; its successor replaces it.
  std::map<pid_t, TrainingProcess> members_;
  std::unordered_set<uint64_t> attached_;  // of the members: asked for each ring in each round
  std::optional<attach::SessionNotice> notice_;
  std::shared_ptr<void> watch_;
};

}  // namespace profd
