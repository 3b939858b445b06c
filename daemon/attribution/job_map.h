// The scheduler's job map folder: one file per NPU, named by its physical number ("3", or "3.1" for a
// part of it), a job id per line, as prologs write for dcgm-exporter. Reads may wait for a disk: not
// for the control strand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace profd {

struct JobMap {
  std::map<int, std::vector<std::string>> jobs;  // by physical id; ids as label text, none twice
  std::vector<std::string> ignored;              // files that cannot be used: "7: why"
};

inline constexpr size_t kMaxMapFiles = 256;
inline constexpr size_t kMaxMapFileBytes = 16 << 10;
inline constexpr size_t kMaxMapJobs = 64;  // of one file; the rest is left out and reported

// Files last written before `oldest_wall_ns` (the start of the machine) are of jobs that did not survive
// it. Symlinks, devices and the like are not opened.
Result<JobMap> ReadJobMap(const std::string& folder, int64_t oldest_wall_ns);

// CLOCK_REALTIME at which this machine started.
int64_t MachineStartWallNs();

}  // namespace profd
