#include <fmt/format.h>

#include <array>

#include "analysis/checks/check.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

double NumberOf(std::string_view text) {
  double value = 0;
  return ParseNumber(text, &value) ? value : 0;
}

// The requirement's table, and what the vendor's tool has added (analysis 1.3). Where they differ, the requirement's text
// decides: the tool wants log level 3, and no longer looks at ASCEND_ENHANCE_ENABLE.
struct Variable {
  std::string_view name;
  bool (*is_bad)(std::string_view value, const Limits& limits);
  std::string_view what;
  std::string_view advice;
};
constexpr auto kVariables = std::to_array<Variable>({
    {"ASCEND_GLOBAL_LOG_LEVEL", [](std::string_view value, const Limits&) { return !value.empty() && NumberOf(value) < 2; },
     "logs of the runtime are written at a level that costs time", "export ASCEND_GLOBAL_LOG_LEVEL=2 (warnings), or 3 (errors)"},
    {"HCCL_RDMA_TC", [](std::string_view value, const Limits&) { return !value.empty(); }, "the traffic class of RDMA is set by hand",
     "unset HCCL_RDMA_TC, unless the network needs it"},
    {"HCCL_RDMA_SL", [](std::string_view value, const Limits&) { return !value.empty(); }, "the service level of RDMA is set by hand",
     "unset HCCL_RDMA_SL, unless the network needs it"},
    {"ACLNN_CACHE_LIMIT", [](std::string_view value, const Limits& limits) { return NumberOf(value) < limits.At("environment", "aclnn_cache_limit"); },
     "few operators are kept on the host, others are prepared each time", "export ACLNN_CACHE_LIMIT=100000"},
    {"HOST_CACHE_CAPACITY", [](std::string_view value, const Limits&) { return value.empty() || value == "0"; },
     "nothing is kept on the host for dynamic shapes", "export HOST_CACHE_CAPACITY=20"},
    {"ASCEND_ENHANCE_ENABLE", [](std::string_view value, const Limits&) { return value != "1"; }, "collectives do without the FFTS+ mode",
     "export ASCEND_ENHANCE_ENABLE=1"},
    {"PYTORCH_NPU_ALLOC_CONF", [](std::string_view value, const Limits&) { return value.find("expandable_segments:True") == std::string_view::npos; },
     "segments of memory cannot grow: it is fragmented", "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"},
    {"ASCEND_LAUNCH_BLOCKING", [](std::string_view value, const Limits&) { return value == "1"; }, "each launch waits until it is done",
     "unset ASCEND_LAUNCH_BLOCKING"},
    {"HCCL_ALGO", [](std::string_view value, const Limits&) { return !value.empty(); }, "the algorithm of collectives is set by hand",
     "unset HCCL_ALGO: the library chooses"},
});

}  // namespace

std::optional<Finding> CheckEnvironment(const CheckInput& input) {
  Finding finding;
  finding.columns = {"variable", "value", "problem", "advice"};
  for (const Variable& variable : kVariables) {
    const auto found = input.rank.environment.find(std::string(variable.name));
    if (found == input.rank.environment.end() || !variable.is_bad(found->second, input.limits)) continue;
    finding.rows.push_back({variable.name, found->second, variable.what, variable.advice});
    finding.advice.emplace_back(variable.advice);
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.title = "Variables of the environment";
  finding.evidence = fmt::format("{} variables slow the training down", finding.rows.size());
  return finding;
}

}  // namespace profd::analysis
