// Which runs there are below folders, without reading them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace profd::analysis {

struct FoundRun {
  std::string id;    // the same as long as its paths are
  std::string name;  // of its directory or file; "job J", "session S"
  std::string kind;  // "dump", "profiler output", "database", "MindSpore logs", "cluster analysis"; several: "job", "session", "ranks"
  std::vector<std::string> paths;  // for LoadRun
  std::string place;               // the directory they are in
  int64_t changed_s = 0;           // since the epoch, of its newest directory; 0 = unknown
};

inline constexpr size_t kMostRuns = 10'000;

// Each source is a run; so are the dumps of a job, those of a session in several parts, and what several ranks left in
// one folder. `paths`: folders, or runs themselves. The newest first. Ids are of these paths only: no other can be asked
// for by one.
std::vector<FoundRun> FindRuns(const std::vector<std::string>& paths);

// Of the sizes and times of a run's files: another when it has changed.
uint64_t TimestampOf(const FoundRun& run);

}  // namespace profd::analysis
