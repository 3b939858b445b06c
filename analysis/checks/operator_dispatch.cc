#include <fmt/format.h>

#include "analysis/checks/check.h"

namespace profd::analysis {

std::optional<Finding> CheckOperatorDispatch(const CheckInput& input) {
  const Rank& rank = input.rank;
  const Calls calls = CallsOf(rank, [](std::string_view name) { return ApiOf(name) == "aclopCompileAndExecute"; });
  if (static_cast<double>(calls.count) < input.limits.At("operator_dispatch", "count")) return std::nullopt;
  const double ms = Ms(calls.ns);
  Finding finding;
  finding.priority = PriorityOf(ms, LastStepMs(rank), input.limits);
  finding.cost_ms = PerStep(rank, ms);
  finding.title = Text("Operators are compiled while training", "训练过程中编译算子");
  finding.evidence = Say({"{} operators were compiled and executed at once, {:.3f} ms in all", "{} 个算子在下发时编译并执行，共 {:.3f} ms"}, calls.count, ms);
  finding.advice = {kStaticCompileAdvice};
  finding.code = {kStaticCompileCode};
  finding.columns = {"api", "calls", "total_ms"};
  finding.rows.push_back({"aclopCompileAndExecute", calls.count, ms});
  finding.at_ns = calls.first_ns;
  return finding;
}

}  // namespace profd::analysis
