// SAMPLE_PMU_SUMMARY: the metrics of a core over the complete session, from the sums of its counters.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "export/batch.h"
#include "export/sqlite/row_loader.h"

namespace profd::exporting {

class PmuSummary {
 public:
  // `where` outlives it.
  explicit PmuSummary(const LoaderPlace& where) : where_(where) {}

  // Rows of TableId::kAicorePmu.
  void Take(const Batch& batch);
  bool empty() const { return cores_.empty(); }
  Status Write(CellLoader& cells) const;

 private:
  static constexpr size_t kEvents = 10;
  static constexpr size_t kMaxCores = 1024;
  struct Core {
    std::array<int64_t, kEvents> sums{};
    int64_t cycles = 0;
  };
  using Key = std::pair<int64_t, int64_t>;  // type and id

  Status WriteCore(const Key& key, const Core& core, CellLoader& cells) const;
  Status WriteValue(const Key& key, std::string_view metric, double value, CellLoader& cells) const;

  const LoaderPlace& where_;
  int device_ = -1;
  std::map<Key, Core> cores_;
};

}  // namespace profd::exporting
