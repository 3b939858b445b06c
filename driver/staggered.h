// Runs jobs that may never return, one after the other, without letting one of them keep the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace profd {

struct StaggerPace {
  // The next job begins when the one before has returned, or after this.
  std::chrono::milliseconds handover{300};
  // What all handovers together may take; after that the rest begins at once.
  std::chrono::milliseconds handovers{3000};
  // How long a job is waited for in the end.
  std::chrono::milliseconds patience{1000};
};

enum class StaggeredEnd : uint8_t {
  kReturned,
  kLeftBehind,  // it has not returned in time, and may still
  kNoThread,    // the system had no thread for it: it did not begin, and will not
};

// Each job runs on a thread of its own, named `name` (15 characters), which is left behind if the
// job has not returned in time: what a job uses must be shared with it. By job: what became of it.
std::vector<StaggeredEnd> RunStaggered(const std::string& name, std::vector<std::function<void()>> jobs,
                                       const StaggerPace& pace);

}  // namespace profd
