#include "analysis/store/stored_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace profd::analysis {
namespace {

// Each load has a row in it, so that what is left of a run whose loads are gone is found.
constexpr std::string_view kLastTable = "totals";
constexpr std::string_view kTooLarge = "was not dropped";  // by a limit of the server

Status Explain(const Status& status, const StoreLayout& layout) {
  if (status.code() == StatusCode::kPermissionDenied) {
    return {status.code(), fmt::format("the user needs the right to ALTER the tables of {}: {}", layout.database, status.message())};
  }
  if (status.message().find(kTooLarge) == std::string::npos) return status;
  return {status.code(), fmt::format("{} It has more than max_partition_size_to_drop (50 GB unless it is set), which only the server's configuration can raise; "
                                     "then remove the run again", status.message())};
}

}  // namespace

Result<std::vector<StoredRun>> ListStoredRuns(StoreServer* server) {
  std::map<std::string, StoredRun> runs;
  for (const std::string_view table : {kLoadsTable, kLastTable}) {
    RETURN_IF_ERROR(server->Query(fmt::format("SELECT run, max(load) FROM {}.{} GROUP BY run", server->database(), table), [&runs](const StoreRow& row) {
      StoredRun& run = runs[row.Text(0)];
      run.loaded_ns = std::max(run.loaded_ns, row.Int(1));
    }));
  }
  RETURN_IF_ERROR(server->Query(fmt::format("SELECT run, count(), sum(latest) FROM (SELECT run, who, argMax(row_count, load) AS latest FROM {}.{} WHERE state = 1 "
                                            "GROUP BY run, who) GROUP BY run", server->database(), kLoadsTable),
                                [&runs](const StoreRow& row) {
                                  StoredRun& run = runs[row.Text(0)];
                                  run.ranks = row.Uint(1);
                                  run.rows = row.Uint(2);
                                }));
  std::vector<StoredRun> list;
  for (auto& [name, run] : runs) {
    run.name = name;
    list.push_back(std::move(run));
  }
  std::ranges::stable_sort(list, std::ranges::greater(), &StoredRun::loaded_ns);
  return list;
}

Status RunRemover::Prepare() {
  layout_.database = server_.database();
  RETURN_IF_ERROR(CheckStoreKind(&server_, layout_));
  std::set<std::string> there;
  RETURN_IF_ERROR(server_.Query(fmt::format("SELECT name FROM system.tables WHERE database = {}", Quoted(layout_.database)),
                                [&there](const StoreRow& row) { there.insert(row.Text(0)); }));
  // A database of an earlier version may have fewer. The loads are the first.
  for (const StoreTable& table : StoreTables()) {
    if (there.contains(layout_.NamesOf(table.name).back())) tables_.push_back(table.name);
  }
  std::stable_partition(tables_.begin(), tables_.end(), [](std::string_view name) { return name != kLastTable; });
  return {};
}

Status RunRemover::Remove(const std::string& run) {
  for (const std::string_view table : tables_) {
    const Status dropped = changer_.Execute(fmt::format("ALTER TABLE {}{} DROP PARTITION {}", layout_.LocalName(table), layout_.OnCluster(), Quoted(run)));
    if (!dropped.ok()) return Explain(dropped, layout_);
  }
  return {};
}

}  // namespace profd::analysis
