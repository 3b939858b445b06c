// The training processes of one session while it lives: who has come and gone, which of them counts
// the steps, notifying them of the session's state. Control strand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

class SessionJob final : private JobWatcher {
 public:
  class Listener {
   public:
    // What the counting process reports of its steps. `last`: it answers that the last of the steps
    // this session is to last has ended.
    virtual void OnStep(const TrainingProcess& process, int64_t step, bool begin, bool last) = 0;
    virtual void OnMarks(const TrainingProcess& process, const MarkBatch& batch) = 0;
    virtual void OnActivity(const ActivityBatch& batch) = 0;
    virtual void OnActivityGivenUp(const TrainingProcess& process, const Status& why) = 0;
    virtual void OnCollector(const TrainingProcess& process, const attach::CollectorReport& report) = 0;
    // True: the session takes the directory.
    virtual bool OnFiles(const TrainingProcess& process, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory) = 0;
    // `attach_id` is that it had.
    virtual void OnGone(const TrainingProcess& process, uint64_t attach_id, bool in_good_order) = 0;
    // Another process of the job has attached.
    virtual void OnCome() = 0;
    // What is in the processes' rings is wanted now.
    virtual bool WantsRings() const = 0;

   protected:
    ~Listener() = default;
  };

  // `directory_or_null`: without one no process attaches, and only processes named by pid are known.
  SessionJob(JobDirectory* directory_or_null, SessionTargets targets, const NodeProcesses& processes,
             std::string session_id);

  // Calls the listener from now on, until one of the two goes.
  void Watch(Listener* listener);
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
  // Has a process lost its connection, not ended, and may attach again (its library does, or the program that it executes)?
  bool AwaitsReturn() const { return !silent_.empty(); }
  // True: one of those has ended since. Queries the kernel.
  bool ForgetEnded();
  // Is any process of it alive? Queries the kernel.
  bool AnyAlive() const;
  bool any() const { return !members_.empty(); }
  bool IsHere(uint64_t attach_id) const { return attached_.contains(attach_id); }
  const SessionTargets& targets() const { return targets_; }
  std::vector<TrainingProcess> Processes() const;
  void Fill(v1::SessionStatus* out) const;
  // Those that were named, else all that the processes of a job speak of; 0 = not known.
  uint32_t ExpectedRanks() const;

 private:
  // JobWatcher:
  void OnStep(uint64_t attach_id, const attach::StepReport& report) override;
  void OnAttached(const TrainingProcess& process) override;
  void OnDetached(const TrainingProcess& process, bool in_good_order) override;
  bool Wants(uint64_t attach_id) const override { return attached_.contains(attach_id) && listener_->WantsRings(); }
  void OnMarks(const MarkBatch& batch) override;
  void OnActivity(const ActivityBatch& batch) override;
  void OnActivityGivenUp(uint64_t attach_id, const Status& why) override;
  void OnCollector(uint64_t attach_id, const attach::CollectorReport& report) override;
  bool OnFiles(uint64_t attach_id, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory) override;
  bool Lives(pid_t pid) const;
  // The member of this connection; nothing: there is none.
  std::optional<TrainingProcess> MemberOf(uint64_t attach_id) const;

  JobDirectory* const directory_;
  const SessionTargets targets_;
  const NodeProcesses& processes_;
  const std::string session_id_;
  Listener* listener_ = nullptr;  // null: not watching
  // By pid. A process that detached stays for as long as it lives; its successor replaces it.
  std::map<pid_t, TrainingProcess> members_;
  std::set<pid_t> silent_;  // of the members: without a connection, but without a farewell
  std::unordered_set<uint64_t> attached_;  // of the members: asked for each ring in each round
  std::optional<attach::SessionNotice> notice_;
  std::shared_ptr<void> watch_;
};

}  // namespace profd
