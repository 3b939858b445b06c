// The live checks: each a pure function of a job's facts, all of them in one table (checks.cc). What a check finds is
// reported, kept and withdrawn by the board (daemon/advice/board.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rules/limits.h"
#include "daemon/advice/facts.h"

namespace profd {

enum class Confidence : uint8_t { kHigh, kMedium, kLow };

struct LiveFinding {
  const RankFacts* rank = nullptr;  // null: the job
  std::optional<int> device = std::nullopt;
  // The value by its limit: from 1 on it is reported, down to live.clear_share it stays. Below it is not a finding.
  double strength = 0;
  std::string what = {};
  std::vector<std::string> evidence = {};
  std::optional<double> cost_ms = std::nullopt;  // of a step
  std::vector<std::string> advice = {};
  Confidence confidence = Confidence::kMedium;
  int64_t since_ns = 0;  // CLOCK_MONOTONIC_RAW; 0: since it was first seen
  std::optional<int64_t> step = std::nullopt;
};

struct LiveInput {
  const JobFacts& job;
  const analysis::Limits& limits;
};
using LiveFindings = std::vector<LiveFinding>;

struct LiveCheck {
  std::string_view id;
  std::string_view what;   // it looks for
  std::string_view needs;  // of data
  LiveFindings (*find)(const LiveInput&);
  bool said_at_once = false;  // without live.raise_s: what it measures took its time
  bool once_per_job = false;  // one at a time, whichever rank it names
};
// In the order of importance: of one rank the first cause is reported.
std::span<const LiveCheck> LiveChecks();

LiveFindings FindHang(const LiveInput& input);
LiveFindings FindSlowRank(const LiveInput& input);
LiveFindings FindSlowerSteps(const LiveInput& input);
LiveFindings FindSlowerComputation(const LiveInput& input);
LiveFindings FindSlowerCommunication(const LiveInput& input);
LiveFindings FindDataloader(const LiveInput& input);
LiveFindings FindGc(const LiveInput& input);
LiveFindings FindCompilation(const LiveInput& input);
LiveFindings FindAicpu(const LiveInput& input);
LiveFindings FindFreeTime(const LiveInput& input);
LiveFindings FindFullMemory(const LiveInput& input);

// Parts of several checks.

// What the hardware reports about the clock of a rank's devices: "NPU 3 runs at 1000 of 1800 MHz", ... None: nothing is wrong.
std::vector<std::string> ClockEvidence(const LiveInput& input, const RankFacts& rank);
// The same of the links and ports of all devices of the job.
std::vector<std::string> LinkEvidence(const LiveInput& input);
// The first step that took longer for good, of steps that took `before_ms` and take `now_ms`; null: none did.
const StepTime* FirstSlowerStep(std::span<const StepTime> steps, double before_ms, double now_ms);
// "rank 3", "process 4711"
std::string NameOf(const RankFacts& rank);
// A limit of time of all live checks; one of more than a century is one.
int64_t TimeLimitNs(const analysis::Limits& limits, std::string_view name);
// The device of a rank, if it is one alone.
std::optional<int> DeviceOf(const RankFacts& rank);

}  // namespace profd
