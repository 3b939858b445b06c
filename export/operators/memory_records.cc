#include "export/operators/memory_records.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace profd::exporting::operators {

void MemoryRecords::AddMemory(const RecordView& record) {
  MemoryRecord made;
  made.time = record.U64(16);
  made.thread = record.U32(8);
  made.address = record.U64(24);
  made.bytes = static_cast<int64_t>(record.U64(32));
  made.name = record.U64(40);
  made.allocated = record.U64(48);
  made.reserved = record.U64(56);
  made.device = record.U32(64);
  made.device_type = record.U32(68);
  memory.push_back(made);
}

void MemoryRecords::AddPlanned(const RecordView& record) {
  planned.push_back({record.U64(32), static_cast<int64_t>(record.U64(24)), record.U64(40), record.U64(48), record.U32(72)});
}

std::vector<Allocation> MemoryRecords::Allocations() const {
  // Files of either age have records, one file behind the other.
  std::vector<const MemoryRecord*> by_time;
  by_time.reserve(memory.size());
  for (const MemoryRecord& record : memory) by_time.push_back(&record);
  std::ranges::stable_sort(by_time, {}, &MemoryRecord::time);
  std::vector<Allocation> made;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, size_t> open;  // by kind of device, device and address
  for (const MemoryRecord* record : by_time) {
    const std::tuple key(record->device_type, record->device, record->address);
    if (record->bytes >= 0) {
      open[key] = made.size();
      made.push_back({record, nullptr});
    } else if (const auto found = open.find(key); found != open.end()) {
      made[found->second].freed = record;
      open.erase(found);
    }
  }
  std::ranges::sort(made, {}, &Allocation::taken);
  return made;
}

}  // namespace profd::exporting::operators
