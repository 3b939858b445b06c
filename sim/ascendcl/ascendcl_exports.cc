// The C symbols of libascendcl.so. Never torn down, as the vendor's runtime outlives main.
#include <cstdlib>
#include <map>
#include <memory>

#include "base/clock.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/ascendcl/device.h"
#include "sim/ascendcl/group.h"
#include "sim/ascendcl/model.h"
#include "sim/ascendcl/reporter.h"
#include "sim/ascendcl/truth.h"
#include "sim/settings.h"

namespace profd::sim::acl {
namespace {

constexpr uint32_t kChip = 5;
constexpr uint32_t kDevices = 64;
// Bytes per ns of a copy between host and device.
constexpr uint64_t kCopyRate = 20;

struct StreamHandle {
  Device* device;
  uint32_t id;
};
struct EventHandle {
  Device* device = nullptr;
  uint32_t stream = 0;
  std::shared_ptr<const Task> task;
};

class Runtime {
 public:
  static Runtime& The() {
    static Runtime* const the = new Runtime;
    return *the;
  }

  Device& device(uint32_t id) {
    MutexLock lock(mutex_);
    std::unique_ptr<Device>& device = devices_[id];
    if (device == nullptr) {
      device = std::make_unique<Device>(
          id, clock_, [this](uint32_t of, const Task& task) { truth_.WriteTask(of, task); });
      device->set_lost_begins(lost_begins_);
      device->NewStream();  // 0: the default
    }
    return *device;
  }
  Truth& truth() { return truth_; }
  bool Apply(std::string_view key, std::string_view value) {
    int64_t number = 0;
    bool flag = false;
    if (key == "lost_begins" && ParseSetting(value, 0, 1'000'000, &number)) {
      MutexLock lock(mutex_);
      lost_begins_ = number;
      for (const auto& [id, device] : devices_) device->set_lost_begins(number);
      return true;
    }
    if (!ParseSetting(value, &flag)) return false;
    if (key == "unnamed_functions") {
      Reporter::The().set_unnamed_functions(flag);
    } else if (key == "silent_models") {
      Reporter::The().set_silent_models(flag);
    } else {
      return false;
    }
    return true;
  }
  bool Add(std::unique_ptr<Model> model) {
    MutexLock lock(mutex_);
    return models_.emplace(model->id(), std::move(model)).second;
  }
  const Model* model(uint32_t id) {
    MutexLock lock(mutex_);
    const auto found = models_.find(id);
    return found == models_.end() ? nullptr : found->second.get();
  }

 private:
  Runtime() {
    Reporter::The();
    ApplySettingsOfEnvironment("ascendcl",
                               [this](auto key, auto value) { return Apply(key, value); });
  }

  SystemClock clock_;
  Truth truth_;
  Mutex mutex_;
  std::map<uint32_t, std::unique_ptr<Device>> devices_ GUARDED_BY(mutex_);
  std::map<uint32_t, std::unique_ptr<Model>> models_ GUARDED_BY(mutex_);  // never unloaded
  int64_t lost_begins_ GUARDED_BY(mutex_) = 0;
};

// As the vendor's runtime does, be known to libprofapi as soon as it is loaded.
__attribute__((constructor)) void LoadNow() { Runtime::The(); }

thread_local Device* t_device = nullptr;
thread_local std::unique_ptr<Model> t_model;  // that this thread loads

// The device and stream behind a handle; nullptr is the default stream of the thread's device.
StreamHandle Resolve(void* stream) {
  return stream == nullptr ? StreamHandle{t_device, 0} : *static_cast<StreamHandle*>(stream);
}

int PutIntoModel(const CallTimes& times, Task task) {
  const Task& put = t_model->Add(std::move(task));
  Reporter::The().Loaded(times, t_model->device().id(), put);
  return kSuccess;
}

}  // namespace
}  // namespace profd::sim::acl

namespace acl = profd::sim::acl;
namespace prof = profd::sim::prof;
using acl::Reporter;
using acl::Runtime;

PROFD_SIM_EXPORT int aclInit(const char*) { return acl::kSuccess; }

PROFD_SIM_EXPORT int aclFinalize() {
  Runtime::The().truth().Flush();
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtSetDevice(int32_t device) {
  if (device < 0 || device >= static_cast<int32_t>(acl::kDevices)) return acl::kInvalidParameter;
  const acl::CallTimes times = Reporter::The().Begin();
  acl::t_device = &Runtime::The().device(static_cast<uint32_t>(device));
  MsprofNotifySetDevice(acl::kChip, static_cast<uint32_t>(device), true);
  Reporter::The().Called(times, "aclrtSetDevice", 0);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtResetDevice(int32_t device) {
  if (acl::t_device == nullptr) return acl::kNoContext;
  acl::t_device = nullptr;
  MsprofNotifySetDevice(acl::kChip, static_cast<uint32_t>(device), false);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtGetDevice(int32_t* device) {
  if (device == nullptr) return acl::kInvalidParameter;
  if (acl::t_device == nullptr) return acl::kNoContext;
  *device = static_cast<int32_t>(acl::t_device->id());
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtGetDeviceCount(uint32_t* count) {
  if (count == nullptr) return acl::kInvalidParameter;
  *count = acl::kDevices;
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtCreateStream(void** stream) {
  if (stream == nullptr) return acl::kInvalidParameter;
  if (acl::t_device == nullptr) return acl::kNoContext;
  *stream = new acl::StreamHandle{acl::t_device, acl::t_device->NewStream()};
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtSynchronizeStream(void* stream) {
  const auto [device, id] = acl::Resolve(stream);
  if (device == nullptr) return acl::kNoContext;
  const acl::CallTimes times = Reporter::The().Begin();
  const bool done = device->Synchronize(id);
  Reporter::The().Called(times, "aclrtSynchronizeStream", prof::kApiStreamSynchronize);
  return done ? acl::kSuccess : acl::kSyncTimeout;
}

PROFD_SIM_EXPORT int aclrtSynchronizeDevice() {
  if (acl::t_device == nullptr) return acl::kNoContext;
  const acl::CallTimes times = Reporter::The().Begin();
  const bool done = acl::t_device->SynchronizeAll();
  Reporter::The().Called(times, "aclrtSynchronizeDevice", 0);
  return done ? acl::kSuccess : acl::kSyncTimeout;
}

PROFD_SIM_EXPORT int aclrtCreateEvent(void** event) {
  if (event == nullptr) return acl::kInvalidParameter;
  *event = new acl::EventHandle;
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtRecordEvent(void* event, void* stream) {
  const auto [device, id] = acl::Resolve(stream);
  if (event == nullptr) return acl::kInvalidParameter;
  if (device == nullptr) return acl::kNoContext;
  *static_cast<acl::EventHandle*>(event) = {device, id, device->Last(id)};
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtStreamWaitEvent(void* stream, void* event) {
  const auto [device, id] = acl::Resolve(stream);
  if (event == nullptr) return acl::kInvalidParameter;
  if (device == nullptr) return acl::kNoContext;
  const auto& recorded = *static_cast<acl::EventHandle*>(event);
  if (recorded.device != device)
    return acl::kInvalidParameter;  // the vendor's devices cannot either
  if (acl::t_model != nullptr) {
    acl::t_model->AddWait(id, recorded.stream);
  } else {
    device->WaitFor(id, recorded.task);
  }
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtDestroyEvent(void* event) {
  delete static_cast<acl::EventHandle*>(event);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtMalloc(void** pointer, size_t size, int) {
  if (pointer == nullptr || size == 0) return acl::kInvalidParameter;
  const acl::CallTimes times = Reporter::The().Begin();
  // Memory of the device: nothing of it is on the host but its address.
  *pointer = std::malloc(1);
  Reporter::The().Called(times, "aclrtMalloc", 0);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtFree(void* pointer) {
  const acl::CallTimes times = Reporter::The().Begin();
  std::free(pointer);
  Reporter::The().Called(times, "aclrtFree", 0);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtMemcpy(void*, size_t to_size, const void*, size_t size, int) {
  if (size > to_size) return acl::kInvalidParameter;
  const acl::CallTimes times = Reporter::The().Begin();
  Reporter::The().Called(times, "aclrtMemcpy", 0);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtMemcpyAsync(void*, size_t to_size, const void*, size_t size, int,
                                      void* stream) {
  const auto [device, id] = acl::Resolve(stream);
  if (size > to_size) return acl::kInvalidParameter;
  if (device == nullptr) return acl::kNoContext;
  const acl::CallTimes times = Reporter::The().Begin();
  const auto placed = device->Launch({.kind = acl::Task::kCopy, .name = "MemcpyAsync", .stream = id,
                                      .duration_ns = static_cast<int64_t>(size / acl::kCopyRate), .bytes = size});
  if (placed == nullptr) return acl::kSyncTimeout;
  Reporter::The().Copied(times, device->id(), *placed);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int aclrtMemset(void*, size_t size, int32_t, size_t count) {
  if (count > size) return acl::kInvalidParameter;
  const acl::CallTimes times = Reporter::The().Begin();
  Reporter::The().Called(times, "aclrtMemset", 0);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int simAclLaunch(const acl::Kernel* kernel, void* stream) {
  const auto [device, id] = acl::Resolve(stream);
  if (kernel == nullptr || kernel->duration_ns < 0) return acl::kInvalidParameter;
  if (device == nullptr) return acl::kNoContext;
  const acl::CallTimes times = Reporter::The().Begin();
  acl::Task task{.name = kernel->name, .type = kernel->type, .task_type = kernel->task_type,
                 .block_dim = kernel->block_dim, .tensors = {kernel->tensors, kernel->tensors + kernel->tensor_count},
                 .stream = id, .duration_ns = kernel->duration_ns};
  if (acl::t_model != nullptr) return acl::PutIntoModel(times, std::move(task));
  const auto placed = device->Launch(std::move(task));
  if (placed == nullptr) return acl::kSyncTimeout;
  Reporter::The().Launched(times, device->id(), *placed, *kernel);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int simAclModelLoad(uint32_t model, const char* name) {
  if (acl::t_device == nullptr) return acl::kNoContext;
  if (name == nullptr || acl::t_model != nullptr || Runtime::The().model(model) != nullptr) {
    return acl::kInvalidParameter;
  }
  acl::t_model = std::make_unique<acl::Model>(model, name, *acl::t_device);
  Reporter::The().ModelEvent(prof::kModelLoad, *acl::t_model, 0);
  return acl::kSuccess;
}
PROFD_SIM_EXPORT int simAclModelLoaded() {
  if (acl::t_model == nullptr) return acl::kInvalidParameter;
  const acl::Model& model = *acl::t_model;
  Reporter::The().ModelEvent(prof::kModelLoad, model, 0);
  Reporter::The().ModelNamed(model);
  return Runtime::The().Add(std::move(acl::t_model)) ? acl::kSuccess : acl::kInvalidParameter;
}
PROFD_SIM_EXPORT int simAclModelExecute(uint32_t model, uint32_t iteration,
                                        const int64_t* durations, size_t count) {
  const acl::Model* const loaded = Runtime::The().model(model);
  if (loaded == nullptr) return acl::kModelNotLoaded;
  const acl::CallTimes times = Reporter::The().Begin();
  Reporter::The().ModelEvent(prof::kModelExecute, *loaded, iteration);
  const bool done = loaded->Execute(iteration, {durations, count});
  Reporter::The().ModelEvent(prof::kModelExecute, *loaded, iteration);
  Reporter::The().Called(times, "aclmdlExecuteAsync", 0);
  return done ? acl::kSuccess : acl::kSyncTimeout;
}
PROFD_SIM_EXPORT int simAclTrace(uint64_t value, uint16_t tag, void* stream) {
  const auto [device, id] = acl::Resolve(stream);
  if (device == nullptr) return acl::kNoContext;
  acl::Task task{.kind = acl::Task::kTrace, .stream = id, .value = value, .tag = tag};
  if (acl::t_model != nullptr) return acl::PutIntoModel({}, std::move(task));
  return device->Launch(std::move(task)) != nullptr ? acl::kSuccess : acl::kSyncTimeout;
}

PROFD_SIM_EXPORT void* simAclGroup(const char* name, const char* path, uint32_t members,
                                   uint32_t rank) {
  return acl::Group::Open(name, path, members, rank).release();
}

PROFD_SIM_EXPORT const char* simAclGroupName(const void* group) {
  return static_cast<const acl::Group*>(group)->name().c_str();
}
PROFD_SIM_EXPORT int simAclCommunicate(const acl::Communication* communication, void* group,
                                       void* stream) {
  const auto [device, id] = acl::Resolve(stream);
  if (communication == nullptr || group == nullptr) return acl::kInvalidParameter;
  if (device == nullptr) return acl::kNoContext;
  const acl::CallTimes times = Reporter::The().Begin();
  acl::Task task{.kind = acl::Task::kCommunication, .name = communication->name, .type = communication->type,
                 .stream = id, .duration_ns = communication->duration_ns, .bytes = communication->bytes,
                 .group = static_cast<acl::Group*>(group), .algorithm = communication->algorithm,
                 .count = communication->count, .data_type = communication->data_type};
  if (acl::t_model != nullptr) return acl::PutIntoModel(times, std::move(task));
  task.operation = task.group->NextOperation();
  const auto placed = device->Launch(std::move(task));
  if (placed == nullptr) return acl::kSyncTimeout;
  Reporter::The().Communicated(times, device->id(), *placed, *communication);
  return acl::kSuccess;
}

PROFD_SIM_EXPORT int simAclOpenLog(uint32_t device) {
  return Runtime::The().device(device).OpenLog();
}
PROFD_SIM_EXPORT int simAclCloseLog(uint32_t device) {
  return Runtime::The().device(device).CloseLog();
}
PROFD_SIM_EXPORT size_t simAclReadLog(uint32_t device, acl::LogRecord* records, size_t most) {
  return Runtime::The().device(device).ReadLog(records, most);
}
PROFD_SIM_EXPORT int simAclTruth(const char* path) {
  return Runtime::The().truth().Open(path) ? acl::kSuccess : acl::kInvalidParameter;
}
PROFD_SIM_EXPORT void simAclTruthLine(const char* json) { Runtime::The().truth().Write(json); }
