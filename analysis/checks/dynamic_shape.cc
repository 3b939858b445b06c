#include "analysis/checks/check.h"

namespace profd::analysis {

std::optional<Finding> CheckDynamicShape(const CheckInput& input) {
  // A level that does not record the state gives no finding.
  if (!ShapesAreDynamic(input.rank)) return std::nullopt;
  // What is advised are calls of torch_npu.
  if (input.rank.source.starts_with("MindSpore")) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("Operators with dynamic shapes", "动态 shape 算子");
  finding.evidence = Text("not one operator was compiled for a static shape", "没有任何算子按静态 shape 编译");
  finding.advice = {kStaticCompileAdvice};
  finding.code = {kStaticCompileCode};
  return finding;
}

}  // namespace profd::analysis
