#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "analysis/cluster/output.h"

namespace profd::analysis {
namespace {

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

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Tables {
 public:
  Status Open(const std::string& path) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) return Error();
    return Run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  }
  Status Run(const char* sql) { return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK ? Status::Ok() : Error(); }
  Status Error() const { return Status(StatusCode::kUnavailable, fmt::format("{}: {}", "cluster_analysis.db", sqlite3_errmsg(database_.get()))); }
  sqlite3* get() const { return database_.get(); }

 private:
  std::unique_ptr<sqlite3, Close> database_;
};

// Rows of one table.
class Insert {
 public:
  Insert(const Tables& tables, std::string_view table, int columns) : tables_(tables) {
    std::string marks = "?";
    for (int i = 1; i < columns; ++i) marks += ",?";
    sqlite3_stmt* prepared = nullptr;
    sqlite3_prepare_v2(tables.get(), fmt::format("INSERT INTO {} VALUES({})", table, marks).c_str(), -1, &prepared, nullptr);
    statement_.reset(prepared);
  }

  template <class... Values>
  Status Add(const Values&... values) {
    if (statement_ == nullptr) return tables_.Error();
    sqlite3_reset(statement_.get());
    column_ = 0;
    (Bind(values), ...);
    return sqlite3_step(statement_.get()) == SQLITE_DONE ? Status::Ok() : tables_.Error();
  }

  void Start() {
    sqlite3_reset(statement_.get());
    column_ = 0;
  }
  void Bind(std::string_view text) { sqlite3_bind_text(statement_.get(), ++column_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT); }
  void Bind(const std::string& text) { Bind(std::string_view(text)); }
  void Bind(double value) { sqlite3_bind_double(statement_.get(), ++column_, value); }
  void Bind(int value) { sqlite3_bind_int(statement_.get(), ++column_, value); }
  void Bind(int64_t value) { sqlite3_bind_int64(statement_.get(), ++column_, value); }
  template <class T>
  void Bind(const std::optional<T>& value) {
    if (value) return Bind(*value);
    sqlite3_bind_null(statement_.get(), ++column_);
  }
  Status End() { return statement_ != nullptr && sqlite3_step(statement_.get()) == SQLITE_DONE ? Status::Ok() : tables_.Error(); }

 private:
  const Tables& tables_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int column_ = 0;
};

// In two parts: the nanoseconds of today are more than a double holds.
double StartUs(int64_t ns) {
  const int64_t us = ns / 1000;
  return static_cast<double>(us) + static_cast<double>(ns % 1000) / 1000;
}

Status AddSteps(const OutputModel& model, const Tables& tables) {
  constexpr int kColumns = 15;
  Insert insert(tables, "ClusterStepTraceTime", kColumns);
  for (const OutputModel::StepRow& row : model.Steps()) {
    insert.Start();
    insert.Bind(row.step < 0 ? std::string() : std::to_string(row.step));
    insert.Bind(std::string_view(row.stage ? "stage" : "rank"));
    insert.Bind(row.index);
    for (const auto& us : row.us) insert.Bind(us);
    for (size_t k = 0; k < 3; ++k) insert.Bind(row.parallel ? std::optional((*row.parallel)[k]) : std::nullopt);
    if (Status added = insert.End(); !added.ok()) return added;
  }
  return Status::Ok();
}

Status AddBandwidth(const OutputOp& op, int rank, const std::string& group, const Transport& transport, Insert* insert) {
  const auto add = [&](const PacketSize& size) {
    return insert->Add(StepKey(op.step), rank, op.name, group, transport.name, transport.size_mb, transport.time_ms,
                       OutputSpeed(transport.size_mb, transport.time_ms), transport.large_ratio, size.mb, static_cast<int64_t>(size.count), size.time_ms);
  };
  if (transport.sizes.empty()) return add({});
  for (const PacketSize& size : transport.sizes) {
    if (Status added = add(size); !added.ok()) return added;
  }
  return Status::Ok();
}

Status AddOperations(const OutputModel& model, const Tables& tables) {
  constexpr int kColumns = 12;
  Insert times(tables, "ClusterCommunicationTime", kColumns);
  Insert bandwidth(tables, "ClusterCommunicationBandwidth", kColumns);
  return model.EachOp([&](const OutputOp& op) {
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
}

Status AddLinks(const OutputModel& model, const Tables& tables) {
  constexpr int kColumns = 10;
  Insert insert(tables, "ClusterCommunicationMatrix", kColumns);
  for (const OutputLinks& links : model.Links()) {
    for (const auto& [pair, link] : links.pairs) {
      const double speed = link.time_ms > 0 ? link.size_mb / link.time_ms : 0;
      Status added = insert.Add(StepKey(links.step), links.name, model.cluster().groups()[links.group].name, pair.first, pair.second, link.transport, link.op,
                                link.size_mb, link.time_ms, speed);
      if (!added.ok()) return added;
    }
  }
  return Status::Ok();
}

// The vendor's has the rank's directory, not its output or the database in that.
std::string ProfilePathOf(const std::string& source) {
  const std::filesystem::path path(source);
  for (const std::filesystem::path& each : {path, path.parent_path()}) {
    if (each.filename() == "ASCEND_PROFILER_OUTPUT") return each.has_parent_path() ? each.parent_path().string() : ".";
  }
  return source;
}

Status AddFacts(const OutputModel& model, const Tables& tables) {
  const Cluster& cluster = model.cluster();
  Insert groups(tables, "CommunicationGroupMapping", 5);
  for (const ClusterGroup& group : cluster.groups()) {
    Status added = groups.Add(std::string_view(group.p2p ? "p2p" : "collective"), RankSet(RanksOf(cluster, group), ","), group.name, group.facts.id, group.facts.label);
    if (!added.ok()) return added;
  }
  Insert hosts(tables, "HostInfo", 2);
  Insert ranks(tables, "RankDeviceMap", 4);
  std::set<std::string> known;
  for (size_t i = 0; i < cluster.run().ranks.size(); ++i) {
    const Rank& rank = cluster.At(i);
    const std::string& uid = rank.host_uid.empty() ? rank.host : rank.host_uid;
    Status added = ranks.Add(cluster.NumberOf(i), rank.device, uid, ProfilePathOf(rank.path));
    if (added.ok() && !uid.empty() && known.insert(uid).second) added = hosts.Add(uid, rank.host);
    if (!added.ok()) return added;
  }
  Insert base(tables, "ClusterBaseInfo", 2);
  if (cluster.run().ranks.empty() || cluster.At(0).parallel_sizes.empty()) return Status::Ok();
  std::string sizes;
  for (const auto& [name, size] : cluster.At(0).parallel_sizes) sizes += fmt::format("{}\"{}\": {}", sizes.empty() ? "{" : ", ", name, size);
  return base.Add(std::string_view("distributed_args"), sizes + "}");
}

}  // namespace

Status WriteClusterTables(const OutputModel& model, const std::string& path) {
  Tables tables;
  if (Status opened = tables.Open(path); !opened.ok()) return opened;
  if (Status made = tables.Run(kSchema); !made.ok()) return made;
  for (const auto add : {AddSteps, AddOperations, AddLinks, AddFacts}) {
    if (Status added = add(model, tables); !added.ok()) return added;
  }
  return tables.Run("COMMIT");
}

}  // namespace profd::analysis
