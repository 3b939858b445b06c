// Shared by the tests of dump/: a directory that is removed, files as strings, a disk that fills.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
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

inline void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A dump of the vendor's collector, of rank 3: two samples of the HBM of device 0.
inline void MakeSmallDump(const std::filesystem::path& dump) {
  std::filesystem::create_directories(dump / "device_0" / "data");
  std::filesystem::create_directories(dump / "host");
  for (const std::filesystem::path& place : {dump / "host", dump / "device_0"}) {
    WriteText(place / "start_info", R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"1000"})");
    WriteText(place / "end_info", R"({"collectionTimeEnd":"1767225610000000","clockMonotonicRaw":"10000001000"})");
    WriteText(place / "info.json", R"({"platform_version":"5","CPU":[{}],"DeviceInfo":[{"hwts_frequency":"50"}],"hostname":"n1","rank_id":3,"pid":"7"})");
    WriteText(place / "host_start.log", "clock_monotonic_raw: 1000\ncntvct: 1\n");
  }
  WriteText(dump / "device_0" / "dev_start.log", "clock_monotonic_raw: 5000\ncntvct: 1\n");
  WriteText(dump / "device_0" / "sample.json", R"({"hbm_profiling_events":"read,write"})");
  std::string records;
  for (const uint64_t t_us : {100'000, 200'000}) {
    const uint64_t head[2] = {t_us, 1000};
    const uint32_t tail[2] = {0, 0};
    records.append(reinterpret_cast<const char*>(head), sizeof head);
    records.append(reinterpret_cast<const char*>(tail), sizeof tail);
  }
  WriteText(dump / "device_0" / "data" / "hbm.data.0.slice_0", records);
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
// part of a write. The compressor of slices writes to it, too.
class FullDiskIo : public DumpIo {
 public:
  ssize_t Write(int fd, const void* data, size_t size) override {
    const size_t free = free_bytes;
    if (free == 0 && size > 0) {
      errno = error;
      return -1;
    }
    ssize_t put = DumpIo::Write(fd, data, std::min(size, free));
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
  std::atomic<size_t> free_bytes = SIZE_MAX;
  int error = ENOSPC;
};

}  // namespace profd
