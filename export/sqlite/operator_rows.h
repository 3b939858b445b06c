// Operator-level records of one dump into the vendor's tables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "export/operators/model.h"
#include "export/sqlite/operator_tables.h"
#include "export/sqlite/row_cells.h"
#include "export/sqlite/row_loader.h"

namespace profd::exporting {

// First numbers of a dump: those of several dumps in one database are apart.
struct OperatorIds {
  int64_t task = 0;        // globalTaskId
  int64_t connection = 0;  // connectionId
  int64_t operation = 0;   // opId
  int64_t overlap = 0;     // OVERLAP_ANALYSIS
  int64_t framework = 0;   // CONNECTION_IDS
  int64_t stack = 0;       // PYTORCH_CALLCHAINS
};

// What is written of one dump, and where. All outlive the writers.
struct OperatorTarget {
  const operators::Model& model;
  const LoaderPlace& where;
  int64_t pid = 0;
  std::span<const std::unique_ptr<TableState>> states;  // by OperatorTable
  OperatorIds& ids;                                     // move on
};

// What all writers of such rows have.
class OperatorRowWriter {
 protected:
  explicit OperatorRowWriter(const OperatorTarget& to)
      : to_(to), model_(to.model), pid_(to.pid), ids_(to.ids), row_(to.where.dump_id) {}

  CellLoader CellsOf(OperatorTable table) { return {StateOf(table), to_.where.ordinal}; }
  KeyedLoader KeyedOf(OperatorTable table) { return KeyedLoader(StateOf(table)); }
  int64_t Id(std::string_view text) { return to_.where.strings->Intern(text); }
  int64_t ThreadId(uint64_t thread) const { return pid_ << 32 | static_cast<int64_t>(thread & 0xFFFFFFFF); }

  const OperatorTarget& to_;
  const operators::Model& model_;
  const int64_t pid_;
  OperatorIds& ids_;
  RowCells row_;

 private:
  TableState& StateOf(OperatorTable table) { return *to_.states[static_cast<size_t>(table)]; }
};

Status WriteOperatorRows(const OperatorTarget& to);

}  // namespace profd::exporting
