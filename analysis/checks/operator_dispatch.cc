#include <algorithm>

#include "analysis/checks/check.h"
#include "analysis/rules/host_work.h"

namespace profd::analysis {
namespace {

// Ranges of the application that say it, in the steps that costs are of.
Calls MarkedCompilations(const Rank& rank) {
  Calls calls;
  const auto begin = std::ranges::find_if(rank.steps, [](const Step& step) { return step.number >= kFirstSteps; });
  const int64_t from_ns = rank.steps.empty() ? INT64_MIN : begin == rank.steps.end() ? INT64_MAX : begin->start_ns;
  for (const Mark& mark : rank.marks) {
    if (mark.is_instant || mark.start_ns < from_ns || !IsInSteps(rank, mark.start_ns) || HostWorkOf(rank.TextOf(mark.name)) != HostWork::kCompile) continue;
    ++calls.count;
    calls.ns += mark.end_ns - mark.start_ns;
    if (!calls.first_ns) calls.first_ns = mark.start_ns;
  }
  return calls;
}

}  // namespace

std::optional<Finding> CheckOperatorDispatch(const CheckInput& input) {
  const Rank& rank = input.rank;
  const double least = input.limits.At("operator_dispatch", "count");
  Calls calls = CallsOf(input, [](std::string_view name) { return ApiOf(name) == "aclopCompileAndExecute"; });
  const bool by_calls = static_cast<double>(calls.count) >= least;
  if (!by_calls) calls = MarkedCompilations(rank);
  if (static_cast<double>(calls.count) < least) return std::nullopt;
  const double ms = Ms(calls.ns);
  Finding finding;
  finding.priority = PriorityOf(ms, StepLengthMs(input), input.limits);
  // Marks are those of all steps.
  finding.cost_ms = by_calls ? CostOf(input, ms) : PerStep(rank, ms);
  if (by_calls) finding.step = input.StepNumber();
  finding.title = Text("Operators are compiled while training", "训练过程中编译算子");
  finding.evidence = by_calls ? Translate({"{:operator was|operators were} compiled and executed at once, {:.3f} ms in all", "{} 个算子在下发时编译并执行，共 {:.3f} ms"}, Counted{calls.count}, ms)
                              : Translate({"{:marked range} of compilation behind the first steps, {:.3f} ms in all", "前几个 step 之后有 {} 个编译区间标记，共 {:.3f} ms"}, Counted{calls.count}, ms);
  finding.advice = {kStaticCompileAdvice};
  finding.code = {kStaticCompileCode};
  finding.columns = {"api", "calls", "total_ms"};
  finding.rows.push_back({by_calls ? "aclopCompileAndExecute" : "compile", calls.count, ms});
  finding.at_ns = calls.first_ns;
  return finding;
}

}  // namespace profd::analysis
