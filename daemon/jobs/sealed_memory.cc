#include "daemon/jobs/sealed_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

namespace profd {

Result<SealedMemory> SealedMemory::Map(const UniqueFd& memfd, std::string_view what, Sizes sizes) {
  // The fcntl answers for memfds only and calls no file system of a user's: it is called first.
  int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0) return InvalidArgument(fmt::format("{} is not a memfd", what));
  if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0) {
    return InvalidArgument(
        fmt::format("{}'s memfd is not sealed against shrinking and growing", what));
  }
  struct statfs where {};
  // Huge pages can run out at the first touch, which would be a signal for us.
  if (::fstatfs(memfd.get(), &where) != 0 || where.f_type != TMPFS_MAGIC) {
    return InvalidArgument(fmt::format("{}'s memfd does not use ordinary pages", what));
  }
  struct stat info {};
  if (::fstat(memfd.get(), &info) != 0) {
    return Status::FromErrno(errno, fmt::format("stat of {}", what));
  }
  if (info.st_size < static_cast<off_t>(sizes.least) ||
      info.st_size > static_cast<off_t>(sizes.most)) {
    return InvalidArgument(fmt::format("{} has {} bytes", what, info.st_size));
  }
  const auto bytes = static_cast<size_t>(info.st_size);
  const size_t mapped = sizes.mapped == 0 ? bytes : sizes.mapped;
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (base == MAP_FAILED) return Status::FromErrno(errno, fmt::format("map {}", what));
  return SealedMemory(static_cast<std::byte*>(base), mapped, bytes, info.st_ino);
}

SealedMemory::~SealedMemory() {
  if (base_ != nullptr) ::munmap(base_, mapped_);
}

}  // namespace profd
