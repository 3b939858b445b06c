// One rank of a job, as a process of its own: executes the plan of each step, through
// libascendcl and libprofd, and writes what it did into the ground truth.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "sim/app/job.h"
#include "sim/app/machine.h"
#include "sim/app/step_plan.h"

namespace profd::sim::app {

struct RankOptions {
  uint32_t rank = 0;
  int32_t device = 0;
  std::string folder;  // truth_<rank>.jsonl; where the ranks' groups meet
  std::string job_id;
};

class Trainer {
 public:
  Trainer(const Job& job, const Machine& machine, RankOptions options);
  // Until all steps are done.
  Status Run();

 private:
  Status Prepare();
  Status Step(int64_t step);
  Status Do(const Action& action);
  // A complete step as a graph, and one iteration of it.
  Status LoadGraph();
  Status ExecuteGraph(int64_t step, const std::vector<Action>& actions);
  Status Launch(const Action& action);
  void MarkInMstx(const std::string& name);
  Status Communicate(const Action& action);
  Status Copy(uint64_t bytes);
  Status Allocate(uint64_t bytes);
  void Pause(const std::string& name, int64_t ns);
  // On this machine, now.
  int64_t DurationOf(const Action& action) const;
  void Write(const char* what, const std::string& name, int64_t begin_ns);
  void* GroupHandle(const GroupOf& group);

  const Job& job_;
  const Machine& machine_;
  const RankOptions options_;
  const SystemClock clock_;
  void* streams_[kStreams] = {};
  void* event_ = nullptr;
  void* domain_ = nullptr;  // of mstx
  std::map<std::string, void*> groups_;
  std::vector<std::pair<std::string, int64_t>> ranges_;
  int64_t loaded_ns_ = 0;  // when the loader has the next batch
};

}  // namespace profd::sim::app
