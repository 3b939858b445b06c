// Rows as generic readers want them: each value is a sample of a metric with labels. Which columns
// are metrics, what they are called and how they scale is the table's (export/table.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "export/batch.h"
#include "export/strings.h"
#include "export/table.h"

namespace profd::exporting {

struct Label {
  std::string key;
  std::string value;
  bool operator==(const Label&) const = default;
};
// "direction=tx,type=posted"; pieces without '=' are left out.
std::vector<Label> ParseLabels(std::string_view text);

// What one value column of a table is.
struct MetricColumn {
  size_t column = 0;
  std::string metric;
  std::vector<Label> labels;  // of the column and, in a series, of the row's keys
  double scale = 1;
  bool whole = false;  // an integer that is not scaled
};
// The columns of `table` that are metrics; of kSample: the one with the value, without a name.
std::vector<MetricColumn> MetricColumns(const TableSpec& table);

// The metrics of the row whose key cells are `keys`, complete with names and labels.
std::vector<MetricColumn> MetricsOf(const TableSpec& table, std::span<const uint64_t> keys,
                                    const Strings& strings);

// Something of one's own for every combination of key cells of one table. One thread.
template <class T>
class SeriesMap {
 public:
  explicit SeriesMap(const TableSpec& table) : keys_(KeyCount(table)), row_(keys_) {}

  // Of a row; null if there is none yet.
  T* Find(const Batch& batch, size_t row) {
    for (size_t i = 0; i < keys_; ++i) row_[i] = batch.cells[i * batch.stride + row];
    auto it = map_.find(row_);
    return it == map_.end() ? nullptr : &it->second;
  }
  // Of the row Find was called for last.
  std::span<const uint64_t> keys() const { return row_; }
  T* Add(T value) { return &map_.emplace(row_, std::move(value)).first->second; }
  size_t size() const { return map_.size(); }
  void Clear() { map_.clear(); }
  auto begin() { return map_.begin(); }
  auto end() { return map_.end(); }

 private:
  struct Hash {
    size_t operator()(const std::vector<uint64_t>& cells) const {
      uint64_t hash = 0x9E3779B97F4A7C15u;
      for (uint64_t cell : cells) hash = (hash ^ cell) * 0xD6E8FEB86659FD93u + (hash >> 32);
      return static_cast<size_t>(hash);
    }
  };
  size_t keys_;
  std::vector<uint64_t> row_;
  std::unordered_map<std::vector<uint64_t>, T, Hash> map_;
};

}  // namespace profd::exporting
