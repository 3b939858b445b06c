// Scheduled recording ([sampling]): every so many minutes or steps a few steps of each job's operators are recorded, so
// that there is always a recent profile. Each recording is an ordinary session of the job's user, labelled "sampling",
// within that user's limits; the oldest of a job are removed beyond sampling.keep. A job that is profiled by a session
// anyway is left alone, and recordings take at most sampling.max_percent of a job's time.
//
// Lives on the control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "daemon/config/daemon_config.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/session/dump_requests.h"
#include "daemon/session/sampling_rule.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/session_records.h"

namespace profd {

class SelfMetrics;

class ScheduledRecording {
 public:
  struct Deps {
    Strand& control;
    const Clock& clock;
    SessionManager& sessions;
    const SessionRecords& records;
    DumpRequests& dumps;
    JobDirectory& jobs;
    // Supplementary groups of a process, which decide what its user may use.
    std::function<std::vector<uint32_t>(pid_t)> groups_of;
  };
  struct Counts {
    uint64_t started = 0;
    uint64_t busy = 0;    // postponed: a session profiled the job
    uint64_t failed = 0;  // refused, or ended without a dump
  };

  ScheduledRecording(Deps deps, const DaemonConfig& config);

  void Configure(const DaemonConfig& config);
  // About once a second.
  void Tick();
  void UpdateMetrics(SelfMetrics* self) const;
  const Counts& counts() const { return state_->counts; }

 private:
  using Key = std::pair<uint32_t, std::string>;  // uid, job id
  struct Job {
    const TrainingProcess* process = nullptr;  // the attached one of the lowest rank; of this tick
    int64_t due_ns = 0;                        // steady clock; by time
    int64_t due_step = 0;                      // by steps
    int64_t not_before_ns = 0;                 // steady clock; whatever is due
    int64_t began_ns = 0;
    std::string session;  // being recorded
    bool starting = false;
  };
  // What answers of sessions need: they may come after this object has gone.
  struct State {
    std::map<Key, Job> jobs;
    Counts counts;
  };

  void FindJobs(const std::vector<TrainingProcess>& processes);
  const SamplingRule* RuleOf(const std::string& job_id) const;
  bool IsDue(const Job& job, const SamplingRule& rule, int64_t now_ns) const;
  void Look(const Key& key, Job* job);
  void Finish(const Key& key, Job* job);
  bool IsProfiled(const Key& key, const Job& job, const SamplingRule& rule) const;
  v1::SessionSpec SpecOf(const Key& key, const Job& job, const SamplingRule& rule) const;
  void Start(const Key& key, Job* job, const SamplingRule& rule);
  void Evict(const Key& key);
  void EvictForgotten(const Key& key, size_t keep);

  Deps deps_;
  DaemonConfig config_;
  std::vector<SamplingRule> rules_;  // the last one is for all other jobs
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace profd
