// What profd recorded itself of a training process (kernels, collectives, API calls), from dumps and from databases made of
// them, into a rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/rank.h"
#include "analysis/read/dump_sink.h"
#include "analysis/read/readers.h"
#include "base/status.h"

namespace profd::analysis {

// Which API calls launched something. Others have the number of what their thread launched before: of all calls with a
// number the one that ended first launched it, and so did those around that one.
class Launchers {
 public:
  // `calls` must outlive it.
  explicit Launchers(const std::vector<Recorded>& calls);
  bool Has(const Recorded& call) const;

 private:
  using Key = std::tuple<int, int64_t, int64_t>;  // rank, thread, number
  static Key KeyOf(const Recorded& call) { return {call.rank, call.place, call.correlation}; }
  std::vector<const Recorded*> first_;  // one of each key, in their order
};

// The kind of core of an operator that the runtime's name of a kernel stands for; that name where it is none.
std::string_view CoreNameOf(std::string_view type);

class RecordedOfRank {
 public:
  using TextOf = std::function<std::string_view(int64_t id)>;  // of names, types and communicators
  RecordedOfRank(TextOf text_of, Rank* rank) : text_of_(std::move(text_of)), rank_(*rank) {}

  // Adds when the device computed and communicated.
  void AddDevice(const OfDevice& device, int number, Intervals* computing, Intervals* communication);
  // After the devices. `is_node`: a call of the node level, which has the name of the operator that it launches.
  void AddCall(const Recorded& call, bool is_node, const Launchers& launchers);

 private:
  TextOf text_of_;
  Rank& rank_;
  std::map<int64_t, std::vector<uint32_t>> correlated_;  // executions
};

// Of an export of dumps: kernels and collectives of a device, and of the calls that are `where`, whether each is of the node
// level.
class Database;
Status ReadKernelRows(const Database& database, int device, OfDevice* rows);
Status ReadCallRows(const Database& database, std::string_view where, std::vector<Recorded>* calls, std::vector<bool>* are_node);

// The same of tables: kernel_<time>.csv and its like. All their devices are the rank's.
struct RecordedTables {
  std::vector<std::filesystem::path> kernels;
  std::vector<std::filesystem::path> collectives;
  std::vector<std::filesystem::path> calls;
};
// A file of one of their names: theirs has the time of the export in it.
bool IsRecordedTable(const std::filesystem::path& file);
void ReadRecordedTables(const RecordedTables& tables, const ReadContext& context, Rank* rank);

}  // namespace profd::analysis
