// `profctl stacks`: where the threads of training processes stand now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

struct StacksOptions {
  std::string job;
  std::optional<std::string> ranks;
  std::vector<std::string> pids;
  // Every thread of each process.
  bool all = false;
};

// Adds what is wrong with the options.
v1::GetStacksRequest BuildStacksRequest(const StacksOptions& options, std::vector<std::string>* problems);
int RunStacks(const Context& context, const StacksOptions& options);

// Parts of the answer, for one node and for many. A node's name is shown where it is not empty.
struct NodeStacks {
  std::string node;
  v1::GetStacksResponse answer;
};
// Processes that stand at the same place once, the smallest group first; with `all` each process with all its threads.
void PrintStacks(const Io& io, const std::vector<NodeStacks>& nodes, bool all);

}  // namespace profd::client
