// What runtime, ACL, GE and HCCL say to libprofapi about each call: nothing until a START with the
// switch of each, names of types at START, names of kernels at their first report after it.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "sim/ascendcl/device.h"
#include "sim/ascendcl/model.h"

namespace profd::sim::acl {

// A call in progress on this thread: MsprofSysCycleTime at its begin.
struct CallTimes {
  uint64_t function = 0;  // of ACL
  uint64_t node = 0;
  uint64_t runtime = 0;
};

class Reporter {
 public:
  static Reporter& The();

  CallTimes Begin() const;
  // The device's task was launched between Begin and now, on this thread.
  void Launched(const CallTimes& times, uint32_t device, const Task& task, const Kernel& kernel);
  void Communicated(const CallTimes& times, uint32_t device, const Task& task,
                    const Communication& communication);
  // Of a graph: `task` was put into it; later STARTs are notified of it too. It is never freed.
  void Loaded(const CallTimes& times, uint32_t device, const Task& task);
  // Begin or end of a graph's load or execution: each is an event of its own.
  void ModelEvent(prof::ModelType type, const Model& model, uint32_t iteration);
  void ModelNamed(const Model& model);
  void Copied(const CallTimes& times, uint32_t device, const Task& task);
  // A call that launches nothing. runtime_type 0: ACL only.
  void Called(const CallTimes& times, const char* function, uint32_t runtime_type);

  void set_unnamed_functions(bool on) { unnamed_functions_ = on; }
  void set_silent_models(bool on) { silent_models_ = on; }

 private:
  enum Source : unsigned { kRuntimeApi, kTracks, kAclApi, kNode, kHccl, kSources };

  Reporter();
  // Of libprofapi: on(command).
  template <void (Reporter::*on)(const prof::Command&)>
  static int32_t OnCommand(uint32_t type, void* data, uint32_t size);
  void OnRuntime(const prof::Command& command);
  void OnAcl(const prof::Command& command);
  void OnGe(const prof::Command& command);
  void OnHccl(const prof::Command& command);
  // Whether that switched it on.
  bool Switch(Source source, uint64_t bit, const prof::Command& command);
  void ReportModels();
  void ReportModelName(const Model& model);
  void ReportLoaded(const CallTimes& times, uint32_t device, const Task& task);
  bool On(Source source) const { return on_[source].load(std::memory_order_relaxed); }
  void RegisterRuntimeTypes();
  void RegisterFunctions();
  uint64_t NameId(const char* name);
  uint32_t FunctionType(const char* function, uint32_t base);
  void ReportTrack(uint32_t device, const Task& task, uint32_t id, uint32_t task_type, uint64_t name,
                   uint32_t block_dim);
  // What belongs to a launch is timestamped before it ends: it is joined by that.
  void ReportNode(const CallTimes& times, uint64_t end, uint64_t name, uint32_t task_type, uint64_t type,
                  uint32_t block_dim);
  void ReportTensors(const Kernel& kernel, uint64_t name, uint64_t time);
  void ReportSubTask(const Task& task, const Communication& communication, uint32_t device, uint32_t number);
  void ReportFunction(const CallTimes& times, const char* function, uint32_t base);
  void ReportRuntime(const CallTimes& times, uint32_t type);

  std::array<std::atomic<bool>, kSources> on_{};
  std::atomic<bool> unnamed_functions_{false}, silent_models_{false};
  Mutex mutex_;
  std::unordered_map<std::string, uint64_t> names_ GUARDED_BY(mutex_);
  std::map<std::string, uint32_t> functions_ GUARDED_BY(mutex_);
  std::vector<std::pair<uint32_t, const Task*>> loaded_ GUARDED_BY(mutex_);  // device, task of a graph
  std::vector<const Model*> models_ GUARDED_BY(mutex_);
};

}  // namespace profd::sim::acl
