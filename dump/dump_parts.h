// The parts of a dump's directory that SessionDump and its helpers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/fd.h"
#include "dump/control_files.h"

namespace profd {

struct DataFolder {  // host/ or device_N/
  int device = kVendorHostId;
  UniqueFd dir;
  UniqueFd data;
  std::string name;    // "host"
  uint64_t bytes = 0;  // taken for files in it
  size_t singles = 0;  // of them, those that should have one slice only
  bool near_limit = false;
};

struct ListedFile {
  uint32_t crc32c = 0;
  std::optional<uint64_t> records = {};
  int pid = 0;  // not 0: the vendor's profiler in this process wrote it
};
// Of files that are no slices, by their path below the dump.
using ListedFiles = std::map<std::string, ListedFile, std::less<>>;

}  // namespace profd
