// What is wrong now with the jobs of many nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rules/limits.h"
#include "client/commands/advise_live.h"
#include "client/fleet/fleet.h"

namespace profd::client {

// A rank that those of other nodes and of its own wait for.
struct WaitedFor {
  std::string job_id;
  std::string node;
  std::optional<int> rank;
  int32_t pid = 0;
  double behind_ms = 0;      // per step
  double share = 0;          // of the step
  int64_t steps_behind = 0;  // where only steps are known
};
// One for a job, if there is one. `apart_ms`: so much time may lie between what two nodes answer of, in which ranks make
// steps. Pure.
std::vector<WaitedFor> CompareRanks(const std::vector<NodeAdvice>& nodes, const analysis::Limits& limits, double apart_ms);

// Prints what all nodes say, and who is waited for; the exit code.
int AdviseOnAll(Fleet* fleet, const std::string& job_id, bool json);

}  // namespace profd::client
