// Rows of the tables, back into a rank (write_rank.cc).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/rank.h"
#include "analysis/store/server.h"
#include "base/status.h"

namespace profd::analysis {

// A rank that is being filled.
struct Filling {
  Rank* rank = nullptr;
  std::map<std::tuple<TextId, TextId, TextId>, size_t> collectives;  // by group, name and type, where they are added up
  std::unordered_map<uint32_t, uint32_t> slices;                     // index, by its number in the table
  std::unordered_map<uint64_t, size_t> counters;                     // index in the rank's hardware
  std::vector<Flow> flows;                                           // by numbers of the table
  std::vector<Problem> problems;                                     // of what was loaded
};

// When a query is asked: for all rows, or for sums; of communication also for sums, where ranks are looked at beside each
// other (kRows), else not (kAdded).
enum class FetchWhen : uint8_t { kBoth, kComplete, kSums, kRows, kAdded };

// One query for a table.
struct FetchQuery {
  std::string_view table;
  FetchWhen when = FetchWhen::kBoth;
  std::string_view views;    // that need it, " a b "; empty: all of them
  std::string_view columns;  // behind `load`
  std::string_view tail;     // GROUP BY, ORDER BY
  Status (*take)(const StoreRow& row, Filling* to) = nullptr;
  std::string_view join = {};
};
std::span<const FetchQuery> FetchQueries();

// Executions of some operators, for hardware's counters.
const FetchQuery& ExecutionsQuery();

// After the last row.
void FinishRank(Filling* filling);

}  // namespace profd::analysis
