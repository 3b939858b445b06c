// The FRAMEWORK directory of a dump (in-application 7.1, 7.6): where it is, its files and its clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dump/reader.h"
#include "export/clock_map.h"
#include "export/dump_info.h"

namespace profd::exporting::operators {

struct FrameworkFiles {
  // profiler_info.json: the unit of timestamps.
  struct Timestamps {
    bool counter = false;
    double mhz = 0;
    int64_t start_count = 0;
    int64_t start_raw_ns = 0;
  };
  DumpReader reader;
  std::vector<DataFile> files;  // by name
  std::optional<Timestamps> timestamps;  // none: not in profiler_info
  std::vector<DumpInfo::Problem> problems;

  // Whether timestamps are counts of the host's counter, not ns. Where profiler_info does not say, both are tried on
  // `first`, the earliest of an operator: the one that puts it nearer to the begin of the collection is right.
  bool AreCounts(const ClockMap& host, std::optional<int64_t> first) const;
  // To wall clock. The dump's own pair of clocks counts before that of profiler_info, so that launches stay within the
  // operators that made them.
  std::function<int64_t(int64_t)> ClockOf(const ClockMap& host, bool are_counts) const;
};

// In the dump, else beside it, as the framework's profiler leaves it. None: there is none.
std::optional<FrameworkFiles> FindFramework(const std::string& dump_path);

}  // namespace profd::exporting::operators
