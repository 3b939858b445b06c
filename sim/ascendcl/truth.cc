#include "sim/ascendcl/truth.h"

#include <fmt/format.h>

#include <iterator>

namespace profd::sim::acl {
namespace {

const char* CoreName(uint32_t task_type) {
  switch (task_type) {
    case prof::kTaskAicpu: return "aicpu";
    case prof::kTaskAivec: return "aivec";
    case prof::kTaskMixAic: return "mix_aic";
    case prof::kTaskMixAiv: return "mix_aiv";
    default: return "aicore";
  }
}

// "64,3,224,224;64,64", as the vendor writes them; the output's last.
std::string Shapes(const Task& task) {
  std::string text;
  for (const Tensor& tensor : task.tensors) {
    if (!text.empty()) text += ';';
    for (size_t i = 0; i < std::size(tensor.shape) && tensor.shape[i] != 0; ++i) {
      fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    }
  }
  return text;
}

}  // namespace

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
  if (task.kind == Task::kKernel) {
    line += fmt::format(R"(,"core":"{}","blocks":{},"shapes":"{}")", CoreName(task.task_type),
                        task.block_dim, Shapes(task));
  }
  if (task.group != nullptr) line += fmt::format(R"(,"group":"{}")", task.group->name());
  if (task.bytes != 0) line += fmt::format(R"(,"bytes":{})", task.bytes);
  if (task.kind == Task::kTrace) line += fmt::format(R"(,"tag":{})", task.tag);
  if (task.model != kNoModel) {
    line += fmt::format(R"(,"model":{},"iteration":{})", task.model, task.iteration);
  }
  Write(line + "}");
}

void Truth::Flush() {
  MutexLock lock(mutex_);
  if (file_ != nullptr) std::fflush(file_);
}

}  // namespace profd::sim::acl
