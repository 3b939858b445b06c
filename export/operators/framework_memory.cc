#include "export/operators/framework_memory.h"

#include <map>
#include <unordered_map>

#include "export/operators/memory_records.h"
#include "export/operators/records.h"
#include "export/operators/sort_records.h"

namespace profd::exporting::operators {

bool FrameworkMemories::Take(std::span<const std::byte> bytes) {
  const RecordView record(bytes);
  const uint8_t kind = record.U8(59);
  if (kind > static_cast<uint8_t>(FrameworkMemory::Kind::kInactive)) return false;
  if (record.U8(56) != kNpuMemory) return true;
  FrameworkMemory made;
  made.address = record.U64(0);
  made.time = static_cast<int64_t>(record.U64(8));
  made.bytes = static_cast<int64_t>(record.U64(16));
  made.allocated = static_cast<int64_t>(record.U64(24));
  made.reserved = static_cast<int64_t>(record.U64(32));
  made.active = static_cast<int64_t>(record.U64(40));
  made.stream = static_cast<int64_t>(record.U64(48));
  made.device = record.U8(57);
  made.kind = static_cast<FrameworkMemory::Kind>(kind);
  made.thread = record.U64(61);
  records.push_back(made);
  return true;
}

void FrameworkMemories::Finish(const std::function<int64_t(int64_t)>& clock) {
  for (FrameworkMemory& record : records) record.time = clock(record.time);
  bad_times = std::erase_if(records, [](const FrameworkMemory& record) { return record.time < 0; });
  SortRecords(&records, [](const FrameworkMemory& a, const FrameworkMemory& b) { return a.time < b.time; });
}

std::vector<FrameworkAllocation> FrameworkMemories::Allocations() const {
  std::vector<FrameworkAllocation> made;
  std::map<uint8_t, std::unordered_map<uint64_t, size_t>> devices;  // by address: index of `made`
  for (const FrameworkMemory& record : records) {
    auto& held = devices[record.device];
    if (record.kind == FrameworkMemory::Kind::kTaken) {
      held[record.address] = made.size();
      made.push_back({&record, nullptr, nullptr});
      continue;
    }
    const auto of = held.find(record.address);
    if (of == held.end()) continue;  // taken before the collection
    FrameworkAllocation& allocation = made[of->second];
    const FrameworkMemory*& end =
        record.kind == FrameworkMemory::Kind::kReleased ? allocation.released : allocation.inactive;
    if (end == nullptr) end = &record;
  }
  return made;
}

}  // namespace profd::exporting::operators
