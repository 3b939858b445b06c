// Arrays of records that may be larger than the memory a command should take: while a SpillScope lives, large ones lie
// in a file without a name, and what of them is mapped is let go again and again. Without one they are ordinary memory.
#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <vector>

namespace profd::exporting {

// Of the process; at most one at a time takes effect. Arrays outlive it.
class SpillScope {
 public:
  // Files go into `dir`. Where none can be made, memory is used.
  explicit SpillScope(const std::string& dir);
  ~SpillScope();
  SpillScope(const SpillScope&) = delete;
  SpillScope& operator=(const SpillScope&) = delete;

  // Lets go of what is mapped; its next use reads it from the page cache or the disk. Any thread, beside any use.
  void Trim() const;

 private:
  bool active_ = false;
};

void* AllocateLarge(size_t bytes);
void FreeLarge(void* memory, size_t bytes) noexcept;

template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other>& /*other*/) {}  // NOLINT(google-explicit-constructor): allocators convert

  // NOLINTBEGIN(bugprone-sizeof-expression): T may be a pointer
  T* allocate(size_t count) { return static_cast<T*>(AllocateLarge(count * sizeof(T))); }
  void deallocate(T* memory, size_t count) noexcept { FreeLarge(memory, count * sizeof(T)); }
  // NOLINTEND(bugprone-sizeof-expression)
  template <class Other>
  bool operator==(const LargeAllocator<Other>& /*other*/) const {
    return true;
  }
};

template <class T>
using Large = std::vector<T, LargeAllocator<T>>;

// Gives a vector's memory back, which `= {}` and clear() do not.
template <class Vector>
void Release(Vector* vector) {
  Vector().swap(*vector);
}

}  // namespace profd::exporting
