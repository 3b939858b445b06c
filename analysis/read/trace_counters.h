// The counters of a timeline, which its slices share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/rank.h"

namespace profd::analysis {

class TraceCounters {
 public:
  explicit TraceCounters(Rank* rank) : rank_(*rank) {}

  // Of a process, which may have one behind its counters.
  void TakeLabel(int64_t process, std::string_view label) { labels_.insert_or_assign(process, label); }
  // Of a process, by its label (analysis 5.2): "NPU 3"; of "NPU" it is in the number of the process. None: it is the host's.
  std::optional<int> DeviceOf(int64_t process) const;
  // An event's numbers: {"Read(MB/s)": 12.5}, {"value": 12.5, "acc_id": 3}. False: there are too many counters.
  bool Take(int64_t process, std::string_view name, std::span<const std::pair<std::string, double>> numbers, int64_t t_ns);
  void Finish();

 private:
  Rank& rank_;
  std::map<std::pair<int64_t, std::string>, size_t> series_;  // of the rank, by process and name
  std::unordered_map<int64_t, std::string> labels_;
};

}  // namespace profd::analysis
