#include "export/large.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "base/fd.h"
#include "base/mutex.h"

namespace profd::exporting {
namespace {

constexpr size_t kLeastBytes = 4 << 20;  // smaller ones are memory always

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
  }
  // Null: there is no scope, or the disk is full.
  void* Map(size_t bytes) {
    MutexLock lock(mutex_);
    if (!dir_) return nullptr;
    // A file each, so that its end gives the disk's space back.
    const UniqueFd fd = OpenUnnamed();
    if (!fd.valid() || ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) != 0) return nullptr;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) return nullptr;
    mapped_[memory] = bytes;
    return memory;
  }
  bool Unmap(void* memory) {
    MutexLock lock(mutex_);
    const auto found = mapped_.find(memory);
    if (found == mapped_.end()) return false;
    ::munmap(memory, found->second);
    mapped_.erase(found);
    return true;
  }
  void Trim() {
    MutexLock lock(mutex_);
    // Of a shared mapping this drops no data: it stays in the file.
    for (const auto& [memory, bytes] : mapped_) ::madvise(memory, bytes, MADV_DONTNEED);
  }

 private:
  UniqueFd OpenUnnamed() REQUIRES(mutex_) {
    UniqueFd fd(::open(dir_->c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd.valid()) return fd;
    std::string path = *dir_ + "/.profd-XXXXXX";
    fd.Reset(::mkostemp(path.data(), O_CLOEXEC));
    if (fd.valid()) ::unlink(path.c_str());
    return fd;
  }

  Mutex mutex_;
  std::optional<std::string> dir_ GUARDED_BY(mutex_);  // none: no scope
  std::map<void*, size_t> mapped_ GUARDED_BY(mutex_);
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
