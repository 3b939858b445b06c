// The language of sampling.jobs: how often, and for how many steps, a job is recorded. Pure functions.
//
//   PATTERN off                     these jobs are not recorded
//   PATTERN KEY=NUMBER ...          with keys every_minutes, every_steps (0 = not by that), steps; the rest is
//                                   that of [sampling]
// A pattern has * and ? as in a shell; the first that matches a job's id counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd {

// Of the sessions it starts.
inline constexpr std::string_view kSamplingLabel = "sampling";

struct SamplingRule {
  std::string pattern = "*";
  bool off = false;
  int64_t every_minutes = 0;  // 0 = not by time
  int64_t every_steps = 0;    // 0 = not by steps
  int64_t steps = 0;          // of one recording

  bool Matches(const std::string& job_id) const;
};

inline constexpr int64_t kMostSamplingMinutes = 10080;  // a week
inline constexpr int64_t kMostSamplingEverySteps = 1'000'000'000;
inline constexpr int64_t kMostSamplingSteps = 1000;

// `usual`: what the text leaves out. kInvalidArgument with what is wrong and what would be right.
Result<SamplingRule> ParseSamplingRule(std::string_view text, const SamplingRule& usual);

// {"task_time=l1", ...} as the JSON object that PROFILING_OPTIONS would be, beside `collectors` ("hbm=10", ...).
// kInvalidArgument with all problems.
Result<std::string> SamplingOptions(const std::vector<std::string>& options, const std::vector<std::string>& collectors);

}  // namespace profd
