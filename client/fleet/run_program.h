// Runs a helper of the cluster's (scontrol, kubectl) without a shell and returns what it printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace profd::client {

struct ProgramLimits {
  int64_t deadline_ms = 30'000;
  // Of what it prints; a program that prints more is ended.
  size_t max_output = size_t{64} << 20;
};

// argv[0] is looked for on `search_path`. Its stdin is empty. What it wrote to stderr is in the error
// when it is not there or does not end with 0 (kUnavailable), does not end in time (kDeadlineExceeded) or
// prints too much. It is gone when this returns.
Result<std::string> RunProgram(const std::vector<std::string>& argv, const std::string& search_path,
                               const ProgramLimits& limits = {});

}  // namespace profd::client
