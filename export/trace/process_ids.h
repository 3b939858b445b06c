// Process ids of a timeline. The vendor's formula, (info.pid << 10) | (slot << 5) | device with 31
// for the host, so that a single dump's are the vendor's; a dump whose info.pid is taken by another
// one, and devices above 30, get an unused base. All stay below 2^32, which every viewer can
// read.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "export/dump_info.h"
#include "export/format.h"
#include "export/trace/layout.h"

namespace profd::exporting {

// Thread-safe.
class ProcessIds {
 public:
  explicit ProcessIds(const std::vector<const DumpInfo*>& dumps);

  uint32_t Pid(size_t dump, int device, const ProcessSpec& process);
  // "NPU 3" or "CPU"; with several dumps also whose: "NPU 3 node-7 rank 2".
  std::string Label(size_t dump, int device) const;

 private:
  uint32_t BaseOf(size_t dump, int device);

  const std::vector<const DumpInfo*> dumps_;
  Mutex mutex_;
  // By dump and group of 31 devices.
  std::map<std::pair<size_t, int>, uint32_t> bases_ GUARDED_BY(mutex_);
  std::set<uint32_t> taken_ GUARDED_BY(mutex_);
};

}  // namespace profd::exporting
