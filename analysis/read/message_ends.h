// Between which ranks of its group each message went, by the tasks of its operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "analysis/rank.h"
#include "analysis/read/readers.h"

namespace profd::analysis {

class MessageEnds {
 public:
  // A task of the operation `name`; what a rank does by itself is between no two.
  void Add(TextId name, int64_t source, int64_t destination) {
    if (source < 0 || destination < 0 || source == destination || source > INT32_MAX || destination > INT32_MAX) return;
    const std::pair<int32_t, int32_t> both = std::minmax(static_cast<int32_t>(source), static_cast<int32_t>(destination));
    const auto [it, is_new] = ends_.try_emplace(name, both);
    if (!is_new && it->second != both) it->second = kUnknownEnds;
  }
  void AddTo(Rank* rank) const {
    for (Collective& each : rank->collectives) {
      const auto found = ends_.find(each.name);
      if (found != ends_.end() && IsSendOrReceive(rank->TextOf(each.name))) each.between = found->second;
    }
  }

 private:
  std::map<TextId, std::pair<int32_t, int32_t>> ends_;
};

}  // namespace profd::analysis
