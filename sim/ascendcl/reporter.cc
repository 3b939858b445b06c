#include "sim/ascendcl/reporter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace profd::sim::acl {
namespace {

// 0 while a graph is loaded: what is reported of it stays.
thread_local uint32_t t_aging = 1;
class OfModel {
 public:
  OfModel() { t_aging = 0; }
  ~OfModel() { t_aging = 1; }
  OfModel(const OfModel&) = delete;
  OfModel& operator=(const OfModel&) = delete;
};
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
    {prof::kTaskNotifyRecord, "NOTIFY_RECORD"},
    {prof::kTaskFlip, "TASK_FLIP"},
    {prof::kTrackType, "task_track"},
    {prof::kApiKernelLaunch, "KernelLaunch"},
    {prof::kApiStreamSynchronize, "StreamSynchronize"},
    {prof::kApiMemcpyAsync, "MemcpyAsync"},
};

// The numbers of GE for what the runtime calls a task's type.
uint32_t NodeTaskType(uint32_t task_type) {
  switch (task_type) {
    case prof::kTaskAicpu: return 1;
    case prof::kTaskAivec: return 2;
    case prof::kTaskMixAic: return 4;
    case prof::kTaskMixAiv: return 5;
    case prof::kTaskSdma: return 9;
    default: return 0;
  }
}

// With `parts`, one behind the other, as its data.
template <class Record, class... Parts>
Record RecordOf(uint16_t level, uint32_t type, uint64_t time, const Parts&... parts) {
  Record record;
  static_assert((sizeof parts + ...) <= sizeof record.data);
  record.level = level;
  record.type = type;
  record.thread = ThisThread();
  record.time = time;
  auto put = [&record](const auto& part) {
    std::memcpy(record.data + record.data_size, &part, sizeof part);
    record.data_size += sizeof part;
  };
  (put(parts), ...);
  return record;
}

template <class Data>
void ReportCompact(uint16_t level, uint32_t type, uint64_t time, const Data& data) {
  auto record = RecordOf<prof::Compact>(level, type, time, data);
  MsprofReportCompactInfo(t_aging, &record, sizeof record);
}

template <class... Parts>
void ReportAdditional(uint16_t level, uint32_t type, uint64_t time, const Parts&... parts) {
  auto record = RecordOf<prof::Additional>(level, type, time, parts...);
  MsprofReportAdditionalInfo(t_aging, &record, sizeof record);
}

void ReportApi(uint16_t level, uint32_t type, uint64_t begin, uint64_t end, uint64_t item) {
  prof::Api api;
  api.level = level;
  api.type = type;
  api.thread = ThisThread();
  api.begin = begin;
  api.end = end;
  api.item = item;
  MsprofReportApi(t_aging, &api);
}

}  // namespace

Reporter& Reporter::The() {
  static Reporter* const the = new Reporter;
  return *the;
}

template <void (Reporter::*on)(const prof::Command&)>
int32_t Reporter::OnCommand(uint32_t type, void* data, uint32_t size) {
  prof::Command command;
  if (type != prof::kControlSwitch || size != sizeof command) return -1;
  std::memcpy(&command, data, size);
  (The().*on)(command);
  return 0;
}

Reporter::Reporter() {
  MsprofRegisterCallback(prof::kModuleRuntime, &OnCommand<&Reporter::OnRuntime>);
  MsprofRegisterCallback(prof::kModuleAcl, &OnCommand<&Reporter::OnAcl>);
  MsprofRegisterCallback(prof::kModuleGe, &OnCommand<&Reporter::OnGe>);
  MsprofRegisterCallback(prof::kModuleHccl, &OnCommand<&Reporter::OnHccl>);
}

bool Reporter::Switch(Source source, uint64_t bit, const prof::Command& command) {
  if ((command.switches & bit) == 0) return false;
  if (command.type == prof::kStop) on_[source].store(false, std::memory_order_relaxed);
  return command.type == prof::kStart && !on_[source].exchange(true, std::memory_order_relaxed);
}

void Reporter::OnRuntime(const prof::Command& command) {
  if (command.type == prof::kStart) RegisterRuntimeTypes();
  Switch(kRuntimeApi, prof::kSwitchRuntimeApi, command);
  Switch(kTracks, prof::kSwitchTaskTrack, command);
  if (command.type == prof::kStop) {
    MutexLock lock(mutex_);
    names_.clear();
  }
}

void Reporter::OnAcl(const prof::Command& command) {
  if (command.type == prof::kStart) RegisterFunctions();
  Switch(kAclApi, prof::kSwitchAclApi, command);
}

void Reporter::OnGe(const prof::Command& command) {
  const bool nodes = Switch(kNode, prof::kSwitchTaskTimeL0, command);
  // The last of the modules that a START reaches, but HCCL: its part of the models is reported here, too.
  const bool collectives = Switch(kHccl, prof::kSwitchHccl, command);
  if (nodes || collectives) ReportModels();
}

void Reporter::OnHccl(const prof::Command& command) {
  Switch(kHccl, prof::kSwitchHccl, command);
}

void Reporter::RegisterRuntimeTypes() {
  for (const TypeName& type : kRuntimeTypes) {
    MsprofRegTypeInfo(prof::kRuntimeLevel, type.type, type.name);
  }
  MsprofRegTypeInfo(prof::kNodeLevel, prof::kNodeLaunchType, "launch");
  MsprofRegTypeInfo(prof::kHcclLevel, prof::kHcclMasterType, "master");
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
                           uint64_t name, uint32_t block_dim) {
  prof::RuntimeTrack track;
  track.device = static_cast<uint16_t>(device);
  track.stream = static_cast<uint16_t>(task.stream);
  track.task = id;
  track.task_type = task_type;
  track.kernel_name = name;
  const auto blocks = static_cast<uint16_t>(block_dim);
  std::memcpy(track.extension, &blocks, sizeof blocks);
  ReportCompact(prof::kRuntimeLevel, prof::kTrackType, MsprofSysCycleTime(), track);
}

void Reporter::ReportRuntime(const CallTimes& times, uint32_t type) {
  if (On(kRuntimeApi)) ReportApi(prof::kRuntimeLevel, type, times.runtime, MsprofSysCycleTime(), 0);
}

// Again, on the thread of the START: graphs that were loaded before it.
void Reporter::ReportModels() {
  if (silent_models_.load(std::memory_order_relaxed)) return;
  std::vector<std::pair<uint32_t, const Task*>> loaded;
  std::vector<const Model*> models;
  {
    MutexLock lock(mutex_);
    loaded = loaded_;
    models = models_;
  }
  for (const Model* model : models) ReportModelName(*model);
  for (const auto& [device, task] : loaded) ReportLoaded(Begin(), device, *task);
}

void Reporter::Loaded(const CallTimes& times, uint32_t device, const Task& task) {
  {
    MutexLock lock(mutex_);
    loaded_.emplace_back(device, &task);
  }
  ReportLoaded(times, device, task);
}

void Reporter::ReportLoaded(const CallTimes& times, uint32_t device, const Task& task) {
  const OfModel unaging;
  if (task.kind == Task::kCommunication) {
    Communication communication{task.name.c_str(), task.type.c_str()};
    communication.function = "";
    communication.algorithm = task.algorithm.c_str();
    communication.data_type = task.data_type;
    communication.count = task.count;
    communication.bytes = task.bytes;
    Communicated(times, device, task, communication);
  } else if (task.kind == Task::kKernel) {
    Kernel kernel{task.name.c_str(), task.type.c_str()};
    kernel.task_type = task.task_type;
    kernel.block_dim = task.block_dim;
    kernel.tensors = task.tensors.data();
    kernel.tensor_count = static_cast<uint32_t>(task.tensors.size());
    Launched(times, device, task, kernel);
  }
}

void Reporter::ModelEvent(prof::ModelType type, const Model& model, uint32_t iteration) {
  if (!On(kNode)) return;
  prof::Event event;
  event.level = prof::kModelLevel;
  event.type = type;
  event.thread = ThisThread();
  event.request = iteration;
  event.time = MsprofSysCycleTime();
  event.item = model.id();
  MsprofReportEvent(1, &event);
}

void Reporter::ModelNamed(const Model& model) {
  {
    MutexLock lock(mutex_);
    models_.push_back(&model);
  }
  ReportModelName(model);
}

// graph_id_map: name, graph id, model id.
void Reporter::ReportModelName(const Model& model) {
  if (!On(kNode)) return;
  const OfModel unaging;
  const uint64_t name = NameId(model.name().c_str());
  ReportAdditional(prof::kModelLevel, prof::kModelGraphIdMap, MsprofSysCycleTime(), name, model.id(), model.id());
}

void Reporter::ReportNode(const CallTimes& times, uint64_t end, uint64_t name, uint32_t task_type, uint64_t type,
                          uint32_t block_dim) {
  ReportApi(prof::kNodeLevel, prof::kNodeLaunchType, times.node, end, name);
  prof::NodeBasicInfo info;
  info.name = name;
  info.task_type = NodeTaskType(task_type);
  info.type = type;
  info.block_dim = block_dim;
  ReportCompact(prof::kNodeLevel, prof::kNodeBasicType, end, info);
}

// TensorInfo: operator name, number of tensors, and up to five of them; 232 bytes.
void Reporter::ReportTensors(const Kernel& kernel, uint64_t name, uint64_t time) {
  if (kernel.tensor_count == 0) return;
  const uint32_t count = std::min(kernel.tensor_count, kMaxTensors);
  std::array<Tensor, kMaxTensors> tensors{};
  std::copy_n(kernel.tensors, count, tensors.begin());
  ReportAdditional(prof::kNodeLevel, prof::kNodeTensorType, time, name, count, tensors);
}

void Reporter::ReportFunction(const CallTimes& times, const char* function, uint32_t base) {
  if (*function == '\0' || !On(kAclApi)) return;
  const uint32_t type = FunctionType(function, base);
  ReportApi(prof::kAclLevel, type, times.function, MsprofSysCycleTime(), 0);
}

void Reporter::Launched(const CallTimes& times, uint32_t device, const Task& task,
                        const Kernel& kernel) {
  const char* const kernel_name = *kernel.kernel_name != '\0' ? kernel.kernel_name : kernel.name;
  if (On(kTracks)) {
    ReportTrack(device, task, task.id, kernel.task_type, NameId(kernel_name), kernel.block_dim);
  }
  ReportRuntime(times, prof::kApiKernelLaunch);
  if (On(kNode)) {
    const uint64_t name = NameId(kernel.name);
    const uint64_t type = NameId(kernel.type);
    const uint64_t end = MsprofSysCycleTime();
    ReportNode(times, end, name, kernel.task_type, type, kernel.block_dim);
    ReportTensors(kernel, name, end);
  }
  ReportFunction(times, kernel.function, prof::kAclOpType);
}

namespace {

struct SubTask {
  const char* name;
  uint32_t task_type;
};
// The task waits for the others, moves the data, and reports it.
constexpr SubTask kSubTasks[] = {{"Notify_Wait", prof::kTaskNotifyWait},
                                 {"Memcpy", prof::kTaskSdma},
                                 {"Notify_Record", prof::kTaskNotifyRecord}};

}  // namespace

void Reporter::ReportSubTask(const Task& task, const Communication& communication, uint32_t device,
                             uint32_t number) {
  const SubTask& sub = kSubTasks[number];
  const uint64_t begin = MsprofSysCycleTime();
  if (On(kTracks)) {
    ReportTrack(device, task, task.id + number, sub.task_type, NameId(communication.type), 0);
  }
  if (!On(kHccl)) return;
  const uint64_t end = MsprofSysCycleTime();
  const uint64_t item = NameId(sub.name);
  ReportApi(prof::kHcclLevel, prof::kHcclMasterType, begin, end, item);
  const bool moves = sub.task_type == prof::kTaskSdma;
  prof::HcclInfo info;
  info.item = item;
  info.group = NameId(task.group->name().c_str());
  info.rank = task.group->rank();
  info.ranks = task.group->members();
  info.remote_rank = moves ? (info.rank + 1) % info.ranks : 0xFFFFFFFF;
  info.bytes = moves ? communication.bytes : 0;
  info.data_type = communication.data_type;
  info.notify = moves ? UINT64_MAX : task.id;
  info.link = 1;  // HCCS
  ReportAdditional(prof::kHcclLevel, prof::kHcclInfoType, end, info);
}

void Reporter::Communicated(const CallTimes& times, uint32_t device, const Task& task,
                            const Communication& communication) {
  for (uint32_t number = 0; number < std::size(kSubTasks); ++number) {
    ReportSubTask(task, communication, device, number);
  }
  if (On(kNode) || On(kHccl)) {
    const uint64_t name = NameId(communication.name), type = NameId(communication.type);
    const uint64_t end = MsprofSysCycleTime();
    if (On(kNode)) ReportNode(times, end, name, prof::kTaskSdma, type, 0);
    if (On(kHccl)) {
      prof::HcclOpInfo operation;
      operation.data_type = communication.data_type;
      operation.algorithm = NameId(communication.algorithm);
      operation.count = communication.count;
      operation.group = NameId(task.group->name().c_str());
      ReportCompact(prof::kNodeLevel, prof::kNodeHcclOpType, end, operation);
    }
  }
  ReportFunction(times, communication.function, prof::kAclHcclType);
}

void Reporter::Copied(const CallTimes& times, uint32_t device, const Task& task) {
  if (On(kTracks)) {
    ReportTrack(device, task, task.id, prof::kTaskMemcpyAsync, NameId("MemcpyAsync"), 0);
  }
  Called(times, "aclrtMemcpyAsync", prof::kApiMemcpyAsync);
}

void Reporter::Called(const CallTimes& times, const char* function, uint32_t runtime_type) {
  if (runtime_type != 0) ReportRuntime(times, runtime_type);
  const bool model = std::string_view(function).starts_with("aclmdl");
  ReportFunction(times, function, model ? prof::kAclModelType : prof::kAclRuntimeType);
}

}  // namespace profd::sim::acl
