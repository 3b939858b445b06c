#include "export/large.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "export/spool.h"

namespace profd::exporting {
namespace {

constexpr size_t kLeastBytes = 4 << 20;  // smaller ones are memory always
// Blocks begin and end at multiples of a huge page, in memory and in their files: otherwise each page of 4 KiB is a page
// fault of its own (2.5 times as long in all, measured).
constexpr size_t kUnit = 2 << 20;

class Spill {
 public:
  bool Open(const std::string& dir) {
    MutexLock lock(mutex_);
    if (dir_) return false;
    dir_ = dir;
    return true;
  }
  void Close() {
    MutexLock lock(mutex_);
    dir_.reset();
    for (const Block& block : free_) ::munmap(block.at, block.bytes);
    free_.clear();
  }
  // Null: there is no scope, or the disk is full.
  void* Map(size_t bytes) {
    MutexLock lock(mutex_);
    if (!dir_) return nullptr;
    bytes = (bytes + kUnit - 1) / kUnit * kUnit;
    char* memory = Place(bytes);
    if (memory == nullptr) return nullptr;
    std::vector<Block> blocks;
    const size_t reused = Reuse(memory, bytes, &blocks);
    if (reused < bytes) {
      if (!MapNew(memory + reused, bytes - reused)) {
        free_.insert(free_.end(), blocks.begin(), blocks.end());
        ::munmap(memory + reused, bytes - reused);
        return nullptr;
      }
      blocks.push_back({memory + reused, bytes - reused});
    }
    mapped_[memory] = std::move(blocks);
    return memory;
  }
  bool Unmap(void* memory) {
    MutexLock lock(mutex_);
    const auto found = mapped_.find(memory);
    if (found == mapped_.end()) return false;
    for (const Block& block : found->second) {
      if (dir_) {
        free_.push_back(block);
      } else {
        ::munmap(block.at, block.bytes);
      }
    }
    mapped_.erase(found);
    return true;
  }
  void Trim() {
    MutexLock lock(mutex_);
    // Of a shared mapping this drops no data: it stays in the file.
    const auto trim = [](const Block& block) { ::madvise(block.at, block.bytes, MADV_DONTNEED); };
    for (const auto& [memory, blocks] : mapped_) std::ranges::for_each(blocks, trim);
    std::ranges::for_each(free_, trim);
  }

 private:
  // Of one file, which is what mremap moves: kernels before 6.17 move one mapping at a time.
  struct Block {
    char* at;
    size_t bytes;
  };

  // Addresses for so many bytes, from a multiple of kUnit on.
  static char* Place(size_t bytes) {
    auto* found = static_cast<char*>(::mmap(nullptr, bytes + kUnit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (found == MAP_FAILED) return nullptr;
    const size_t before = (kUnit - reinterpret_cast<uintptr_t>(found) % kUnit) % kUnit;
    if (before > 0) ::munmap(found, before);
    ::munmap(found + before + bytes, kUnit - before);
    return found + before;
  }

  // What has been freed is used first, the last one first: its pages are in memory already. Moves it to `memory`, whose
  // first bytes, as many as this answers, are then mapped, in `blocks`.
  size_t Reuse(char* memory, size_t bytes, std::vector<Block>* blocks) REQUIRES(mutex_) {
    size_t done = 0;
    while (done < bytes && !free_.empty()) {
      Block& last = free_.back();
      const size_t part = std::min(last.bytes, bytes - done);
      if (::mremap(last.at, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, memory + done) == MAP_FAILED) {
        // Of no use any more; its space goes back to the disk.
        ::munmap(last.at, last.bytes);
        free_.pop_back();
        break;
      }
      blocks->push_back({memory + done, part});
      done += part;
      last.at += part;
      last.bytes -= part;
      if (last.bytes == 0) free_.pop_back();
    }
    return done;
  }

  // In a file of its own.
  bool MapNew(char* memory, size_t bytes) REQUIRES(mutex_) {
    const UniqueFd fd = OpenUnnamed(*dir_);
    if (!fd.valid() || ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) != 0) return false;
    return ::mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), 0) != MAP_FAILED;
  }

  Mutex mutex_;
  std::optional<std::string> dir_ GUARDED_BY(mutex_);  // none: no scope
  std::map<void*, std::vector<Block>> mapped_ GUARDED_BY(mutex_);
  std::vector<Block> free_ GUARDED_BY(mutex_);
};

Spill& TheSpill() {
  static auto* spill = new Spill;  // arrays may be freed by other statics' ends
  return *spill;
}

}  // namespace

SpillScope::SpillScope(const std::string& dir) : active_(TheSpill().Open(dir)) {}

SpillScope::~SpillScope() {
  if (active_) TheSpill().Close();
}

void SpillScope::Trim() const { TheSpill().Trim(); }

void* AllocateLarge(size_t bytes) {
  void* memory = bytes < kLeastBytes ? nullptr : TheSpill().Map(bytes);
  return memory != nullptr ? memory : ::operator new(bytes);
}

void FreeLarge(void* memory, size_t bytes) noexcept {
  if (bytes < kLeastBytes || !TheSpill().Unmap(memory)) ::operator delete(memory);
}

}  // namespace profd::exporting
