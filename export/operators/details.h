// What rows of operators show beside the join: texts of tensors, and the counters of each kind of core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "export/operators/model.h"

namespace profd::exporting::operators {

// Whether a task of this core type is an execution of an operator. Those of a collective are only as its AIV kernel.
bool IsShown(const Model& model, const HostTask& task, std::string_view core_type);

struct TensorTexts {
  std::string shapes;
  std::string types;
  std::string formats;
  size_t count = 0;

  void Add(const Tensor& tensor);
};

// Calls `take` with each record of the task's tensors: of the operator that describes the launch, those of its name and
// first time.
template <class Take>
void EachTensorRecord(const Model& model, const HostTask& task, const Take& take) {
  const Launch* launch = model.LaunchOf(task);
  const NodeRecord* node = model.NodeOf(task);
  if (launch == nullptr || node == nullptr || !model.detailed) return;
  const TensorRecord* first = nullptr;
  for (uint32_t i = launch->tensors_begin; i < launch->tensors_end; ++i) {
    const TensorRecord& record = model.host.tensor_records[i];
    if (record.name != node->name || (first != nullptr && record.time != first->time)) continue;
    if (first == nullptr) first = &record;
    take(record);
  }
}

// Input and output.
std::pair<TensorTexts, TensorTexts> TensorsOf(const Model& model, const HostTask& task);

// Counters of one kind of core in one task; those of one that did not run are 0.
struct CoreCounters {
  const PmuCore* core = nullptr;
  PmuCounts counts;
  double time_us = 0;
};
// Cube, vector. None: nothing was counted.
std::optional<std::array<CoreCounters, 2>> CountersOf(const Model& model, const TaskRow& row, const HostTask& task);

}  // namespace profd::exporting::operators
