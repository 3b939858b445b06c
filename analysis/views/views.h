// The analyses: pure functions of a rank, one file each, all of them in one table (views.cc). What they make is JSON,
// which `profctl analyze --json` prints, the terminal's tables are made of, and the page shows. Times are ms unless the
// name says otherwise, counted from the begin of the rank where they are points in time.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "analysis/rank.h"
#include "analysis/run.h"

namespace profd::analysis {

using Json = nlohmann::ordered_json;

struct View {
  std::string_view name;  // the field of the rank, as --only has it
  Json (*make)(const Rank& rank);
  std::string_view what;  // for help
  bool details = false;   // it looks at counters and shapes of operators
};
std::span<const View> Views();

// A field of what they make; 0: it is no number.
double NumberOf(const Json& object, const char* name);
// Of intervals, what lies in the span.
double MsWithin(const Intervals& intervals, const Interval& span);
// None: nothing is known of its time.
std::optional<Overall> OverallOf(const Rank& rank);
Json OverallView(const Rank& rank);
Json StepsView(const Rank& rank);
Json StepAverageView(const Rank& rank);
Json StepPointsView(const Rank& rank);
Json StepDistributionView(const Rank& rank);
Json OperatorKindsView(const Rank& rank);
Json OperatorTypesView(const Rank& rank);
Json OperatorsView(const Rank& rank);
Json RooflineView(const Rank& rank);
Json MarksView(const Rank& rank);
Json CpuOperatorsView(const Rank& rank);
Json DataPipelineView(const Rank& rank);
// A stage of it (`bottleneck`, `stages`) as a person reads it.
std::string_view PipelineStageName(std::string_view stage);
Json TimelineView(const Rank& rank);
Json CommunicationView(const Rank& rank);
Json LinksView(const Rank& rank);
Json MemoryView(const Rank& rank);
Json HardwareView(const Rank& rank);
// How many steps, from the first on, it has means of; the others are one of ProblemsJson.
size_t HardwareStepsOf(const Rank& rank);
Json EnvironmentView(const Rank& rank);

// All slices and counters, for a page to draw; not one of the table. Lanes hold at most so many slices in all, the
// longest ones: `left_out` is how many others there were.
Json TimelineData(const Rank& rank, size_t most_slices);

// An object without space for one more field copies all that it holds into a larger one: for those that hold much.
void ReserveFields(size_t fields, Json* object);
// The run with these views, all if empty. A rank has space for another field, the run for some.
using ViewNames = std::set<std::string, std::less<>>;
Json RunJson(const Run& run, const ViewNames& only);
// One of its ranks; its problems.
Json RankJson(const Rank& rank, const ViewNames& only);
// [{"where": ..., "what": ...}]
Json ProblemsJson(const std::vector<Problem>& problems);
// `baseline_or_null`: its problems, too.
Json ProblemsJson(const Run& run, const Run* baseline_or_null);

// Dumps without a record of what the devices did: most analyses and checks have nothing to look at.
bool LacksOperators(const Run& run);

// What to look at first. `data` is the run as RunJson has it with all views.
Json Hints(const Run& run, const Json& data);
// The mean over complete steps of the communication between a step's start and its forward pass; 0 where it is not known.
double CommunicationInIntervalMs(const Rank& rank);

// What got slower from `baseline` to `run`, and by how much: of a step where both have steps, else of all that was recorded.
Json CompareView(const Run& run, const Run& baseline);

// Those that hardware's counters are shown by, the longest first: each one's places in Rank::operators, one for each shape.
std::vector<std::vector<int32_t>> LongestOperators(const Rank& rank);
// The begin of what was recorded; times of views count from it.
int64_t BeginOf(const Rank& rank);
// A number, or null.
template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json TextOrNull(const Rank& rank, TextId id);
inline Json StepOrNull(int64_t step) { return step < 0 ? Json() : Json(step); }
inline Json HostOf(const Rank& rank) { return rank.host.empty() ? Json() : Json(rank.host); }
// How the device spent its time in each step, by the step's number: what lies within it, or what the table of another
// tool says.
std::map<int64_t, Shares> StepSharesOf(const Rank& rank);
// False: of its device only communication was read, so what it computed, and when it was free, is not known.
bool KnowsComputing(const Rank& rank);
// False: dumps of several ranks without any communication (task_time=l0): what looks free may be waiting for another rank.
bool KnowsFreeTime(const Run& run);
// The mean of those steps that were recorded from begin to end, of all where none was; none: there are no steps.
struct MeanStep {
  double total_ms = 0;
  std::optional<Shares> shares;
};
std::optional<MeanStep> MeanWholeStepOf(const Rank& rank);
// What values per step are divided by: the steps, those of a dump only as far as the device was recorded in them (they
// may have begun long before). At least 1.
double StepsOf(const Rank& rank);
// Whether a rank has steps; else values per step are of all that was recorded.
bool HasSteps(const Rank& rank);
bool HasSteps(const Run& run);

}  // namespace profd::analysis
