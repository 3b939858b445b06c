#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/cluster/output.h"
#include "export/sqlite/sqlite_database.h"

namespace profd::analysis {
namespace {

using exporting::SqlCell;
using exporting::SqliteDatabase;

constexpr const char* kSchema = R"(
CREATE TABLE ClusterStepTraceTime(step TEXT, type TEXT, "index" TEXT, computing NUMERIC, communication_not_overlapped NUMERIC,
  overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC,
  communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC, dp_index INTEGER, pp_index INTEGER, tp_index INTEGER);
CREATE TABLE ClusterCommunicationTime(step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT, start_timestamp REAL,
  elapsed_time REAL, transit_time REAL, wait_time REAL, synchronization_time REAL, idle_time REAL, synchronization_time_ratio REAL,
  wait_time_ratio REAL);
CREATE TABLE ClusterCommunicationBandwidth(step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT, band_type TEXT,
  transit_size REAL, transit_time REAL, bandwidth REAL, large_packet_ratio REAL, package_size REAL, count INTEGER, total_duration REAL);
CREATE TABLE ClusterCommunicationMatrix(step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank INTEGER, dst_rank INTEGER,
  transport_type TEXT, op_name TEXT, transit_size REAL, transit_time REAL, bandwidth REAL);
CREATE TABLE CommunicationGroupMapping(type TEXT, rank_set TEXT, group_name TEXT, group_id TEXT, pg_name TEXT);
CREATE TABLE HostInfo(hostUid TEXT, hostName TEXT);
CREATE TABLE RankDeviceMap(rankId INTEGER, deviceId INTEGER, hostUid TEXT, profilePath TEXT);
CREATE TABLE ClusterBaseInfo(key TEXT, value TEXT);
)";

template <class T>
SqlCell SqlCellOf(const T& value) {
  if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(value);
  else if constexpr (std::is_floating_point_v<T>) return double{value};
  else return std::string(value);
}
template <class T>
SqlCell SqlCellOf(const std::optional<T>& value) {
  return value ? SqlCellOf(*value) : SqlCell();
}

// Rows of one table, handed over in bundles.
class Insert {
 public:
  Insert(SqliteDatabase& database, std::string_view table) : database_(database), table_(table) {}

  template <class... Values>
  Status Add(const Values&... values) {
    return AddRow({SqlCellOf(values)...});
  }
  Status AddRow(std::vector<SqlCell> row) {
    constexpr size_t kBundle = 1000;
    rows_.push_back(std::move(row));
    return rows_.size() < kBundle ? Status::Ok() : Flush();
  }
  Status Flush() {
    Status added = database_.Insert(table_, rows_);
    rows_.clear();
    return added;
  }

 private:
  SqliteDatabase& database_;
  const std::string_view table_;
  std::vector<std::vector<SqlCell>> rows_;
};

// In two parts: the nanoseconds of today are more than a double holds.
double StartUs(int64_t ns) {
  const int64_t us = ns / 1000;
  return static_cast<double>(us) + static_cast<double>(ns % 1000) / 1000;
}

Status AddSteps(const OutputModel& model, SqliteDatabase& tables) {
  Insert insert(tables, "ClusterStepTraceTime");
  for (const OutputModel::StepRow& row : model.Steps()) {
    std::vector<SqlCell> cells = {row.step < 0 ? "" : std::to_string(row.step), row.stage ? "stage" : "rank", row.index};
    for (const auto& us : row.us) cells.push_back(SqlCellOf(us));
    for (size_t k = 0; k < 3; ++k) cells.push_back(row.parallel ? SqlCellOf((*row.parallel)[k]) : SqlCell());
    RETURN_IF_ERROR(insert.AddRow(std::move(cells)));
  }
  return insert.Flush();
}

Status AddBandwidth(const OutputOp& op, int rank, const std::string& group, const Transport& transport, Insert* insert) {
  const auto add = [&](const PacketSize& size) {
    return insert->Add(StepKey(op.step), rank, op.name, group, transport.name, transport.size_mb, transport.time_ms,
                       OutputSpeed(transport.size_mb, transport.time_ms), transport.large_ratio, size.mb, static_cast<int64_t>(size.count), size.time_ms);
  };
  if (transport.sizes.empty()) return add({});
  for (const PacketSize& size : transport.sizes) {
    RETURN_IF_ERROR(add(size));
  }
  return Status::Ok();
}

Status AddOperations(const OutputModel& model, SqliteDatabase& tables) {
  Insert times(tables, "ClusterCommunicationTime");
  Insert bandwidth(tables, "ClusterCommunicationBandwidth");
  Status all = model.EachOp([&](const OutputOp& op) {
    const std::string& group = model.cluster().groups()[op.group].name;
    for (const auto& [rank, each] : op.ranks) {
      const auto part = [&each = each](double Collective::Parts::*member) { return each->parts ? std::optional((*each->parts).*member) : std::nullopt; };
      const auto ratio = [&each = each](double Collective::Parts::*member) {
        return each->parts ? std::optional(OutputRatio((*each->parts).*member, each->parts->transit_ms)) : std::nullopt;
      };
      using Parts = Collective::Parts;
      Status added = times.Add(StepKey(op.step), rank, op.name, group, StartUs(each->start_ns), each->elapse_ms, part(&Parts::transit_ms),
                               part(&Parts::wait_ms), part(&Parts::synchronization_ms), part(&Parts::idle_ms), ratio(&Parts::synchronization_ms),
                               ratio(&Parts::wait_ms));
      for (const Transport& transport : each->transports) {
        if (added.ok()) added = AddBandwidth(op, rank, group, transport, &bandwidth);
      }
      if (!added.ok()) return added;
    }
    return Status::Ok();
  });
  if (all.ok()) all = times.Flush();
  return all.ok() ? bandwidth.Flush() : all;
}

Status AddLinks(const OutputModel& model, SqliteDatabase& tables) {
  Insert insert(tables, "ClusterCommunicationMatrix");
  for (const OutputLinks& links : model.Links()) {
    for (const auto& [pair, link] : links.pairs) {
      const double speed = link.time_ms > 0 ? link.size_mb / link.time_ms : 0;
      RETURN_IF_ERROR(insert.Add(StepKey(links.step), links.name, model.cluster().groups()[links.group].name, pair.first, pair.second, link.transport, link.op,
                                 link.size_mb, link.time_ms, speed));
    }
  }
  return insert.Flush();
}

// The vendor's has the rank's directory, not its output or the database in that.
std::string ProfilePathOf(const std::string& source) {
  const std::filesystem::path path(source);
  for (const std::filesystem::path& each : {path, path.parent_path()}) {
    if (each.filename() == "ASCEND_PROFILER_OUTPUT") return each.has_parent_path() ? each.parent_path().string() : ".";
  }
  return source;
}

Status AddFacts(const OutputModel& model, SqliteDatabase& tables) {
  const Cluster& cluster = model.cluster();
  Insert groups(tables, "CommunicationGroupMapping");
  for (const ClusterGroup& group : cluster.groups()) {
    RETURN_IF_ERROR(groups.Add(group.p2p ? "p2p" : "collective", RankSet(RanksOf(cluster, group), ","), group.name, group.facts.id, group.facts.label));
  }
  RETURN_IF_ERROR(groups.Flush());
  Insert hosts(tables, "HostInfo");
  Insert ranks(tables, "RankDeviceMap");
  std::set<std::string> known;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    const Rank& rank = cluster.At(i);
    const std::string& uid = rank.host_uid.empty() ? rank.host : rank.host_uid;
    RETURN_IF_ERROR(ranks.Add(cluster.NumberOf(i), rank.device, uid, ProfilePathOf(rank.path)));
    if (!uid.empty() && known.insert(uid).second) RETURN_IF_ERROR(hosts.Add(uid, rank.host));
  }
  RETURN_IF_ERROR(ranks.Flush());
  RETURN_IF_ERROR(hosts.Flush());
  if (cluster.run().ranks.empty() || cluster.At(0).parallel_sizes.empty()) return Status::Ok();
  std::string sizes;
  for (const auto& [name, size] : cluster.At(0).parallel_sizes) sizes += fmt::format("{}\"{}\": {}", sizes.empty() ? "{" : ", ", name, size);
  return tables.Insert("ClusterBaseInfo", std::vector<std::vector<SqlCell>>{{"distributed_args", sizes + "}"}});
}

}  // namespace

Status WriteClusterTables(const OutputModel& model, const std::string& path) {
  Result<SqliteDatabase> tables = SqliteDatabase::Open(path);
  if (!tables.ok()) return tables.status();
  RETURN_IF_ERROR(tables->Run("BEGIN"));
  RETURN_IF_ERROR(tables->Run(kSchema));
  for (const auto add : {AddSteps, AddOperations, AddLinks, AddFacts}) RETURN_IF_ERROR(add(model, *tables));
  return tables->Run("COMMIT");
}

}  // namespace profd::analysis
