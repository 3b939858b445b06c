// Memory that another process made, sealed and continues to write to, mapped so that no access to it can
// fault: a memfd that can neither shrink nor grow, of ordinary pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace profd {

class SealedMemory {
 public:
  struct Sizes {
    size_t least = 0;
    size_t most = 0;
    size_t mapped = 0;  // from the beginning; 0 = all
  };
  // `what` ("the mark ring") begins the refusals. kInvalidArgument: no memfd of such a size and seals.
  static Result<SealedMemory> Map(const UniqueFd& memfd, std::string_view what, Sizes sizes);
  ~SealedMemory();
  SealedMemory(SealedMemory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_), bytes_(other.bytes_), inode_(other.inode_) {}
  SealedMemory& operator=(SealedMemory&&) = delete;

  std::byte* base() const { return base_; }
  // Of the memfd.
  size_t bytes() const { return bytes_; }
  bool IsSameAs(const SealedMemory& other) const { return inode_ == other.inode_; }

 private:
  SealedMemory(std::byte* base, size_t mapped, size_t bytes, uint64_t inode)
      : base_(base), mapped_(mapped), bytes_(bytes), inode_(inode) {}

  std::byte* base_;
  size_t mapped_;
  size_t bytes_;
  uint64_t inode_;
};

}  // namespace profd
