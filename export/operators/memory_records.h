// Memory as frameworks and the graph engine report it on the host (operator-data a.2): allocations and frees of
// operators, and what a static graph has planned.
#pragma once

#include <cstdint>
#include <vector>

#include "export/operators/records.h"

namespace profd::exporting::operators {

// additional.task_memory_info; memory_application of earlier releases is the same.
struct MemoryRecord {
  uint64_t time = 0;  // host counter
  uint64_t address = 0;
  int64_t bytes = 0;      // negative: freed
  uint64_t name = 0;      // hash of the operator; 0: none
  uint64_t allocated = 0;  // in all, after it
  uint64_t reserved = 0;
  uint32_t thread = 0;
  uint32_t device = 0;
  uint32_t device_type = 0;
};
inline constexpr uint32_t kNpuMemory = 20;

// additional.static_op_mem
struct PlannedMemory {
  uint64_t name = 0;  // hash; 0: of the graph in all
  int64_t bytes = 0;
  uint64_t life_begin = 0;  // indices of nodes
  uint64_t life_end = 0;
  uint32_t graph = 0;
};

// An allocation with what freed it.
struct Allocation {
  const MemoryRecord* taken = nullptr;
  const MemoryRecord* freed = nullptr;  // null: never
};

struct MemoryRecords {
  void AddMemory(const RecordView& record);
  void AddPlanned(const RecordView& record);
  // Each with the next free of its address on its device; in the order of the records.
  std::vector<Allocation> Allocations() const;

  std::vector<MemoryRecord> memory;  // as recorded
  std::vector<PlannedMemory> planned;
};

}  // namespace profd::exporting::operators
