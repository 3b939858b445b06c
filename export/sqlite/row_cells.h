// One row's values, and rows of tables whose rowid is one of their columns.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "export/sqlite/row_loader.h"

namespace profd::exporting {

// As the vendor's analyser writes where there is no such thing.
inline constexpr int64_t kNoId32 = 4294967295;

class RowCells {
 public:
  explicit RowCells(int64_t dump_id) : dump_id_(dump_id) {
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i] = {&values_[i], 0, CellKind::kInt};
  }
  RowCells(const RowCells&) = delete;
  RowCells& operator=(const RowCells&) = delete;

  RowCells& Begin() {
    count_ = 0;
    return *this;
  }
  RowCells& Int(int64_t value) { return Put(static_cast<uint64_t>(value), CellKind::kInt); }
  RowCells& Numeric(double value) { return Put(std::bit_cast<uint64_t>(value), CellKind::kNumeric); }
  RowCells& Null() { return Numeric(std::numeric_limits<double>::quiet_NaN()); }
  // The column that is the rowid.
  RowCells& Key() { return Null(); }
  std::span<const CellColumn> End() {
    if (dump_id_ >= 0) Int(dump_id_);
    return {columns_.data(), count_};
  }

 private:
  static constexpr size_t kMost = 20;
  RowCells& Put(uint64_t value, CellKind kind) {
    values_[count_] = value;
    columns_[count_++].kind = kind;
    return *this;
  }

  const int64_t dump_id_;
  std::array<uint64_t, kMost> values_{};
  std::array<CellColumn, kMost> columns_{};
  size_t count_ = 0;
};

// Rows of a table whose rowid is one of its columns.
class KeyedLoader {
 public:
  explicit KeyedLoader(TableState& state) : state_(state), leaf_(state.tree) {}
  // Rowids ascend.
  Status Add(int64_t rowid, std::span<const CellColumn> columns) {
    ++state_.rows;
    return leaf_.Commit(rowid, encoder_.Encode(leaf_.cell(), rowid, columns, 0));
  }
  Status Finish() { return leaf_.Flush(); }

 private:
  TableState& state_;
  LeafBuilder leaf_;
  CellEncoder encoder_;
};

}  // namespace profd::exporting
