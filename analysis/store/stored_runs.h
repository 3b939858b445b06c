// The runs of a database, and their removal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/store/make_tables.h"
#include "analysis/store/server.h"
#include "base/status.h"

namespace profd::analysis {

struct StoredRun {
  std::string name;
  uint64_t ranks = 0;     // that count; 0: a load or a removal was interrupted, or a load is still running
  uint64_t rows = 0;      // of those
  int64_t loaded_ns = 0;  // when its latest load began
};

// Of loads that count and of others, the latest first.
Result<std::vector<StoredRun>> ListStoredRuns(StoreServer* server);

// Removes runs: their partitions of all tables.
class RunRemover {
 public:
  RunRemover(StoreServer* server, std::string cluster) : server_(*server), changer_(server, &layout_) { layout_.cluster = std::move(cluster); }
  RunRemover(const RunRemover&) = delete;
  RunRemover& operator=(const RunRemover&) = delete;

  Status Prepare();
  // First of all it does not count any more. What was broken off can be done again, as long as the run is listed.
  Status Remove(const std::string& run);
  std::string Note() const { return changer_.Note(); }

 private:
  StoreServer& server_;
  StoreLayout layout_;
  TableChanger changer_;
  std::vector<std::string_view> tables_;  // in their order
};

}  // namespace profd::analysis
