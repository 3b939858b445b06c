// The entries of a directory, one after the other.
#pragma once

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/fd.h"

namespace profd {

class DirStream {
 public:
  // Takes the descriptor and its position. Not valid, with errno, where it is none of a directory.
  explicit DirStream(UniqueFd directory) : stream_(directory.valid() ? ::fdopendir(directory.get()) : nullptr) {
    if (valid()) directory.Release();
  }

  bool valid() const { return stream_ != nullptr; }
  int fd() const { return ::dirfd(stream_.get()); }
  // Not "." and "..". Null at the end, where errno is 0, and after an error.
  const dirent* Next() {
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(stream_.get());
      if (entry == nullptr) return nullptr;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") return entry;
    }
  }

 private:
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  std::unique_ptr<DIR, Close> stream_;
};

}  // namespace profd
