#include "analysis/store/make_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr int kOldestMajor = 18;
constexpr int kOldestMinor = 16;
// In the message of every release when servers of a cluster are not done in time.
constexpr std::string_view kNotInTime = "distributed_ddl_task_timeout";

// What is wrong with a table's columns; empty: nothing.
std::string FaultOf(const StoreTable& table, const std::set<std::string, std::less<>>& there) {
  std::set<std::string_view> wanted(kHeadColumns.begin(), kHeadColumns.end());
  for (const StoreColumn& column : table.columns) wanted.insert(column.name);
  std::vector<std::string_view> lacking;
  std::vector<std::string_view> other;
  std::ranges::set_difference(wanted, there, std::back_inserter(lacking));
  std::ranges::set_difference(there, wanted, std::back_inserter(other));
  if (!lacking.empty()) return fmt::format("has no column {}", fmt::join(lacking, ", "));
  return other.empty() ? "" : fmt::format("has columns that this version does not know: {}", fmt::join(other, ", "));
}

}  // namespace

std::optional<std::pair<int, int>> VersionOf(std::string_view text) {
  std::pair<int, int> version;
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(dot + 1);
  if (!ParseNumber(text.substr(0, dot), &version.first) || !ParseNumber(rest.substr(0, rest.find('.')), &version.second)) return std::nullopt;
  return version;
}

Status TableChanger::Execute(std::string_view statement) {
  if (layout_.cluster.empty()) return server_.Execute(statement);
  Status status = server_.SendToCluster(statement, missed_ ? 0 : kClusterSeconds).status();
  if (status.ok() || status.message().find(kNotInTime) == std::string::npos) return status;
  missed_ = true;
  return {};
}

std::string TableChanger::Note() const {
  if (!missed_) return "";
  return fmt::format("not all servers of cluster {} answered within {} s; those that were away change their tables when they are back", layout_.cluster,
                     kClusterSeconds);
}

Status CheckStoreVersion(StoreServer* server, StoreLayout* layout) {
  std::string text;
  RETURN_IF_ERROR(server->Query("SELECT version()", [&text](const StoreRow& row) { text = row.Text(0); }));
  const auto version = VersionOf(text);
  if (!version) return FailedPrecondition(fmt::format("the server's version is \"{}\": that is not ClickHouse", text));
  if (*version < std::pair(kOldestMajor, kOldestMinor)) {
    return FailedPrecondition(fmt::format("the server's version is {}; {}.{} or later is needed", text, kOldestMajor, kOldestMinor));
  }
  layout->server_major = version->first;
  return {};
}

// Rows of a distributed table would go where they are not looked for.
Status CheckStoreKind(StoreServer* server, const StoreLayout& layout) {
  std::string engine;
  RETURN_IF_ERROR(server->Query(
      fmt::format("SELECT engine FROM system.tables WHERE database = {} AND name = {}", Quoted(layout.database), Quoted(kLoadsTable)),
      [&engine](const StoreRow& row) { engine = row.Text(0); }));
  if (engine.empty() || (engine == "Distributed") == !layout.cluster.empty()) return {};
  return FailedPrecondition(layout.cluster.empty()
                                ? fmt::format("the tables of {} are of a cluster; name it with --cluster", layout.database)
                                : fmt::format("the tables of {} are of one server; leave out --cluster, or take another database", layout.database));
}

Result<bool> HasStoreTables(StoreServer* server, const StoreLayout& layout) {
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> there;
  RETURN_IF_ERROR(server->Query(fmt::format("SELECT table, name FROM system.columns WHERE database = {}", Quoted(layout.database)),
                                [&there](const StoreRow& row) { there[row.Text(0)].insert(row.Text(1)); }));
  bool all = true;
  for (const StoreTable& table : StoreTables()) {
    for (const std::string& name : layout.NamesOf(table.name)) {
      const auto found = there.find(name);
      if (found == there.end()) {
        all = false;
        continue;
      }
      const std::string fault = FaultOf(table, found->second);
      if (fault.empty()) continue;
      return FailedPrecondition(fmt::format("table {}.{} {}: it was made by another version of profd; load into another database", layout.database, name, fault));
    }
  }
  return all;
}

Status MakeStoreTables(const StoreLayout& layout, TableChanger* changer) {
  for (const std::string& statement : CreateStatements(layout)) RETURN_IF_ERROR(changer->Execute(statement));
  return {};
}

}  // namespace profd::analysis
