// Loads ranks into a database. Rows of a load carry its number; a row in `loads`, the last one that is written, makes
// them count, and those of earlier loads of the same rank count no longer. So a load that is interrupted leaves
// nothing that counts, and a second load replaces the first.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/rank.h"
#include "analysis/run.h"
#include "analysis/store/make_tables.h"
#include "analysis/store/rows.h"
#include "analysis/store/server.h"
#include "analysis/store/tables.h"
#include "analysis/views/views.h"
#include "base/clock.h"
#include "base/status.h"

namespace profd::analysis {

// What one load did.
struct RankLoad {
  std::string who;
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

class StoreLoader {
 public:
  struct Options {
    std::string run;
    std::string cluster;  // empty: one server
    const Clock* clock = nullptr;
    Progress go_on;  // asked between blocks; may be empty
    // What paths begin with that mean nothing later: a folder where they are only while they are loaded. May be empty.
    std::string work_folder = {};
  };
  StoreLoader(StoreServer* server, Options options) : server_(*server), options_(std::move(options)), changer_(server, &layout_) {}
  StoreLoader(const StoreLoader&) = delete;
  StoreLoader& operator=(const StoreLoader&) = delete;

  // Makes what is not there; reads which loads there are. Where all is there nothing is changed.
  Status Prepare();
  // Whether all ranks of this source are loaded as it is now.
  bool IsLoaded(uint64_t source_stamp) const;
  // What was found wrong in these sources when they were loaded.
  Result<std::vector<Problem>> ProblemsOf(const std::set<uint64_t>& source_stamps);
  // All ranks of one source, with what was found wrong in them. What was loaded stays when a later one fails.
  Status Load(const Run& source, uint64_t source_stamp, std::vector<RankLoad>* done);
  // Deletes rows of loads that do not count any more, those of ranks this object has loaded. The server does it by and by.
  Status CleanUp();
  // A path as it is stored.
  std::string Shown(const std::string& path) const;
  // That some servers of the cluster were away, as a sentence; empty: none was missed.
  std::string Note() const { return changer_.Note(); }

 private:
  struct LoadState {
    std::set<uint64_t> loads;  // begun ones, too
    uint64_t latest = 0;       // that was committed
    uint64_t timestamp = 0;
    uint64_t ranks = 0;
  };

  // Of a source, what belongs to one rank.
  struct OfRank {
    Json findings = Json::array();
    std::vector<Problem> problems;
  };

  Status ReadLoads();
  Status ReadLoadsOfCluster(bool made);
  std::string WhoOf(const Rank& rank);
  Status LoadRank(const Rank& rank, const std::string& who, const OfRank& beside, RankLoad* load);
  Status WriteLoad(const Rank& rank, const std::string& who, const RowHead& head, uint64_t rows, bool committed);
  Status CheckCounts(const RowHead& head, const RowBlocks& blocks);
  Status Insert(std::string_view table, const std::string& rows);

  StoreServer& server_;
  Options options_;
  StoreLayout layout_;
  TableChanger changer_;
  std::map<std::string, LoadState> known_;  // by who
  std::set<std::string> loaded_;        // by this object
  uint64_t last_load_ = 0;
  uint64_t timestamp_ = 0;    // of the source that is loaded
  uint32_t of_source_ = 0;
};

}  // namespace profd::analysis
