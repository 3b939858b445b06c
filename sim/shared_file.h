// Memory that processes share through a file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstddef>

#include "base/fd.h"

namespace profd::sim {

// All make it the same length; new bytes are zeros. Null: there is no such file, or it cannot be had. Never unmapped here.
inline void* MapShared(const char* path_or_null, size_t bytes, mode_t mode) {
  if (path_or_null == nullptr || *path_or_null == '\0') return nullptr;
  const UniqueFd file(::open(path_or_null, O_RDWR | O_CREAT | O_CLOEXEC, mode));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace profd::sim
