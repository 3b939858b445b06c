// Counts what a dump writes, and how much of it was copied before instead of handed on in place.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "dump/dump_io.h"

namespace profd::bench {

class CountingIo final : public DumpIo {
 public:
  // What lies in `source` was not copied.
  explicit CountingIo(std::span<const std::byte> source) : source_(source) {}
  ssize_t Write(int fd, const void* data, size_t size) override {
    Count(data, size);
    return DumpIo::Write(fd, data, size);
  }
  ssize_t WriteV(int fd, const iovec* parts, int count) override {
    for (int i = 0; i < count; ++i) Count(parts[i].iov_base, parts[i].iov_len);
    return DumpIo::WriteV(fd, parts, count);
  }
  uint64_t written = 0;
  uint64_t copied = 0;
  uint64_t calls = 0;

 private:
  void Count(const void* data, size_t size) {
    const auto* at = static_cast<const std::byte*>(data);
    ++calls;
    written += size;
    if (at < source_.data() || at >= source_.data() + source_.size()) copied += size;
  }
  std::span<const std::byte> source_;
};

}  // namespace profd::bench
