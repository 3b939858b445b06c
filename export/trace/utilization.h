// Samples of the AI Core counters as what the timeline shows: utilization per core, and the average
// over the AI Cores (rows of UtilizationTable; the average's type is 2).
//
// utilization = cycles / (clock * time since the core's sample before) * 100. The first sample of a
// core has no such time and is left out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "export/batch.h"

namespace profd::exporting {

class Utilization {
 public:
  explicit Utilization(int64_t aicore_mhz) : mhz_(static_cast<double>(aicore_mhz)) {}

  // The rows that `batch` (of kAicorePmu) makes; valid until the next call. Empty without a clock.
  Batch Convert(const Batch& batch);
  // What is left at the end.
  Batch Finish(int device);

 private:
  void Add(int64_t t_ns, int64_t core, int64_t type, double value);
  void CloseRound();
  Batch Rows(int device);

  double mhz_;
  std::map<std::pair<int64_t, int64_t>, int64_t> last_;  // timestamp, by type and core
  // One sample of every AI Core.
  std::set<int64_t> round_;
  double round_sum_ = 0;
  int64_t round_t_ = 0;

  std::vector<int64_t> timestamps_;
  std::vector<uint64_t> core_;
  std::vector<uint64_t> type_;
  std::vector<uint64_t> value_;
  std::vector<uint64_t> cells_;
};

}  // namespace profd::exporting
