// Reads one slice from its beginning to its end, whether it lies there as recorded or compressed.
// Memory does not depend on what the file claims about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

class SliceSource {
 public:
  enum class Sums : uint8_t { kYes, kNo };
  // `fd` is a regular file opened for reading. The end of `path` shows whether it is compressed.
  // Without sums the check sums below stay 0, and unchecked bytes cost only the reading.
  SliceSource(UniqueFd fd, std::string_view path, Sums sums = Sums::kYes);
  ~SliceSource();
  SliceSource(const SliceSource&) = delete;
  SliceSource& operator=(const SliceSource&) = delete;

  // Fills `out` as far as there is something: fewer bytes than asked for only at the end. kDataLoss
  // for a compressed file that is damaged or cut off; the part before was valid.
  Result<size_t> Read(std::span<std::byte> out);

  bool compressed() const { return zstd_ != nullptr; }
  // Of the file as it is stored, as far as it was read; all of it once Read has returned 0.
  uint64_t stored_bytes() const { return stored_bytes_; }
  uint32_t stored_crc32c() const { return stored_crc32c_; }
  // Of what Read has given out, the recorded bytes; the same as above if not compressed.
  uint64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc32c_; }

 private:
  struct Zstd;
  Result<size_t> ReadStored(std::span<std::byte> out);
  Result<size_t> Decompress(std::span<std::byte> out);

  UniqueFd fd_;
  const bool sums_;
  std::unique_ptr<Zstd> zstd_;
  uint64_t stored_bytes_ = 0;
  uint32_t stored_crc32c_ = 0;
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
  Status failed_;  // reported once everything before it was given out
};

// Whether a file of this name is a compressed slice.
bool IsCompressedSlice(std::string_view path);

}  // namespace profd
