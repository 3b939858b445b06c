// The database export: msprof_<timestamp>.db, as the vendor's analyser makes it, and more (docs/export.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/format.h"
#include "export/sqlite/operator_rows.h"
#include "export/sqlite/operator_tables.h"
#include "export/sqlite/page_writer.h"
#include "export/sqlite/row_loader.h"
#include "export/sqlite/sql_schema.h"
#include "export/sqlite/sql_tables.h"

namespace profd::exporting {

class SqliteFormat : public Format {
 public:
  SqliteFormat() = default;

  std::string_view name() const override { return "sqlite"; }
  bool Wants(TableId) const override { return true; }
  FormatWants wants() const override { return {.events = true, .step_parts = true, .operators = true, .runtime_apis = true}; }
  Status Begin(const ExportPlan& plan) override;
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override;
  Status TakeOperators(size_t dump, const operators::Model& model) override;
  Status End(bool complete, std::vector<OutputFile>* files) override;

 private:
  void NumberPlaces();
  LoaderPlace LoaderOf(size_t dump, const Place* place) const;
  Status FinishDatabase();
  // Tables with rows are made by the library, views over them and the small tables too.
  Status MakeSchema();
  Status FinishTrees();
  Status MakeIndexes();
  // Of tables of operators, by OperatorTable.
  std::span<const std::unique_ptr<TableState>> OperatorStates() const {
    return std::span(states_).last(kOperatorTables);
  }
  std::string TableName(size_t state) const;
  Status OpenPages();

  ExportPlan plan_;
  std::string path_;
  std::string part_path_;  // while it is written
  std::vector<SqlTable> tables_;
  std::unordered_map<const Place*, size_t> places_;  // rowids ascend in this order
  std::unique_ptr<PageFile> pages_;
  std::vector<std::unique_ptr<TableState>> states_;  // of tables_, the event tables, the operators' tables
  std::deque<std::atomic<int64_t>> last_ns_;         // timestamp of the last row, by dump
  OperatorIds operator_ids_;
  ProcessRanks ranks_;                               // as the marks have them
};

}  // namespace profd::exporting
