#include "export/operators/model.h"

#include <utility>

#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

constexpr int32_t kAmbiguous = -2;
constexpr char kNone[] = "N/A";

uint64_t KeyOf(uint16_t stream, uint16_t batch, uint16_t task, uint32_t context) {
  return uint64_t{stream} << 48 | uint64_t{batch} << 32 | uint64_t{task} << 16 | (context & 0xFFFF);
}

}  // namespace

const std::map<std::pair<uint16_t, uint64_t>, int32_t>& Model::ByKey() {
  if (!by_key_.empty()) return by_key_;
  for (size_t i = 0; i < host_tasks.tasks.size(); ++i) {
    const HostTask& task = host_tasks.tasks[i];
    const std::pair key(task.device, KeyOf(task.stream, task.batch, task.task, task.context));
    const auto [known, is_new] = by_key_.try_emplace(key, static_cast<int32_t>(i));
    if (!is_new) known->second = kAmbiguous;
  }
  return by_key_;
}

void Model::Join(int device, const DeviceTasks& ran, const std::function<int64_t(uint64_t)>& clock,
                 int64_t begin_ns) {
  const auto& by_key = ByKey();
  joined_from_ = rows.size();
  joined_tasks_.clear();
  for (const DeviceTask& task : ran.tasks) {
    TaskRow row;
    row.end_ns = clock(task.end);
    if (row.end_ns < begin_ns) continue;
    row.start_ns = clock(task.start);
    row.device = static_cast<int16_t>(device);
    row.stream = task.stream;
    row.task = task.task;
    row.batch = task.batch;
    row.context = task.context;
    row.type = task.type;
    const auto found = by_key.find(
        {static_cast<uint16_t>(device), KeyOf(task.stream, task.batch, task.task, task.context)});
    if (found != by_key.end() && found->second == kAmbiguous) {
      ++ambiguous;
      continue;
    }
    if (found != by_key.end()) row.host = found->second;
    rows.push_back(row);
    joined_tasks_.push_back(task);
  }
}

std::string Model::OperatorName(const HostTask& task) const {
  const Launch* launch = LaunchOf(task);
  if (launch == nullptr) return host.NameOf(task.kernel);
  if (const NodeRecord* node = NodeOf(task); node != nullptr && detailed) return host.NameOf(node->name);
  return host.NameOf(launch->first_name != 0 ? launch->first_name : launch->item);
}

std::string Model::OperatorType(const HostTask& task) const {
  if (!detailed) return kNone;
  const NodeRecord* node = NodeOf(task);
  return node == nullptr ? host.NameOf(task.kernel) : host.NameOf(node->type);
}

std::string Model::CoreType(const HostTask& task) const {
  if (!detailed) return kNone;
  const std::string runtime = RuntimeTypeName(host, task.type);
  const NodeRecord* node = NodeOf(task);
  int core = CoreOfKernel(runtime);
  if (task.communication && runtime == "KERNEL_AICPU") return "HCCL_AI_CPU";
  if (task.communication && runtime == "KERNEL_AICORE") return "COMMUNICATION";
  if (node != nullptr) {
    core = static_cast<int>(node->core_type);
    // A kernel of an AI CPU that no communication call has made.
    if (core == static_cast<int>(kCommunicationCore) && runtime == "KERNEL_AICPU" && !task.communication) core = 1;
  }
  const std::string_view name = core < 0 ? std::string_view() : CoreTypeName(static_cast<uint32_t>(core));
  return name.empty() ? runtime : std::string(name);
}

std::string Model::TaskType(const TaskRow& row) const {
  const HostTask* task = HostOf(row);
  std::string host_type = task == nullptr ? std::string() : RuntimeTypeName(host, task->type);
  if (!host_type.empty() && host_type != "FFTS_PLUS") return host_type;
  return row.context != kNoContext ? SubTaskTypeName(row.type) : SqeTypeName(row.type);
}

}  // namespace profd::exporting::operators
