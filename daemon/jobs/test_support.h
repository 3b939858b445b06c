// For tests of this folder only: a mark ring as a process makes it, and a directory entry.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "daemon/jobs/ring_reader.h"
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

}  // namespace profd
