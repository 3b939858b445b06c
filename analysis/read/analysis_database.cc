// `analysis.db` beside a profiler's database (analysis 2.5): parts of collectives, links, shares of steps.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/read/readers.h"
#include "analysis/read/sqlite_file.h"
#include "analysis/read/step_columns.h"
#include "analysis/times.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

std::string LinksSql(const Database& database) {
  return fmt::format("SELECT group_name, src_rank, dst_rank, transport_type, transit_size, transit_time, hccl_op_name, step, type, {} "
                     "FROM CommAnalyzerMatrix", database.HasColumn("CommAnalyzerMatrix", "op_name") ? "op_name" : "''");
}

// What is no number counts as 0.
double SizeOf(std::string_view table, const Row& row, int column, CheckedNumbers* numbers) { return numbers->Of(table, row, column).value_or(0); }

void TakeLink(const Row& row, CheckedNumbers* numbers, Rank* rank) {
  const auto size = [&](int column) { return SizeOf("CommAnalyzerMatrix", row, column, numbers); };
  Link link{rank->Text(row.Text(0)), rank->Text(row.Text(1)), rank->Text(row.Text(2)), rank->Text(row.Text(3)), size(4), size(5)};
  link.name = rank->Text(row.Text(6));
  link.step = StepNumberOf(row.Text(7));
  link.p2p = row.Text(8) == "p2p";
  if (!row.Text(9).empty()) link.op = rank->Text(row.Text(9));
  link.part = IsPartOfTotal(row.Text(6));
  rank->links.push_back(link);
}

// The operations of the rank's database by name, to add to each what was analysed of it. Names repeat in other groups and
// steps; groups are called otherwise there.
class Operations {
 public:
  explicit Operations(Rank* rank) : rank_(*rank) {
    for (size_t i = 0; i < rank->collectives.size(); ++i) by_name_[rank->collectives[i].name].push_back(i);
  }

  // `only`: the analysis has one of this name.
  Collective& Take(const Collective& row, bool only) {
    // Times of the two differ by tens of us.
    constexpr int64_t kNearNs = 1'000'000;
    std::vector<size_t>& left = by_name_[row.name];
    const auto away = [&](size_t i) { return std::abs(rank_.collectives[i].start_ns - row.start_ns); };
    const auto nearest = std::ranges::min_element(left, {}, away);
    const bool is_it = nearest != left.end() && (away(*nearest) <= kNearNs || (only && left.size() == 1));
    if (!is_it) return rank_.collectives.emplace_back(row);
    Collective& op = rank_.collectives[*nearest];
    left.erase(nearest);
    return op;
  }

 private:
  Rank& rank_;
  std::map<TextId, std::vector<size_t>> by_name_;
};

using Key = std::tuple<std::string, std::string, std::string>;  // name, group, step

template <class Run>
void ReadOperations(const Run& run, CheckedNumbers* numbers, Rank* rank) {
  std::vector<std::pair<Key, Collective>> rows;
  std::map<TextId, uint64_t> names;
  run("CommAnalyzerTime",
      "SELECT hccl_op_name, group_name, step, type, start_timestamp, elapse_time, transit_time, wait_time, synchronization_time, idle_time FROM CommAnalyzerTime",
      [&](const Row& row) {
        // Of all operations of a group together.
        if (row.Text(0) == "Total Op Info") return;
        const OperationKey operation{row.Text(0), row.Text(1), StepNumberOf(row.Text(2)), row.Text(3) == "p2p"};
        Collective& op = rows.emplace_back(Key(row.Text(0), row.Text(1), row.Text(2)), CollectiveOf(operation, rank)).second;
        const auto size = [&](int column) { return SizeOf("CommAnalyzerTime", row, column, numbers); };
        op.start_ns = BoundedTime(MicrosAsNs(size(4)).value_or(0));
        op.elapse_ms = size(5);
        op.parts = {size(6), size(7), size(8), size(9)};
        ++names[op.name];
      });
  std::map<Key, std::vector<Transport>> transports;
  run("CommAnalyzerBandwidth",
      "SELECT hccl_op_name, group_name, step, transport_type, transit_size, transit_time, large_packet_ratio, package_size, count, total_duration "
      "FROM CommAnalyzerBandwidth",
      [&](const Row& row) {
        Collective op;
        std::vector<Transport>& known = transports[Key(row.Text(0), row.Text(1), row.Text(2))];
        op.transports.swap(known);
        const auto size = [&](int column) { return SizeOf("CommAnalyzerBandwidth", row, column, numbers); };
        AddPackets({row.Text(3), size(4), size(5), size(6)}, {size(7), CountOf(size(8)), size(9)}, &op);
        op.transports.swap(known);
      });
  Operations operations(rank);
  for (auto& [key, row] : rows) {
    if (const auto moved = transports.find(key); moved != transports.end()) row.transports = std::move(moved->second);
    const TextId name = row.name;
    Collective& op = operations.Take(row, names[name] == 1);
    // What the rank's database knows better.
    row.type = op.type;
    row.between = op.between;
    if (row.start_ns == 0) row.start_ns = op.start_ns;
    op = std::move(row);
  }
  std::ranges::stable_sort(rank->collectives, {}, &Collective::start_ns);
}

}  // namespace

void ReadAnalysisDatabase(const fs::path& file, const ReadContext& context, Rank* rank) {
  Result<Database> database = Database::Open(file, context.progress);
  if (!database.ok()) return context.AddProblem(file, database.status());
  const auto run = [&](std::string_view table, const std::string& sql, const auto& take) {
    if (database->Has(table)) context.AddProblem(file, database->Each(sql, take));
  };
  uint64_t left_out = 0;
  const bool stages = database->HasColumn("StepTraceTime", "preparing");
  run("StepTraceTime", fmt::format("SELECT step, computing, communication, communication_not_overlapped, free, {} FROM StepTraceTime",
                                   stages ? "overlapped, stage, bubble, communication_not_overlapped_and_exclude_receive, preparing" : "NULL, NULL, NULL, NULL, NULL"),
      [rank, &left_out](const Row& row) {
        // A run without steps has one row without a number.
        int64_t step = -1;
        if (!ParseNumber(row.Text(0), &step)) step = -1;
        const auto shares = SharesOf(row, 1);
        if (shares) rank->shares[step] = *shares;
        left_out += shares ? 0 : 1;
      });
  if (left_out > 0) context.AddProblem(file, RowsWithoutShares("StepTraceTime", left_out));
  CheckedNumbers numbers;
  ReadOperations(run, &numbers, rank);
  run("CommAnalyzerMatrix", LinksSql(*database), [&](const Row& row) { TakeLink(row, &numbers, rank); });
  for (std::string& text : numbers.LeftOut()) context.AddProblem(file, std::move(text));
}

}  // namespace profd::analysis
