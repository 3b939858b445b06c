// Shared by the tests of dump/: a directory that is removed, files as strings, a disk that fills.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "dump/dump_io.h"

namespace profd {

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Paths of all regular files below `path`, relative.
inline std::set<std::string> FilesBelow(const std::string& path) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      files.insert(std::filesystem::relative(entry.path(), path).string());
    }
  }
  return files;
}

inline DumpOwner Myself() { return {::geteuid(), ::getegid()}; }

// A volume with space for `free_bytes` more bytes, which then answers `error`; like a real one it may take
// part of a write.
class FullDiskIo : public DumpIo {
 public:
  ssize_t Write(int fd, const void* data, size_t size) override {
    if (free_bytes == 0 && size > 0) {
      errno = error;
      return -1;
    }
    ssize_t put = DumpIo::Write(fd, data, std::min(size, free_bytes));
    if (put > 0) free_bytes -= static_cast<size_t>(put);
    return put;
  }
  ssize_t WriteV(int fd, const struct iovec* parts, int count) override {
    ssize_t sum = 0;
    for (int i = 0; i < count; ++i) {
      ssize_t put = Write(fd, parts[i].iov_base, parts[i].iov_len);
      if (put < 0) return sum > 0 ? sum : put;
      sum += put;
      if (static_cast<size_t>(put) < parts[i].iov_len) break;
    }
    return sum;
  }
  size_t free_bytes = SIZE_MAX;
  int error = ENOSPC;
};

}  // namespace profd
