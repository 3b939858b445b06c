// What a framework's allocator reports (in-application 7.2, torch.memory_usage).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace profd::exporting::operators {

inline constexpr char kFrameworkComponent[] = "PTA";  // as PyTorch's profiler calls it

struct FrameworkMemory {
  enum class Kind : uint8_t { kTaken, kReleased, kInactive };  // the last: no stream uses it any more
  int64_t time = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t allocated = 0;  // in all
  int64_t reserved = 0;
  int64_t active = 0;
  int64_t stream = 0;  // its address
  uint64_t thread = 0;
  uint8_t device = 0;
  Kind kind = Kind::kTaken;
};

// One of them and its ends; null: none in the collection.
struct FrameworkAllocation {
  const FrameworkMemory* taken = nullptr;
  const FrameworkMemory* released = nullptr;
  const FrameworkMemory* inactive = nullptr;
};

class FrameworkMemories {
 public:
  static constexpr size_t kRecordBytes = 77;

  // The fixed part of a record; false: it makes no sense. What is not of an NPU is passed over.
  bool Take(std::span<const std::byte> record);
  void Finish(const std::function<int64_t(int64_t)>& clock);

  // By the time they were taken; pointers into `records`.
  std::vector<FrameworkAllocation> Allocations() const;

  std::vector<FrameworkMemory> records;  // after Finish by time
  uint64_t bad_times = 0;
};

}  // namespace profd::exporting::operators
