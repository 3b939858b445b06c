#include "sim/ascendcl/reporter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace profd::sim::acl {
namespace {

constexpr uint32_t kAging = 1;
constexpr uint32_t kNeverRegistered = 0xFFFF;

uint32_t ThisThread() {
  static thread_local const auto id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

struct TypeName {
  uint32_t type;
  const char* name;
};
constexpr TypeName kRuntimeTypes[] = {
    {prof::kTaskAicore, "KERNEL_AICORE"},
    {prof::kTaskAicpu, "KERNEL_AICPU"},
    {prof::kTaskEventRecord, "EVENT_RECORD"},
    {prof::kTaskMemcpyAsync, "MEMCPY_ASYNC"},
    {prof::kTaskProfilerTraceEx, "PROFILER_TRACE_EX"},
    {prof::kTaskAivec, "KERNEL_AIVEC"},
    {prof::kTaskMixAic, "KERNEL_MIX_AIC"},
    {prof::kTaskMixAiv, "KERNEL_MIX_AIV"},
    {prof::kTaskNotifyWait, "NOTIFY_WAIT"},
    {prof::kTaskSdma, "SDMA_SQE"},
    {prof::kTrackType, "task_track"},
    {prof::kApiKernelLaunch, "KernelLaunch"},
    {prof::kApiStreamSynchronize, "StreamSynchronize"},
    {prof::kApiMemcpyAsync, "MemcpyAsync"},
};

template <class Data>
void ReportCompact(uint16_t level, uint32_t type, const Data& data) {
  prof::Compact record;
  static_assert(sizeof data <= sizeof record.data);
  record.level = level;
  record.type = type;
  record.thread = ThisThread();
  record.data_size = sizeof data;
  record.time = MsprofSysCycleTime();
  std::memcpy(record.data, &data, sizeof data);
  MsprofReportCompactInfo(kAging, &record, sizeof record);
}

void ReportApi(uint16_t level, uint32_t type, uint64_t begin, uint64_t item) {
  prof::Api api;
  api.level = level;
  api.type = type;
  api.thread = ThisThread();
  api.begin = begin;
  api.end = MsprofSysCycleTime();
  api.item = item;
  MsprofReportApi(kAging, &api);
}

}  // namespace

Reporter& Reporter::The() {
  static Reporter* const the = new Reporter;
  return *the;
}

Reporter::Reporter() {
  MsprofRegisterCallback(prof::kModuleRuntime, &OnRuntime);
  MsprofRegisterCallback(prof::kModuleAcl, &OnAcl);
  MsprofRegisterCallback(prof::kModuleGe, &OnGe);
  MsprofRegisterCallback(prof::kModuleHccl, &OnHccl);
}

void Reporter::Switch(Source source, uint64_t bit, const prof::Command& command) {
  if ((command.switches & bit) == 0) return;
  if (command.type == prof::kStart) on_[source].store(true, std::memory_order_relaxed);
  if (command.type == prof::kStop) on_[source].store(false, std::memory_order_relaxed);
}

int32_t Reporter::OnRuntime(uint32_t type, void* data, uint32_t size) {
  prof::Command command;
  if (type != prof::kControlSwitch || size != sizeof command) return -1;
  std::memcpy(&command, data, size);
  if (command.type == prof::kStart) The().RegisterRuntimeTypes();
  The().Switch(kRuntimeApi, prof::kSwitchRuntimeApi, command);
  The().Switch(kTracks, prof::kSwitchTaskTrack, command);
  if (command.type == prof::kStop) {
    MutexLock lock(The().mutex_);
    The().names_.clear();
  }
  return 0;
}

int32_t Reporter::OnAcl(uint32_t type, void* data, uint32_t size) {
  prof::Command command;
  if (type != prof::kControlSwitch || size != sizeof command) return -1;
  std::memcpy(&command, data, size);
  if (command.type == prof::kStart) The().RegisterFunctions();
  The().Switch(kAclApi, prof::kSwitchAclApi, command);
  return 0;
}

int32_t Reporter::OnGe(uint32_t type, void* data, uint32_t size) {
  prof::Command command;
  if (type != prof::kControlSwitch || size != sizeof command) return -1;
  std::memcpy(&command, data, size);
  The().Switch(kNode, prof::kSwitchTaskTimeL0, command);
  return 0;
}

int32_t Reporter::OnHccl(uint32_t type, void* data, uint32_t size) {
  prof::Command command;
  if (type != prof::kControlSwitch || size != sizeof command) return -1;
  std::memcpy(&command, data, size);
  The().Switch(kHccl, prof::kSwitchHccl, command);
  return 0;
}

void Reporter::RegisterRuntimeTypes() {
  for (const TypeName& type : kRuntimeTypes) {
    MsprofRegTypeInfo(prof::kRuntimeLevel, type.type, type.name);
  }
}

void Reporter::RegisterFunctions() {
  std::map<std::string, uint32_t> functions;
  {
    MutexLock lock(mutex_);
    functions = functions_;
  }
  for (const auto& [name, type] : functions) {
    MsprofRegTypeInfo(prof::kAclLevel, type, name.c_str());
  }
}

uint64_t Reporter::NameId(const char* name) {
  {
    MutexLock lock(mutex_);
    if (const auto it = names_.find(name); it != names_.end()) return it->second;
  }
  const uint64_t id = MsprofGetHashId(name, std::strlen(name));
  MutexLock lock(mutex_);
  names_[name] = id;
  return id;
}

uint32_t Reporter::FunctionType(const char* function, uint32_t base) {
  if (unnamed_functions_.load(std::memory_order_relaxed)) return base + kNeverRegistered;
  uint32_t type = 0;
  {
    MutexLock lock(mutex_);
    if (const auto it = functions_.find(function); it != functions_.end()) return it->second;
    type = base + 1 + static_cast<uint32_t>(functions_.size());
    functions_[function] = type;
  }
  MsprofRegTypeInfo(prof::kAclLevel, type, function);
  return type;
}

CallTimes Reporter::Begin() const {
  // Each call begins a little after the one that makes it.
  const uint64_t now = MsprofSysCycleTime();
  return {now, now + 1, now + 2};
}

void Reporter::ReportTrack(uint32_t device, const Task& task, uint32_t id, uint32_t task_type,
                           uint64_t name) {
  prof::RuntimeTrack track;
  track.device = static_cast<uint16_t>(device);
  track.stream = static_cast<uint16_t>(task.stream);
  track.task = id;
  track.task_type = task_type;
  track.kernel_name = name;
  ReportCompact(prof::kRuntimeLevel, prof::kTrackType, track);
}

void Reporter::ReportRuntime(const CallTimes& times, uint32_t type) {
  if (On(kRuntimeApi)) ReportApi(prof::kRuntimeLevel, type, times.runtime, 0);
}

void Reporter::ReportNode(const CallTimes& times, uint64_t name, uint32_t task_type, uint64_t type,
                          uint32_t block_dim) {
  ReportApi(prof::kNodeLevel, prof::kNodeLaunchType, times.node, name);
  prof::NodeBasicInfo info;
  info.name = name;
  info.task_type = task_type;
  info.type = type;
  info.block_dim = block_dim;
  ReportCompact(prof::kNodeLevel, prof::kNodeBasicType, info);
}

// TensorInfo: operator name, number of tensors, and up to five of them; 232 bytes.
void Reporter::ReportTensors(const Kernel& kernel, uint64_t name) {
  if (kernel.tensor_count == 0) return;
  const uint32_t count = std::min(kernel.tensor_count, kMaxTensors);
  prof::Additional record;
  record.level = prof::kNodeLevel;
  record.type = prof::kNodeTensorType;
  record.thread = ThisThread();
  record.data_size = sizeof record.data;
  record.time = MsprofSysCycleTime();
  static_assert(sizeof name + sizeof count + kMaxTensors * sizeof(Tensor) <= sizeof record.data);
  std::memcpy(record.data, &name, sizeof name);
  std::memcpy(record.data + sizeof name, &count, sizeof count);
  std::memcpy(record.data + sizeof name + sizeof count, kernel.tensors, count * sizeof(Tensor));
  MsprofReportAdditionalInfo(kAging, &record, sizeof record);
}

void Reporter::ReportFunction(const CallTimes& times, const char* function, uint32_t base) {
  if (*function == '\0' || !On(kAclApi)) return;
  ReportApi(prof::kAclLevel, FunctionType(function, base), times.function, 0);
}

void Reporter::Launched(const CallTimes& times, uint32_t device, const Task& task,
                        const Kernel& kernel) {
  const char* const kernel_name = *kernel.kernel_name != '\0' ? kernel.kernel_name : kernel.name;
  if (On(kTracks)) {
    ReportTrack(device, task, task.id, kernel.task_type, NameId(kernel_name));
  }
  ReportRuntime(times, prof::kApiKernelLaunch);
  if (On(kNode)) {
    const uint64_t name = NameId(kernel.name);
    ReportNode(times, name, kernel.task_type, NameId(kernel.type), kernel.block_dim);
    ReportTensors(kernel, name);
  }
  ReportFunction(times, kernel.function, prof::kAclOpType);
}

void Reporter::Communicated(const CallTimes& times, uint32_t device, const Task& task,
                            const Communication& communication) {
  if (On(kTracks)) {
    const uint64_t name = NameId(communication.type);
    for (uint32_t id = task.id; id <= task.last_id; ++id) {
      const bool waits = id == task.id;
      ReportTrack(device, task, id, waits ? prof::kTaskNotifyWait : prof::kTaskSdma, name);
    }
  }
  if (On(kNode)) {
    ReportNode(times, NameId(communication.name), prof::kTaskSdma, NameId(communication.type), 0);
  }
  if (On(kHccl)) {
    prof::HcclOpInfo info;
    info.data_type = communication.data_type;
    info.algorithm = NameId(communication.algorithm);
    info.count = communication.count;
    info.group = NameId(task.group->name().c_str());
    ReportCompact(prof::kNodeLevel, prof::kNodeHcclOpType, info);
  }
  ReportFunction(times, communication.function, prof::kAclHcclType);
}

void Reporter::Copied(const CallTimes& times, uint32_t device, const Task& task) {
  if (On(kTracks)) {
    ReportTrack(device, task, task.id, prof::kTaskMemcpyAsync, NameId("MemcpyAsync"));
  }
  Called(times, "aclrtMemcpyAsync", prof::kApiMemcpyAsync);
}

void Reporter::Called(const CallTimes& times, const char* function, uint32_t runtime_type) {
  if (runtime_type != 0) ReportRuntime(times, runtime_type);
  ReportFunction(times, function, prof::kAclRuntimeType);
}

}  // namespace profd::sim::acl
