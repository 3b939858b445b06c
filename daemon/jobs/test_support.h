// For tests of this folder only: the rings of a process as it makes them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "daemon/jobs/ring_reader.h"
#include "proto/attach/activity_writer.h"
#include "proto/attach/mark_ring.h"
#include "proto/attach/mark_ring_writer.h"

namespace profd {

class TestRing {
 public:
  explicit TestRing(uint32_t slots = attach::kMinRingSlots,
                    int seals = F_SEAL_SHRINK | F_SEAL_GROW, size_t extra_bytes = 0)
      : bytes_(attach::RingBytes(slots) + extra_bytes),
        fd_(::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0) return;
    ::fcntl(fd_.get(), F_ADD_SEALS, seals);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    writer_ = attach::MarkRingWriter::Format(memory_, slots);
  }
  ~TestRing() { ::munmap(memory_, bytes_); }
  TestRing(const TestRing&) = delete;
  TestRing& operator=(const TestRing&) = delete;

  const UniqueFd& fd() const { return fd_; }
  const attach::MarkRingWriter& writer() const { return writer_; }
  attach::MarkRing& header() { return *static_cast<attach::MarkRing*>(memory_); }
  attach::MarkSlot& slot(size_t index) {
    auto* slots = static_cast<std::byte*>(memory_) + attach::kRingHeaderBytes;
    return reinterpret_cast<attach::MarkSlot*>(slots)[index];
  }
  bool Put(attach::MarkKind kind, std::string_view name = {}, int64_t value = 0, int64_t time = 1) {
    return writer_.Publish({kind, time, value, 7, name});
  }

 private:
  const size_t bytes_;
  UniqueFd fd_;
  void* memory_ = nullptr;
  attach::MarkRingWriter writer_;
};

class TestActivityRing {
 public:
  explicit TestActivityRing(uint64_t bytes = attach::kMinActivityBytes,
                            int seals = F_SEAL_SHRINK | F_SEAL_GROW, size_t extra_bytes = 0)
      : bytes_(attach::ActivityRingBytes(bytes) + extra_bytes),
        fd_(::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0) return;
    ::fcntl(fd_.get(), F_ADD_SEALS, seals);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    writer_ = std::make_unique<attach::ActivityWriter>(memory_, bytes, 1, 1);
  }
  ~TestActivityRing() { ::munmap(memory_, bytes_); }
  TestActivityRing(const TestActivityRing&) = delete;
  TestActivityRing& operator=(const TestActivityRing&) = delete;

  const UniqueFd& fd() const { return fd_; }
  attach::ActivityWriter& writer() { return *writer_; }
  attach::ActivityRing& header() { return *static_cast<attach::ActivityRing*>(memory_); }
  std::byte* frames() { return static_cast<std::byte*>(memory_) + attach::kActivityHeaderBytes; }
  void PutKernel(int64_t start_ns, const char* name = "MatMul", uint64_t correlation = 0) {
    attach::KernelRecord kernel{};
    kernel.correlation = correlation;
    kernel.name = writer_->Intern(name);
    writer_->AddAt(start_ns, kernel);
  }

 private:
  const size_t bytes_;
  UniqueFd fd_;
  void* memory_ = nullptr;
  std::unique_ptr<attach::ActivityWriter> writer_;
};

}  // namespace profd
