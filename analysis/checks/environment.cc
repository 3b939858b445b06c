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
  Text what;
  Text advice;
  std::string_view code;
};
constexpr auto kVariables = std::to_array<Variable>({
    {"ASCEND_GLOBAL_LOG_LEVEL", [](std::string_view value, const Limits&) { return !value.empty() && NumberOf(value) < 2; },
     Text("logs of the runtime are written at a level that costs time", "运行时日志级别过低，影响性能"),
     Text("export ASCEND_GLOBAL_LOG_LEVEL=2 (warnings), or 3 (errors)", "export ASCEND_GLOBAL_LOG_LEVEL=2（warning），或 3（error）"), "export ASCEND_GLOBAL_LOG_LEVEL=2"},
    {"HCCL_RDMA_TC", [](std::string_view value, const Limits&) { return !value.empty(); }, 
     Text("the traffic class of RDMA is set by hand", "手工设置了 RDMA 的 traffic class"), Text("unset HCCL_RDMA_TC, unless the network needs it", "unset HCCL_RDMA_TC，除非网络要求设置"), "unset HCCL_RDMA_TC"},
    {"HCCL_RDMA_SL", [](std::string_view value, const Limits&) { return !value.empty(); }, 
     Text("the service level of RDMA is set by hand", "手工设置了 RDMA 的 service level"), Text("unset HCCL_RDMA_SL, unless the network needs it", "unset HCCL_RDMA_SL，除非网络要求设置"), "unset HCCL_RDMA_SL"},
    {"ACLNN_CACHE_LIMIT", [](std::string_view value, const Limits& limits) { return NumberOf(value) < limits.At("environment", "aclnn_cache_limit"); },
     Text("few operators are kept on the host, others are prepared each time", "Host 侧缓存的 aclnn 算子过少，其余每次都要重新准备"),
     Text("export ACLNN_CACHE_LIMIT=100000", "设置 export ACLNN_CACHE_LIMIT=100000"), "export ACLNN_CACHE_LIMIT=100000"},
    {"HOST_CACHE_CAPACITY", [](std::string_view value, const Limits&) { return value.empty() || value == "0"; },
     Text("nothing is kept on the host for dynamic shapes", "Host 侧未缓存动态 shape"), Text("export HOST_CACHE_CAPACITY=20", "设置 export HOST_CACHE_CAPACITY=20"), "export HOST_CACHE_CAPACITY=20"},
    {"ASCEND_ENHANCE_ENABLE", [](std::string_view value, const Limits&) { return value != "1"; }, Text("collectives do without the FFTS+ mode", "集合通信未使能 FFTS+ 模式"),
     Text("export ASCEND_ENHANCE_ENABLE=1", "设置 export ASCEND_ENHANCE_ENABLE=1"), "export ASCEND_ENHANCE_ENABLE=1"},
    {"PYTORCH_NPU_ALLOC_CONF", [](std::string_view value, const Limits&) { return value.find("expandable_segments:True") == std::string_view::npos; },
     Text("segments of memory cannot grow: it is fragmented", "内存段不可扩展：产生内存碎片"), Text("export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", "设置 export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"),
     "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"},
    {"ASCEND_LAUNCH_BLOCKING", [](std::string_view value, const Limits&) { return value == "1"; }, Text("each launch waits until it is done", "每次下发都要等待执行完成"),
     Text("unset ASCEND_LAUNCH_BLOCKING", "执行 unset ASCEND_LAUNCH_BLOCKING"), "unset ASCEND_LAUNCH_BLOCKING"},
    {"HCCL_ALGO", [](std::string_view value, const Limits&) { return !value.empty(); }, Text("the algorithm of collectives is set by hand", "手工指定了集合通信算法"),
     Text("unset HCCL_ALGO: the library chooses", "unset HCCL_ALGO：由通信库选择"), "unset HCCL_ALGO"},
});

}  // namespace

std::optional<Finding> CheckEnvironment(const CheckInput& input) {
  // They are PyTorch's.
  if (input.rank.source.starts_with("MindSpore")) return std::nullopt;
  Finding finding;
  finding.columns = {"variable", "value", "problem", "advice"};
  for (const Variable& variable : kVariables) {
    const auto found = input.rank.environment.find(std::string(variable.name));
    if (found == input.rank.environment.end() || !variable.is_bad(found->second, input.limits)) continue;
    finding.rows.push_back({variable.name, found->second, CellOf(variable.what), CellOf(variable.advice)});
    finding.code.push_back(variable.code);
  }
  if (finding.rows.empty()) return std::nullopt;
  finding.title = Text("Variables of the environment", "环境变量");
  finding.advice = {Text("Where the training is started, in each process:", "在启动训练的每个进程中设置：")};
  finding.evidence = Translate({"{:variable slows|variables slow} the training down", "{} 个环境变量使训练变慢"}, Counted{finding.rows.size()});
  return finding;
}

}  // namespace profd::analysis
