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
  finding.title = "Operators are compiled while training";
  finding.evidence = fmt::format("{} operators were compiled and executed at once, {:.3f} ms in all", calls.count, ms);
  finding.advice = {"At the begin of the script: torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = False"};
  finding.columns = {"api", "calls", "total_ms"};
  finding.rows.push_back({"aclopCompileAndExecute", calls.count, ms});
  finding.at_ns = calls.first_ns;
  return finding;
}

}  // namespace profd::analysis
