#include "export/trace/legacy_parts.h"

namespace profd::exporting {
namespace {

bool IsApi(const ProcessSpec& process, const LayerEvent&) { return &process == &kCannProcess; }
bool IsTask(const ProcessSpec& process, const LayerEvent&) { return &process == &kHardwareProcess; }
bool IsAcl(const ProcessSpec& process, const LayerEvent& event) {
  return IsApi(process, event) && event.name.starts_with("AscendCL@");
}
bool IsRuntime(const ProcessSpec& process, const LayerEvent& event) {
  return IsApi(process, event) && event.name.starts_with("Runtime@");
}
bool IsQueue(const ProcessSpec& process, const LayerEvent& event) {
  return &process == &kPythonProcess && (event.category == "enqueue" || event.category == "dequeue");
}

}  // namespace

constexpr std::array<LegacyPart, 6> kLegacyParts = {{{"thread_group", true, IsApi},
                                                     {"task_time", true, IsTask},
                                                     {"acl", true, IsAcl},
                                                     {"runtime_api", true, IsRuntime},
                                                     {"task_queue", false, IsQueue},
                                                     {"msprof_tx", false, nullptr}}};

void LegacyPartSink::Enter(const LayerThread& thread) {
  thread_ = thread;
  name_ = thread.name;
  thread_.name = name_;
  entered_ = false;
}

void LegacyPartSink::Take(const LayerEvent& event) {
  if (!part_.has(*thread_.process, event)) return;
  if (!entered_) to_.Enter(thread_);
  entered_ = true;
  to_.Take(event);
}

}  // namespace profd::exporting
