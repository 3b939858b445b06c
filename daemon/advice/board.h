// What is wrong now: raises what the live checks find, keeps it while it holds, takes it back. A condition must hold for
// live.raise_s before it is reported, and not hold for live.clear_s before it is taken back; between its limit and
// live.clear_share of it nothing changes. So many of a job at once (live.most_per_job), the most important ones; what is
// suppressed is counted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/advice/checks.h"

namespace profd {

struct LiveAdvice {
  uint64_t id = 0;         // of this time that it was raised
  std::string_view check;  // of LiveChecks()
  std::string job_id;
  uint32_t uid = 0;
  std::optional<int> rank;
  pid_t pid = 0;  // 0: of the job
  std::optional<int> device;
  std::string what;
  std::vector<std::string> evidence;
  std::vector<std::string> advice;
  std::optional<double> cost_ms;  // of a step
  Confidence confidence = Confidence::kMedium;
  int64_t since_ns = 0;   // wall clock
  int64_t raised_ns = 0;  // wall clock
  std::optional<int64_t> step;
};

// "job j42, rank 3, device 1"; of a process without a job "process 4711".
std::string WhereOf(const LiveAdvice& advice);

struct AdviceChange {
  LiveAdvice advice;
  bool raised = false;  // else cleared
};

class AdviceBoard {
 public:
  // Conditions that are followed, and advices at the same time, of all jobs.
  static constexpr size_t kMaxConditions = 1024;
  static constexpr size_t kMaxRaised = 128;

  explicit AdviceBoard(analysis::Limits limits = {}) : limits_(std::move(limits)) {}
  void SetLimits(analysis::Limits limits) { limits_ = std::move(limits); }
  const analysis::Limits& limits() const { return limits_; }

  // All jobs, about once a second: runs the checks. What is of a job or process that is not there any more is cleared.
  std::vector<AdviceChange> Update(const std::vector<JobFacts>& jobs, int64_t now_ns, int64_t wall_ns);

  // Those that hold, in the order of jobs, and of the checks in their table; of a job that hangs the hang only.
  std::vector<const LiveAdvice*> Raised() const;
  // By the check's place in LiveChecks().
  const std::vector<uint64_t>& raised_total() const { return raised_total_; }
  uint64_t suppressed_total() const { return suppressed_total_; }

 private:
  // Job, user, check by its place in the table, process, device.
  using Key = std::tuple<std::string, uint32_t, size_t, pid_t, int>;
  struct Condition {
    int64_t above_ns = 0;  // since when it is above its limit; 0: it is not
    int64_t held_ns = 0;   // when it held last
    bool raised = false;
    bool suppressed = false;
    LiveAdvice advice;
  };

  void Look(const JobFacts& job, size_t check, int64_t now_ns, int64_t wall_ns, std::vector<AdviceChange>* changes);
  void Follow(const Key& key, const LiveFinding& finding, const JobFacts& job, int64_t now_ns, int64_t wall_ns,
              std::vector<AdviceChange>* changes);
  bool Raises(const Key& key, const LiveFinding& finding, const JobFacts& job, Condition* condition, int64_t now_ns,
              std::vector<AdviceChange>* changes);
  bool MakesPlace(size_t check, const JobFacts* job_or_null, std::vector<AdviceChange>* changes);
  bool Has(const JobFacts& job, std::string_view check, pid_t pid) const;
  size_t RaisedOf(const JobFacts& job) const;

  analysis::Limits limits_;
  std::map<Key, Condition> conditions_;
  std::vector<uint64_t> raised_total_ = std::vector<uint64_t>(LiveChecks().size());
  uint64_t suppressed_total_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace profd
