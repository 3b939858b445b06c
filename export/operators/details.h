// What rows of operators show beside the join: texts of tensors, and the counters of each kind of core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/operators/model.h"

namespace profd::exporting::operators {

// As IsOperator.
bool IsShown(const Model& model, const HostTask& task, std::string_view core_type);

// Name, type, core and tensors of an operator follow from these, and most tasks are like one before: what is made of them
// can be made once.
struct Alike {
  int32_t launch = -1;
  uint32_t type = 0;
  uint64_t kernel = 0;
  std::optional<uint64_t> communication;  // item of the call around it
  bool operator==(const Alike&) const = default;
};
struct AlikeHash {
  size_t operator()(const Alike& key) const {
    size_t hash = key.kernel * 0x9E3779B97F4A7C15u;  // hashes of texts may differ in the same bits
    for (const uint64_t part : {uint64_t{static_cast<uint32_t>(key.launch)} << 32 | key.type, key.communication.value_or(0)}) {
      hash = (hash ^ (hash >> 32) ^ part) * 0x9E3779B97F4A7C15u;
    }
    return hash ^ hash >> 32;
  }
};
Alike AlikeOf(const Model& model, const HostTask& task);

struct TensorTexts {
  std::string shapes;
  std::string types;
  std::string formats;
  size_t count = 0;

  void Add(const Tensor& tensor);
};

// Index of HostData::tensors: those of the operator that describes the launch; -1: none.
inline int32_t TensorsNumber(const Model& model, const HostTask& task) {
  const Launch* launch = model.detailed ? model.LaunchOf(task) : nullptr;
  return launch == nullptr ? -1 : launch->tensors;
}

// Texts of input and output.
using InputAndOutput = std::pair<TensorTexts, TensorTexts>;
InputAndOutput TensorsOf(const Model& model, const HostTask& task);

// The same of many tasks; any thread.
class TensorTable {
 public:
  explicit TensorTable(const Model& model);
  // Valid until the thread's next call.
  const InputAndOutput& Of(const HostTask& task) const;

 private:
  const Model& model_;
  std::vector<InputAndOutput> texts_;  // by HostData::tensors; empty: too many
};

// Counters of one kind of core in one task; those of one that did not run are 0.
struct CoreCounters {
  const PmuCore* core = nullptr;
  PmuCounts counts;
  double time_us = 0;
};
// Cube, vector. None: nothing was counted.
std::optional<std::array<CoreCounters, 2>> CountersOf(const Model& model, const TaskRow& row, const HostTask& task);

}  // namespace profd::exporting::operators
