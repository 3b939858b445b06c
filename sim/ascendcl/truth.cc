#include "sim/ascendcl/truth.h"

#include <fmt/format.h>

namespace profd::sim::acl {

bool Truth::Open(const std::string& path) {
  MutexLock lock(mutex_);
  if (file_ != nullptr) std::fclose(file_);
  file_ = std::fopen(path.c_str(), "we");
  return file_ != nullptr;
}

void Truth::Write(const std::string& json) {
  MutexLock lock(mutex_);
  if (file_ == nullptr) return;
  std::fputs(json.c_str(), file_);
  std::fputc('\n', file_);
}

void Truth::WriteTask(uint32_t device, const Task& task) {
  constexpr const char* kKinds[] = {"kernel", "communication", "copy", "trace", "event"};
  if (task.kind == Task::kEvent) return;
  // Names come from a job's file, whose reader has refused quotes and control characters.
  std::string line = fmt::format(
      R"({{"what":"{}","device":{},"stream":{},"task":{},"name":"{}","type":"{}","launch_ns":{},)"
      R"("begin_ns":{},"end_ns":{})",
      kKinds[task.kind], device, task.stream, task.id, task.name, task.type, task.launch_ns,
      task.begin_ns, task.end_ns);
  if (task.group != nullptr) line += fmt::format(R"(,"group":"{}")", task.group->name());
  if (task.bytes != 0) line += fmt::format(R"(,"bytes":{})", task.bytes);
  Write(line + "}");
}

void Truth::Flush() {
  MutexLock lock(mutex_);
  if (file_ != nullptr) std::fflush(file_);
}

}  // namespace profd::sim::acl
