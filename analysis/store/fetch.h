// A run from a database (load.h): all of its rows, or, for analyses, sums that the server makes.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "analysis/store/server.h"
#include "base/status.h"

namespace profd::analysis {

struct FetchRequest {
  std::string run;
  std::set<int> ranks;  // empty: all
  // All rows, which checks and pages need. Otherwise what the views `only` (all if empty) are made of, added up by the
  // server where it can be.
  bool complete = false;
  std::set<std::string, std::less<>> only;
  bool beside = false;  // ranks are looked at beside each other: their operations of communication and links one by one
  Progress go_on;  // may be empty
};

// Rows that are kept of all ranks at once, at most: steps, and with `beside` operations of communication and links. A row
// is 0.3 to 0.45 kB of memory (bench/README.md), so that this is 7 GB. Of what else there is, Details::kMostBytes.
inline constexpr uint64_t kMostFetchedRows = 16'000'000;

Result<Run> FetchRun(StoreServer* server, const FetchRequest& request);

// Names of runs that are loaded, the latest first; at most so many.
Result<std::vector<std::string>> StoredRuns(StoreServer* server, size_t most);

// "run = 'x' AND load GLOBAL IN (...)": rows of the loads that count.
std::string CommittedRows(const std::string& database, const std::string& run);
// Of them, those that answers are made of: where ranks have numbers, not of devices without one that ran nothing.
Result<std::string> RowsOfRanks(StoreServer* server, const std::string& run);

// What was wrong when loads were loaded, in their order; `rows`: of which, as a condition.
Status AskProblems(StoreServer* server, const std::string& rows, const std::function<void(uint64_t load, Problem problem)>& take);

}  // namespace profd::analysis
