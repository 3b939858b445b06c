#include "analysis/checks/check.h"

namespace profd::analysis {

std::optional<Finding> CheckDynamicShape(const CheckInput& input) {
  // A level that does not record the state says nothing.
  if (input.rank.op_states.empty() || input.rank.op_states.contains("static")) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = "Operators with dynamic shapes";
  finding.evidence = "not one operator was compiled for a static shape";
  finding.advice = {"At the begin of the script: torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format = False"};
  return finding;
}

}  // namespace profd::analysis
