// A run: one rank or many, found below what the user named.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/rank.h"
#include "base/status.h"

namespace profd::analysis {

struct Run {
  std::string name;
  std::vector<std::string> inputs;           // as given
  std::vector<std::unique_ptr<Rank>> ranks;  // by rank, those without one behind them
  std::vector<Problem> problems;             // what could not be read; the rest was
};

// Called now and then; false cancels.
using Progress = std::function<bool()>;

// What is read of a dump: all of it, or without what only some views look at.
struct ReadDetail {
  bool calls = true;      // of the process and its framework, one by one: half of the memory, for timelines and checks
  bool operators = true;  // their counters and shapes: half of the bytes, for the views that say so (View::details)
};

// `paths`: dumps, PROF directories, `*_ascend_pt` and `*_ascend_ms` directories, databases, MindSpore's raw
// directories, and folders of them. An error: nothing of that kind is there.
Result<Run> LoadRun(const std::vector<std::string>& paths, const Progress& progress, const ReadDetail& detail = {});

// The same source by source, so that not all are in memory: a run is what one directory or database holds, or all dumps
// together. `timestamp`: of its files' sizes and times. What `wants` does not want is not read; an error of `take` ends it.
struct SourceCalls {
  std::function<bool(uint64_t timestamp)> wants;
  std::function<Status(const Run& source, uint64_t timestamp)> take;
};
Status LoadBySource(const std::vector<std::string>& paths, const Progress& progress, const SourceCalls& calls);

}  // namespace profd::analysis
