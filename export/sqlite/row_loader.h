// Rows of one data file into one table's leaves.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "export/batch.h"
#include "export/dump_info.h"
#include "export/sqlite/page_writer.h"
#include "export/sqlite/record.h"
#include "export/sqlite/sql_tables.h"
#include "export/strings.h"

namespace profd::exporting {

// One table of the database while it is filled; shared by all loaders.
struct TableState {
  TableState(PageFile& file, size_t places) : tree(file), rowids(places) {}
  TableTree tree;
  RowidBlocks rowids;
  std::atomic<uint64_t> rows{0};
};

// Cells with rowids into leaves. One thread.
class CellLoader {
 public:
  // `place`: which range of rowids. `state` outlives this.
  CellLoader(TableState& state, size_t place) : state_(state), place_(place), leaf_(state.tree) {}

  Status Add(std::span<const CellColumn> columns, size_t row) {
    if (left_ == 0) RETURN_IF_ERROR(NextBlock());
    size_t bytes = encoder_.Encode(leaf_.cell(), next_, columns, row);
    --left_;
    ++rows_;
    return leaf_.Commit(next_++, bytes);
  }
  Status Finish();

 private:
  Status NextBlock();

  TableState& state_;
  size_t place_;
  LeafBuilder leaf_;
  CellEncoder encoder_;
  int64_t next_ = 0;
  int64_t left_ = 0;
  uint64_t rows_ = 0;
};

// What a loader knows of where its rows come from. Outlives it.
struct LoaderPlace {
  const Place* place = nullptr;
  size_t ordinal = 0;            // of all places of all dumps
  int64_t dump_id = -1;          // value of the column dumpId; -1 = there is none
  Strings* strings = nullptr;
  bool compat_msprof = false;
};

class RowLoader {
 public:
  // All outlive the loader.
  RowLoader(const SqlTable& table, TableState& state, const LoaderPlace& where);
  RowLoader(const RowLoader&) = delete;
  RowLoader& operator=(const RowLoader&) = delete;

  Status Take(const Batch& batch);
  Status Finish() { return cells_.Finish(); }

 private:
  static constexpr size_t kRows = BatchBuilder::kRows;
  struct TextId {
    uint64_t cell = 0;
    uint64_t id = 0;
    bool known = false;
  };
  struct Lane {
    SqlColumn column;
    std::vector<uint64_t> values;  // converted; empty when the rows' cells will do
    std::array<TextId, 64> ids{};  // by the cells' last bits
    uint64_t constant = 0;
  };

  Status TakePart(const Batch& batch, size_t from, size_t rows);
  void Convert(const Batch& batch, size_t from, size_t rows, size_t lane);
  void ConvertReals(const double* in, size_t rows, Lane& lane) const;
  static void ConvertInts(const uint64_t* in, size_t rows, Lane& lane);
  void ConvertTexts(const Batch& batch, std::span<const uint64_t> in, Lane& lane);
  void ConvertUsage(const Batch& batch, size_t from, std::span<const uint64_t> cycles, Lane& lane);
  bool NeedsCopy(const Batch& batch, const SqlColumn& column) const;
  void SkipRows(const Batch& batch, size_t from, size_t rows);
  std::string TextOf(const Batch& batch, const SqlColumn& column, uint64_t cell) const;

  const SqlTable& table_;
  LoaderPlace where_;
  int64_t begin_ns_;  // rows before are left out of the vendor's tables, as its analyser does
  CellLoader cells_;
  std::vector<Lane> lanes_;
  std::vector<CellColumn> columns_;
  std::array<bool, kRows> skip_{};
  std::unordered_map<uint64_t, int64_t> core_timestamps_;
};

}  // namespace profd::exporting
