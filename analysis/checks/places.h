// Where in a program a finding comes from: call stacks that the framework's profiler recorded, as
// files and lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/checks/check.h"

namespace profd::analysis {

// One frame of "train.py(7): forward"; a text of another form has neither.
struct Frame {
  std::string_view file;
  int64_t line = 0;
  std::string_view function;
};

// Of a stack as Rank::stacks has it, the innermost first; what is not a frame is left out.
std::vector<Frame> FramesOf(std::string_view stack);
// The innermost frame that is neither Python's own nor an installed package's, else the innermost.
// Needs one.
const Frame& OwnFrame(const std::vector<Frame>& frames);

// The stack of the innermost framework operator around a time on the host; empty: none was
// recorded.
std::string_view StackAt(const Rank& rank, int64_t t_ns);
// The same of what launched executions; by the numbers of `executions`.
std::vector<std::string_view> StacksOfLaunches(const Rank& rank,
                                               const std::vector<uint32_t>& executions);

// {"file", "line", "function", "stack": [...]} for each stack, each place once.
Json PlacesOf(const std::vector<std::string>& stacks);

}  // namespace profd::analysis
