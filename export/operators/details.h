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
// Input and output; of the operator that describes the launch: those of its name and first time.
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
