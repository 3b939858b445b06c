#include "sim/ascendcl/model.h"

#include <utility>

namespace profd::sim::acl {

const Task& Model::Add(Task task) {
  task.model = id_;
  device_.Number(&task);
  Item& item = items_.emplace_back();
  item.task = std::make_unique<Task>(std::move(task));
  return *item.task;
}

void Model::AddWait(uint32_t stream, uint32_t other) { items_.push_back({nullptr, stream, other}); }

bool Model::Execute(uint32_t iteration, std::span<const int64_t> durations) const {
  for (const Item& item : items_) {
    if (item.task == nullptr) {
      device_.WaitFor(item.stream, device_.Last(item.other));
      continue;
    }
    Task task = *item.task;
    task.iteration = iteration;
    const bool trace = task.kind == Task::kTrace;
    if (trace) task.value = iteration;
    if (!trace && !durations.empty()) {
      task.duration_ns = durations.front();
      durations = durations.subspan(1);
    }
    if (task.group != nullptr) task.operation = task.group->NextOperation();
    if (device_.Launch(std::move(task)) == nullptr) return false;
  }
  return true;
}

}  // namespace profd::sim::acl
