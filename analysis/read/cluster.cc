// What the vendor's cluster analysis put together of all ranks (analysis 2.4): its `cluster_analysis_output`.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "analysis/read/csv_file.h"
#include "analysis/read/each_record.h"
#include "analysis/read/readers.h"
#include "analysis/read/sqlite_file.h"
#include "analysis/read/step_columns.h"
#include "base/text.h"
#include "dump/json_depth.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMostClusterJson = uint64_t{2} << 30;
constexpr int kMostRank = 1'000'000;

// The numbers in "(0, 1)".
std::vector<int> NumbersIn(std::string_view text) {
  std::vector<int> numbers;
  while (!text.empty()) {
    const size_t begin = std::min(text.find_first_of("0123456789"), text.size());
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    int number = 0;
    if (end > 0 && ParseNumber(text.substr(0, end), &number) && number <= kMostRank) numbers.push_back(number);
    text.remove_prefix(end);
  }
  return numbers;
}

class ClusterReader {
 public:
  ClusterReader(const fs::path& directory, const ReadContext& context) : directory_(directory), context_(context) {}

  void Read() {
    std::error_code error;
    if (!fs::exists(directory_ / kClusterSteps, error)) return ReadTables();
    ReadSteps();
    ReadJson("cluster_communication.json", ReadClusterCommunication);
    ReadJson("cluster_communication_matrix.json", ReadClusterMatrix);
    ReadGroups();
  }
  void MoveTo(Ranks* ranks) {
    for (auto& [number, rank] : ranks_) ranks->push_back(std::move(rank));
  }

 private:
  Rank* RankOf(std::string_view text) {
    int number = 0;
    if (!ParseNumber(text, &number)) {
      // SQLite's REAL: "3.0"
      const size_t dot = text.find('.');
      if (dot == std::string_view::npos || text.find_first_not_of('0', dot + 1) != std::string_view::npos || !ParseNumber(text.substr(0, dot), &number)) return nullptr;
    }
    if (number < 0 || number > kMostRank) return nullptr;
    std::unique_ptr<Rank>& rank = ranks_[number];
    if (rank == nullptr) {
      rank = std::make_unique<Rank>();
      rank->rank = number;
      rank->source = kClusterSource;
      rank->path = directory_.string();
    }
    return rank.get();
  }

  void ReadSteps() {
    const fs::path path = directory_ / kClusterSteps;
    const bool empty = EachRecord(path, {}, context_, [this](CsvFile& file) {
      // The header is that of one rank, and ranks may be of several releases.
      file.MayLack(file.Column({"Preparing"}));
      return [this, step = file.Column({"Step"}), type = file.Column({"Type"}), index = file.Column({"Index"}), columns = StepColumns(file),
              parallel = std::array{file.Column({"DP Index"}), file.Column({"PP Index"}), file.Column({"TP Index"})}](const CsvFile& record) {
        if (record.Field(type) != "rank") return true;  // a stage of the pipeline
        const auto shares = columns.Get(record);
        Rank* rank = shares ? RankOf(record.Field(index)) : nullptr;
        if (rank == nullptr) return false;
        // A run without steps has one line without a number.
        rank->shares[record.Integer(step).value_or(-1)] = *shares;
        SetIndexes({record.Integer(parallel[0]), record.Integer(parallel[1]), record.Integer(parallel[2])}, rank);
        return true;
      };
    });
    if (empty) context_.AddProblem(path, "has a header alone: the shares of steps are left out");
  }

  static void SetIndexes(const std::array<std::optional<int64_t>, 3>& indexes, Rank* rank) {
    if (indexes[0] && indexes[1] && indexes[2]) rank->parallel_index = {*indexes[0], *indexes[1], *indexes[2]};
  }

  template <class Take>
  void ReadJson(const char* name, const Take& take) {
    const fs::path path = directory_ / name;
    std::error_code error;
    if (!fs::exists(path, error)) return;
    const Result<std::string> text = ReadWhole(path, kMostClusterJson);
    if (!text.ok()) return context_.AddProblem(path, text.status());
    take(*text, path.string(), context_, [this](std::string_view number) { return RankOf(number); });
  }

  void AddGroup(std::string_view name, const GroupFacts& group) {
    for (const int number : group.ranks) {
      if (const auto rank = ranks_.find(number); rank != ranks_.end()) rank->second->groups[std::string(name)] = group;
    }
  }

  void ReadGroups() {
    ReadJson("communication_group.json", [this](std::string_view text, const std::string& where, const ReadContext& context, const auto&) {
      const Json json = NestsTooDeep(text, kDeepestJson) ? Json() : Json::parse(text, nullptr, false);
      if (!json.is_object()) return context.AddProblem(where, "no JSON object");
      const auto list = json.find("comm_group_parallel_info");
      if (list == json.end() || !list->is_array()) return;
      for (const Json& each : *list) {
        if (!each.is_object()) continue;
        const auto text_of = [&each](const char* name) {
          const auto found = each.find(name);
          return found != each.end() && found->is_string() ? found->template get<std::string>() : std::string();
        };
        const auto ranks = each.find("rank_set");
        if (ranks == each.end()) continue;
        AddGroup(text_of("group_name"), {text_of("group_id"), text_of("pg_name"), NumbersIn(ranks->dump(-1, ' ', false, Json::error_handler_t::replace))});
      }
    });
  }

  // As in the text, ranks' indexes of parallelism are not in all tables.
  static std::string SelectSteps(const Database& database) {
    return fmt::format("SELECT step, \"index\", computing, communication, communication_not_overlapped, free, overlapped, stage, bubble, "
                       "communication_not_overlapped_and_exclude_receive, preparing, {} FROM ClusterStepTraceTime WHERE type = 'rank'",
                       database.HasColumn("ClusterStepTraceTime", "dp_index") ? "dp_index, pp_index, tp_index" : "NULL, NULL, NULL");
  }

  void ReadTables() {
    const fs::path path = directory_ / kClusterDatabase;
    Result<Database> database = Database::Open(path, context_.progress);
    if (!database.ok()) return context_.AddProblem(path, database.status());
    const auto run = [&](std::string_view table, const std::string& sql, const auto& take) {
      if (database->Has(table)) context_.AddProblem(path, database->Each(sql, take));
    };
    run("ClusterStepTraceTime", SelectSteps(*database), [this](const Row& row) { TakeStep(row); });
    if (steps_left_out_ > 0) context_.AddProblem(path, RowsWithoutShares("ClusterStepTraceTime", steps_left_out_));
    // Times and bandwidth are of the same operation by these.
    using RowKey = std::tuple<Rank*, std::string, std::string, std::string>;
    std::map<RowKey, size_t> known;
    const auto key_of = [this](const Row& row) { return RowKey(RankOf(row.Text(1)), row.Text(0), row.Text(2), row.Text(3)); };
    run("ClusterCommunicationTime",
        "SELECT step, rank_id, hccl_op_name, group_name, start_timestamp, elapsed_time, transit_time, wait_time, synchronization_time, "
        "idle_time FROM ClusterCommunicationTime",
        [&](const Row& row) {
          Rank* const rank = RankOf(row.Text(1));
          // Of all operations of a group together.
          if (rank == nullptr || row.Text(2) == "Total Op Info") return;
          const OperationKey operation{row.Text(2), row.Text(3), StepNumberOf(row.Text(0)), IsSendOrReceive(row.Text(2))};
          Collective& op = rank->collectives.emplace_back(CollectiveOf(operation, rank));
          op.start_ns = MicrosAsNs(row.Real(4)).value_or(0);
          op.elapse_ms = row.Real(5);
          op.parts = {row.Real(6), row.Real(7), row.Real(8), row.Real(9)};
          known.emplace(key_of(row), rank->collectives.size() - 1);
        });
    run("ClusterCommunicationBandwidth",
        "SELECT step, rank_id, hccl_op_name, group_name, band_type, transit_size, transit_time, large_packet_ratio, package_size, count, "
        "total_duration FROM ClusterCommunicationBandwidth",
        [&](const Row& row) {
          const auto found = known.find(key_of(row));
          if (found == known.end()) return;
          AddPackets({row.Text(4), row.Real(5), row.Real(6), row.Real(7)}, {row.Real(8), CountOf(row.Real(9)), row.Real(10)},
                     &std::get<0>(found->first)->collectives[found->second]);
        });
    run("ClusterCommunicationMatrix",
        "SELECT step, hccl_op_name, group_name, CAST(src_rank AS INTEGER), CAST(dst_rank AS INTEGER), transport_type, op_name, transit_size, "
        "transit_time FROM ClusterCommunicationMatrix",
        [this](const Row& row) { TakeLink(row); });
    run("CommunicationGroupMapping", "SELECT group_name, group_id, pg_name, rank_set, type FROM CommunicationGroupMapping", [this](const Row& row) {
      AddGroup(row.Text(0), {std::string(row.Text(1)), std::string(row.Text(2)), NumbersIn(row.Text(3))});
      if (row.Text(4) == "p2p") p2p_groups_.emplace(row.Text(0));
    });
    run("RankDeviceMap", "SELECT m.rankId, m.deviceId, m.hostUid, h.hostName FROM RankDeviceMap m LEFT JOIN HostInfo h ON h.hostUid = m.hostUid",
        [this](const Row& row) {
          Rank* const rank = RankOf(row.Text(0));
          if (rank == nullptr) return;
          if (row.Int(1) >= 0 && row.Int(1) <= kMostRank) rank->device = static_cast<int>(row.Int(1));
          rank->host_uid = row.Text(2);
          rank->host = row.Text(3);
        });
    for (auto& [number, rank] : ranks_) {
      for (Collective& each : rank->collectives) each.p2p = each.p2p || p2p_groups_.contains(std::string(rank->TextOf(each.group)));
    }
  }

  void TakeStep(const Row& row) {
    const auto shares = SharesOf(row, 2);
    Rank* const rank = shares ? RankOf(row.Text(1)) : nullptr;
    if (rank == nullptr) {
      ++steps_left_out_;
      return;
    }
    int64_t step = -1;
    if (!ParseNumber(row.Text(0), &step)) step = -1;
    rank->shares[step] = *shares;
    const auto index = [&row](int column) { return row.IsNull(column) ? std::nullopt : std::optional(row.Int(column)); };
    SetIndexes({index(11), index(12), index(13)}, rank);
  }

  void TakeLink(const Row& row) {
    Rank* const rank = RankOf(row.Text(3));
    if (rank == nullptr || row.Text(1) == "Total Op Info") return;
    Link link{rank->Text(row.Text(2)), rank->Text(row.Text(3)), rank->Text(row.Text(4)), rank->Text(row.Text(5)), row.Real(7), row.Real(8)};
    link.name = rank->Text(row.Text(1));
    if (!row.Text(6).empty()) link.op = rank->Text(row.Text(6));
    link.step = StepNumberOf(row.Text(0));
    link.part = IsPartOfTotal(row.Text(1));
    rank->links.push_back(link);
  }

  const fs::path& directory_;
  const ReadContext& context_;
  uint64_t steps_left_out_ = 0;
  std::map<int, std::unique_ptr<Rank>> ranks_;
  std::set<std::string> p2p_groups_;
};

}  // namespace

bool IsCluster(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / kClusterSteps, error) || fs::is_regular_file(directory / kClusterDatabase, error);
}

Status ReadCluster(const fs::path& directory, const ReadContext& context, Ranks* ranks) {
  ClusterReader reader(directory, context);
  reader.Read();
  reader.MoveTo(ranks);
  return Status::Ok();
}

}  // namespace profd::analysis
