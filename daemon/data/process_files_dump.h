// The files of the vendor's profiler in a process on their way into a dump (SessionDump::BeginProcessFiles). Implemented by
// WriterSession.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/manifest.h"
#include "dump/process_files.h"

namespace profd {

class ProcessFilesDump {
 public:
  virtual ~ProcessFilesDump() = default;
  // `done` on the writer thread.
  virtual void BeginProcessFiles(ManifestProcessFiles facts, std::function<void(Result<UniqueFd>)> done) = 0;
  // Waits for the writer's answer, at most until then; any thread but the writer's and the control strand's.
  virtual Status ReserveForFiles(uint64_t bytes, int64_t until_steady_ns) = 0;
  // `unused`: of what was reserved.
  virtual void EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) = 0;
};

}  // namespace profd
