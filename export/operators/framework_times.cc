#include "export/operators/framework_times.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

// At level 0 the kind of core is only in the runtime's type.
bool IsOnCores(const Model& model, const TaskRow& row, const HostTask& host) {
  const std::string core = model.detailed ? std::string(model.CoreType(host)) : model.TaskType(row);
  for (const std::string_view known : {"AI_CORE", "AI_VECTOR_CORE", "KERNEL_AICORE", "KERNEL_AIVEC"}) {
    if (core == known) return true;
  }
  return false;
}

}  // namespace

void ForEachFrameworkKernel(const Model& model, const std::function<void(const FrameworkKernel&)>& each) {
  if (model.framework == nullptr) return;
  std::unordered_map<uint32_t, bool> copies;  // by runtime type
  for (const TaskRow& row : model.rows) {
    const HostTask* host = model.HostOf(row);
    if (host == nullptr) continue;
    const int32_t op = model.FrameworkOf(host->connection);
    if (op < 0) continue;
    const auto [copy, is_new] = copies.try_emplace(host->type);
    if (is_new) copy->second = RuntimeTypeName(model.host, host->type) == "MEMCPY_ASYNC";
    if (host->compute || copy->second) each({op, &row, nullptr});
  }
  for (const CommunicationOp& communication : model.communication.ops) {
    const int32_t op = communication.shown ? model.FrameworkOf(model.LaunchOf(communication).api) : -1;
    if (op >= 0) each({op, nullptr, &communication});
  }
}

std::vector<FrameworkTimes> FrameworkTimesOf(const Model& model) {
  if (model.framework == nullptr) return {};
  const std::vector<FrameworkOperator>& operators = model.framework->operators;
  std::vector<FrameworkTimes> times(operators.size());
  ForEachFrameworkKernel(model, [&](const FrameworkKernel& kernel) {
    FrameworkTimes& of = times[static_cast<size_t>(kernel.op)];
    const int64_t ns = kernel.end_ns() - kernel.start_ns();
    of.device_self += ns;
    if (kernel.task != nullptr && IsOnCores(model, *kernel.task, *model.HostOf(*kernel.task))) of.core_self += ns;
  });
  // Inner operators come behind those around them.
  for (size_t i = operators.size(); i-- > 0;) {
    const int64_t ns = operators[i].end - operators[i].begin;
    FrameworkTimes& of = times[i];
    of.host_self = std::max<int64_t>(0, of.host_self + ns);
    of.device_total += of.device_self;
    of.core_total += of.core_self;
    if (operators[i].parent < 0) continue;
    FrameworkTimes& around = times[static_cast<size_t>(operators[i].parent)];
    around.host_self -= ns;
    around.device_total += of.device_total;
    around.core_total += of.core_total;
  }
  return times;
}

}  // namespace profd::exporting::operators
