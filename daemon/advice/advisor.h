// Watches the jobs of this node with what the daemon has anyway (steps, marks, activity, hardware and host values) and
// reports what is wrong now. Query it (Describe), watch it (Watch), or be notified of each change. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/advice/board.h"
#include "daemon/advice/hardware.h"
#include "daemon/advice/history.h"
#include "daemon/session/peer.h"

namespace profd {

class SelfMetrics;

namespace v1 {
class GetAdviceRequest;
class GetAdviceResponse;
}  // namespace v1

class Advisor final : private JobWatcher {
 public:
  struct Deps {
    Strand& control;
    JobDirectory& jobs;
    const MetricStore& store;
    const Clock& clock;
    // The state of a process as the kernel has it ('S', 'T', ...); 0: not known. Must not wait.
    std::function<char(pid_t)> state_of;
    std::function<void(const AdviceChange&)> on_change;  // which has been logged
  };
  // Processes beyond these are not watched.
  static constexpr size_t kMaxProcesses = 256;

  // `limits` as ParseAdviceLimits gave them.
  Advisor(Deps deps, analysis::Limits limits);
  ~Advisor();

  // Watches jobs from now on. Once.
  void Begin();
  void SetLimits(analysis::Limits limits) {
    DCHECK_ON(deps_.control);
    board_.SetLimits(std::move(limits));
  }
  // About once a second.
  void Tick();

  Status Describe(const Peer& peer, const v1::GetAdviceRequest& request_untrusted, v1::GetAdviceResponse* out) const;
  void UpdateMetrics(SelfMetrics* self) const;
  const AdviceBoard& board() const { return board_; }

  // `changed` is called after each look that changed something, until Unwatch.
  uint64_t Watch(std::function<void()> changed);
  void Unwatch(uint64_t watch) { watches_.erase(watch); }

 private:
  struct JobPast {
    Baseline transfer;
    int64_t seen_ns = 0;
  };
  using JobKey = std::tuple<std::string, uint32_t, pid_t>;  // the process: of one without a job

  // JobWatcher:
  bool Wants(uint64_t) const override { return true; }
  bool Hurries() const override { return false; }
  void OnAttached(const TrainingProcess& process) override { attach_ids_[process.pid] = process.attach_id; }
  void OnDetached(const TrainingProcess& process, bool in_good_order) override;
  void OnMarks(const MarkBatch& batch) override;
  void OnActivity(const ActivityBatch& batch) override;
  void OnCollector(uint64_t attach_id, const attach::CollectorReport& report) override;
  void LookAtJobs();
  RankHistory* HistoryOf(uint64_t attach_id);
  std::vector<JobFacts> Look(const std::vector<TrainingProcess>& processes, int64_t now_ns);
  void LookAtStates(JobFacts* job) const;
  void LookAtTransfer(JobFacts* job, JobPast* past) const;

  Deps deps_;
  AdviceBoard board_;
  HardwareWatch hardware_;
  std::map<uint64_t, RankHistory> histories_;  // by attach id
  std::map<pid_t, uint64_t> attach_ids_;
  std::map<JobKey, JobPast> pasts_;
  std::vector<JobFacts> jobs_;  // as of the last look
  int64_t look_ns_ = 0;         // that it took
  std::map<uint64_t, std::function<void()>> watches_;
  uint64_t next_watch_ = 1;
  std::shared_ptr<void> watching_;
};

// advice.limits: "check.name=number" each.
Result<analysis::Limits> ParseAdviceLimits(const std::vector<std::string>& texts);

}  // namespace profd
