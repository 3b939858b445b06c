// What profd recorded itself of a training process (kernels, collectives, API calls), from dumps and from databases made of
// them, into a rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/rank.h"
#include "analysis/read/dump_sink.h"
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

}  // namespace profd::analysis
