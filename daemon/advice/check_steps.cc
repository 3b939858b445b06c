// By steps alone: hangs, and steps that became slower.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/advice/checks.h"

namespace profd {
namespace {

// Fewer steps have no usual duration.
constexpr uint64_t kStepsNeeded = 3;
// Between two steps a job writes checkpoints and evaluates: it has so many times as long.
constexpr double kBetweenSteps = 4;
// Of the time after which a rank hangs.
constexpr double kSoonStands = 0.5;

bool Stands(char state) { return state == 'T' || state == 't' || state == 'D' || state == 'Z'; }

std::string_view WordOf(char state) {
  switch (state) {
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'D':
      return "waiting in the kernel";
    case 'Z':
      return "ended, and not collected by its parent";
    case 'S':
      return "sleeping";
    default:
      return "running";
  }
}

double StrengthOf(const LiveInput& input, const RankFacts& rank) {
  if (rank.steps_done < kStepsNeeded || rank.step_ms <= 0 || rank.last_step_ns == 0) return 0;
  const double ms = static_cast<double>(input.job.now_ns - rank.last_step_ns) / 1e6;
  double most_ms = std::max(input.limits.At("hang", "multiple") * rank.step_ms, input.limits.At("hang", "least_s") * 1e3);
  if (!rank.in_step) most_ms *= kBetweenSteps;
  return ms / most_ms;
}

}  // namespace

// All ranks of a job stand when one does: the one that is stopped, or the furthest behind, is named. Steps of ranks do
// not end at one moment: those that soon stand too long are looked at with the first that does.
LiveFindings FindHang(const LiveInput& input) {
  const RankFacts* first = nullptr;
  double strength = 0;
  size_t standing = 0;
  for (const RankFacts& rank : input.job.ranks) {
    const double of_rank = StrengthOf(input, rank);
    if (of_rank < kSoonStands) continue;
    ++standing;
    strength = std::max(strength, of_rank);
    const auto order = [](const RankFacts& one) { return std::pair(!Stands(one.state), one.step.value_or(0)); };
    if (first == nullptr || order(rank) < order(*first)) first = &rank;
  }
  // A hang is over with the next step, not when it gets shorter.
  if (strength < 1) return {};
  LiveFinding finding{.rank = first, .device = DeviceOf(*first), .strength = strength, .since_ns = first->last_step_ns,
                      .step = first->step};
  const double seconds = static_cast<double>(input.job.now_ns - first->last_step_ns) / 1e9;
  finding.what = fmt::format("no step ends: {} has been in step {} for {:.0f} s, usual are {:.1f} ms", NameOf(*first),
                             first->step.value_or(0), seconds, first->step_ms);
  finding.evidence.push_back(fmt::format("{} of {} ranks of this node stand", standing, input.job.ranks.size()));
  if (first->state != 0) finding.evidence.push_back(fmt::format("its process is {}", WordOf(first->state)));
  if (first->last_kernel_ns != 0) {
    finding.evidence.push_back(fmt::format("its last kernel that is known ended {:.1f} s ago",
                                           static_cast<double>(input.job.now_ns - first->last_kernel_ns) / 1e9));
  }
  finding.confidence = Stands(first->state) ? Confidence::kHigh : Confidence::kMedium;
  if (first->state == 'T') finding.advice.emplace_back("Let the process go on (SIGCONT), or end the job.");
  finding.advice.emplace_back("Look at the stacks of the threads, first of the ranks that are elsewhere than the others.");
  finding.advice.emplace_back("Where it waits in communication, look for the missing rank on all nodes of the job.");
  return {finding};
}

LiveFindings FindSlowerSteps(const LiveInput& input) {
  const RankFacts* worst = nullptr;
  double growth = 0;
  for (const RankFacts& rank : input.job.ranks) {
    if (rank.before_ms <= 0 || rank.step_ms <= 0) continue;
    const double of_rank = rank.step_ms / rank.before_ms - 1;
    if (worst == nullptr || of_rank > growth) {
      worst = &rank;
      growth = of_rank;
    }
  }
  if (worst == nullptr) return {};
  LiveFinding finding;
  finding.strength = growth / input.limits.At("steps_slower", "ratio");
  if (finding.strength <= 0) return {};
  finding.cost_ms = worst->step_ms - worst->before_ms;
  finding.what = fmt::format("steps take {:.1f} ms, {:.0f} % longer than before ({:.1f} ms)", worst->step_ms, growth * 100, worst->before_ms);
  if (const StepTime* first = FirstSlowerStep(worst->steps, worst->before_ms, worst->step_ms); first != nullptr) {
    finding.step = first->step;
    finding.since_ns = first->end_ns - first->duration_ns;
    finding.evidence.push_back(fmt::format("since step {} of {}", first->step, NameOf(*worst)));
  }
  finding.confidence = Confidence::kHigh;
  finding.advice.emplace_back("See the other advice of this job for the cause; without any, collect activity (options task_time = l1, msproftx = on).");
  return {finding};
}

}  // namespace profd
