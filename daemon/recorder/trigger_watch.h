// Watches the conditions of recorder.triggers. A condition fires once when it begins to hold (long
// enough), and again only after it has ceased to: a card that stays hot is one event. Lives on the
// control strand; time and values are given to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/recorder/trigger.h"

namespace profd {

struct Firing {
  TriggerKind kind = TriggerKind::kThreshold;
  std::string trigger;  // as configured
  std::string detail;   // what was seen: the series and its value, the process, the step
  std::string job_id;
};

// One series that was fresh at the time of looking.
struct SeriesSample {
  MetricId metric = 0;
  std::span<const std::pair<std::string, std::string>> labels;
  double value = 0;
};

class TriggerWatch {
 public:
  // Takes the place of those there were; what is known of processes and devices stays.
  void SetTriggers(std::vector<Trigger> triggers) {
    triggers_ = std::move(triggers);
    conditions_.clear();
  }
  const std::vector<Trigger>& triggers() const { return triggers_; }
  // Whether any metric is of interest; if not, Look need not be called.
  bool WantsMetrics() const;
  // Whether one of the daemon's own is.
  bool WantsSelfMetrics() const;

  // About once a second: `visit` calls back for every fresh series.
  using Visit = std::function<void(const std::function<void(const SeriesSample&)>&)>;
  std::vector<Firing> Look(int64_t now_ns, const Visit& visit);

  // A process began (or ended) a step.
  std::vector<Firing> OnStep(uint64_t process, int64_t step, bool begin, int64_t now_ns);
  // Steps that have not ended in time; about once a second.
  std::vector<Firing> LookAtSteps(int64_t now_ns);
  // A process went.
  void OnGone(uint64_t process) { processes_.erase(process); }
  // It has ended without having detached; `who` names it.
  std::vector<Firing> OnCrashed(const std::string& who, const std::string& job_id) const;
  // A live check has found something.
  std::vector<Firing> OnAdvice(std::string_view check, const std::string& what, const std::string& job_id) const;
  // What OnStep's firings call the process; before its first step.
  void Name(uint64_t process, std::string who, std::string job_id);

 private:
  struct Condition {
    int64_t since_ns = 0;
    int64_t seen_ns = 0;
    bool fired = false;
  };
  struct Process {
    std::string who;
    std::string job_id;
    int64_t step = 0;
    int64_t begun_ns = 0;  // 0 = between steps
    bool fired = false;    // for this step
    std::vector<int64_t> durations;  // of the last steps, a ring
    size_t next = 0;
  };
  void LookAtThreshold(size_t index, const SeriesSample& sample, int64_t now_ns,
                       std::vector<Firing>* out);
  void LookAtErrors(const SeriesSample& sample, int64_t now_ns, std::vector<Firing>* out);
  void CheckStep(Process& process, int64_t took_ns, std::vector<Firing>* out);

  std::vector<Trigger> triggers_;
  std::map<std::pair<size_t, std::string>, Condition> conditions_;  // by trigger and series
  // error_code: what each device last reported, by metric and labels; and devices that have been read
  // before, whose faults are news.
  std::map<std::string, double> health_;
  std::map<std::string, int64_t> faults_;  // when last seen
  std::set<std::string> known_devices_;
  std::set<std::string> seen_devices_;
  std::map<uint64_t, Process> processes_;
};

}  // namespace profd
