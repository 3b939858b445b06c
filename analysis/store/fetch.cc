#include "analysis/store/fetch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "analysis/cluster/cluster_view.h"
#include "analysis/details.h"
#include "analysis/store/rows.h"
#include "analysis/store/tables.h"
#include "analysis/store/take_rows.h"
#include "analysis/views/views.h"
#include "export/shared_file.h"

namespace profd::analysis {
namespace {

// A query is for several ranks, as many as have so many rows: an answer is in memory as text, 0.1 to 0.5 kB a row, as long as it is
// read.
constexpr size_t kRanksAtOnce = 64;
constexpr uint64_t kRowsAtOnce = 200'000;
constexpr size_t kRunsNamed = 10;

// Where a rank without a number has rows if its device ran something.
constexpr auto kUses = std::to_array<std::string_view>({"totals WHERE executions > 0 AND", "collectives WHERE"});

std::string LoadsInUse(const std::string& database, std::string_view use, const std::string& run) {
  return fmt::format("SELECT DISTINCT load FROM {}.{} run = {} AND rank = -1", database, use, Quoted(run));
}

struct Chosen {
  uint64_t load = 0;
  uint64_t rows = 0;  // of all tables
  std::unique_ptr<Rank> rank;  // until the run has it
  Filling filling;
};

class Fetcher {
 public:
  Fetcher(StoreServer* server, const FetchRequest& request, Run* run) : server_(*server), request_(request), run_(*run) {}

  Status Choose() {
    const std::string select = fmt::format(
        "SELECT who, rank, load, device, host, source, path, row_count FROM {}.{} WHERE run = {} AND state = 1 ORDER BY load DESC LIMIT 1 BY who",
        server_.database(), kLoadsTable, Quoted(request_.run));
    bool any = false;
    RETURN_IF_ERROR(server_.Query(select, [this, &any](const StoreRow& row) {
      any = true;
      const int64_t number = row.Int(1);
      if (!request_.ranks.empty() && !request_.ranks.contains(static_cast<int>(number))) return;
      auto rank = std::make_unique<Rank>();
      if (number >= 0) rank->rank = static_cast<int>(number);
      if (row.Int(3) >= 0) rank->device = static_cast<int>(row.Int(3));
      rank->host = row.Text(4);
      rank->source = row.Text(5);
      rank->path = row.Text(6);
      Chosen& chosen = chosen_.emplace_back();
      chosen.load = row.Uint(2);
      chosen.rows = row.Uint(7);
      chosen.filling.rank = rank.get();
      chosen.rank = std::move(rank);
    }));
    if (!any) return NoRun();
    if (chosen_.empty()) return NotFound(fmt::format("run {} has none of these ranks", request_.run));
    std::ranges::sort(chosen_, {}, &Chosen::load);  // as they were read, where they have no number
    RETURN_IF_ERROR(LeaveOutBeside());
    for (Chosen& each : chosen_) run_.ranks.push_back(std::move(each.rank));
    return CheckRows();
  }

  Status Fill() {
    Details details;
    for (size_t begin = 0; begin < chosen_.size();) {
      const std::span<Chosen> some = std::span(chosen_).subspan(begin, Next(begin));
      begin += some.size();
      for (const FetchQuery& query : FetchQueries()) {
        if (Wanted(query)) RETURN_IF_ERROR(Ask(query, some, ""));
      }
      if (Wanted(ExecutionsQuery())) RETURN_IF_ERROR(AskExecutions(some));
      for (Chosen& each : some) {
        FinishRank(&each.filling);
        details.Add(each.filling.rank);
        std::ranges::move(each.filling.problems, std::back_inserter(run_.problems));
      }
    }
    if (const size_t left_out = details.Finish(); left_out > 0) run_.problems.push_back({request_.run, DetailsLeftOut(left_out)});
    return {};
  }

 private:
  // How many ranks from this one on are asked for at once: one, or as many as have few enough rows.
  size_t Next(size_t begin) const {
    const size_t most = std::min(kRanksAtOnce, chosen_.size() - begin);
    if (!request_.complete) return std::clamp<size_t>(kRowsAtOnce * chosen_.size() / std::max<uint64_t>(rows_, 1), 1, most);
    uint64_t rows = chosen_[begin].rows;
    size_t count = 1;
    while (count < most && (rows += chosen_[begin + count].rows) <= kRowsAtOnce) ++count;
    return count;
  }

  Status NoRun() {
    const auto runs = StoredRuns(&server_, kRunsNamed);
    if (!runs.ok()) return runs.status();
    if (runs->empty()) return NotFound(fmt::format("no run {}: {} has no run yet; profctl export RUN --to loads one", request_.run, server_.database()));
    return NotFound(fmt::format("no run {} in {}; the latest there: {}", request_.run, server_.database(), fmt::join(*runs, ", ")));
  }

  // Of devices that no job uses nothing counts, where ranks have numbers: as of files.
  Status LeaveOutBeside() {
    const auto numbered = [](const Chosen& each) { return each.filling.rank->rank.has_value(); };
    if (std::ranges::none_of(chosen_, numbered) || std::ranges::all_of(chosen_, numbered)) return {};
    std::set<uint64_t> used;
    for (const std::string_view use : kUses) {
      RETURN_IF_ERROR(server_.Query(LoadsInUse(server_.database(), use, request_.run), [&used](const StoreRow& row) { used.insert(row.Uint(0)); }));
    }
    std::erase_if(chosen_, [&](const Chosen& each) { return !numbered(each) && !used.contains(each.load); });
    return {};
  }

  Status CheckRows() {
    if (chosen_.size() < 2) return {};
    std::vector<std::string_view> tables = {"steps"};
    if (request_.complete || request_.beside) tables.insert(tables.end(), {"collectives", "links"});
    std::string ranks;
    if (!request_.ranks.empty()) ranks = fmt::format(" AND rank IN ({})", fmt::join(request_.ranks, ", "));
    std::string counts;
    for (const std::string_view table : tables) {
      RETURN_IF_ERROR(server_.Query(fmt::format("SELECT count() FROM {}.{} WHERE {}{}", server_.database(), table, CommittedRows(server_.database(), request_.run), ranks),
                                    [&](const StoreRow& row) {
                                      rows_ += row.Uint(0);
                                      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", row.Uint(0), table);
                                    }));
    }
    if (rows_ <= kMostFetchedRows) return {};
    const std::string_view instead = request_.complete ? "; profctl analyze --overview is of all of them" : ", leave out the analysis cluster with --only, or take --overview";
    return ResourceExhausted(fmt::format("{} ranks of run {} have {}, more than {} together: name fewer with --ranks{}", chosen_.size(), request_.run, counts,
                                         kMostFetchedRows, instead));
  }

  bool Wanted(const FetchQuery& query) const {
    const bool by_row = request_.complete || request_.beside;
    using enum FetchWhen;
    if (query.when == (request_.complete ? kSums : kComplete) || query.when == (by_row ? kAdded : kRows)) return false;
    if (request_.complete || request_.only.empty() || query.views.empty()) return true;
    const auto is_for = [&query](std::string_view view) { return query.views.find(fmt::format(" {} ", view)) != std::string_view::npos; };
    return (request_.beside && is_for(kClusterView)) || std::ranges::any_of(request_.only, is_for);
  }

  Status Ask(const FetchQuery& query, std::span<Chosen> some, const std::string& more) {
    RETURN_IF_ERROR(exporting::IsInterrupted(request_.go_on));
    std::map<uint64_t, Filling*> by_load;
    std::set<int> numbers;
    for (Chosen& each : some) {
      by_load[each.load] = &each.filling;
      numbers.insert(each.filling.rank->rank.value_or(-1));
    }
    std::vector<uint64_t> loads;
    loads.reserve(by_load.size());
    for (const auto& [load, filling] : by_load) loads.push_back(load);
    const std::string select = fmt::format("SELECT load, {} FROM {}.{} {} WHERE run = {} AND rank IN ({}) AND load IN ({}){} {}", query.columns,
                                           server_.database(), query.table, query.join, Quoted(request_.run), fmt::join(numbers, ", "),
                                           fmt::join(loads, ", "), more, query.tail);
    return server_.Query(select, [&](const StoreRow& row) {
      const auto found = by_load.find(row.Uint(0));
      return found == by_load.end() ? Status() : query.take(row, found->second);
    });
  }

  // Of those operators alone that hardware's counters are shown by.
  Status AskExecutions(std::span<Chosen> some) {
    constexpr size_t kMostNumbers = 10'000;  // of a query: the server takes 256 KiB
    for (Chosen& each : some) {
      if (each.filling.rank->hardware.empty()) continue;
      std::vector<int32_t> operators;
      for (const auto& places : LongestOperators(*each.filling.rank)) operators.insert(operators.end(), places.begin(), places.end());
      for (size_t begin = 0; begin < operators.size(); begin += kMostNumbers) {
        const std::span numbers = std::span(operators).subspan(begin, std::min(kMostNumbers, operators.size() - begin));
        RETURN_IF_ERROR(Ask(ExecutionsQuery(), {&each, 1}, fmt::format(" AND op IN ({})", fmt::join(numbers, ", "))));
      }
    }
    return {};
  }

  StoreServer& server_;
  const FetchRequest& request_;
  Run& run_;
  std::vector<Chosen> chosen_;
  uint64_t rows_ = 0;  // that are kept of all ranks
};

}  // namespace

Result<Run> FetchRun(StoreServer* server, const FetchRequest& request) {
  Run run;
  run.name = request.run;
  run.inputs = {fmt::format("{}/{}", server->database(), request.run)};
  Fetcher fetcher(server, request, &run);
  RETURN_IF_ERROR(fetcher.Choose());
  RETURN_IF_ERROR(fetcher.Fill());
  std::ranges::stable_sort(run.ranks, {}, [](const std::unique_ptr<Rank>& each) {
    return std::pair(!each->rank.has_value(), each->rank.value_or(each->device.value_or(0)));
  });
  return run;
}

Result<std::vector<std::string>> StoredRuns(StoreServer* server, size_t most) {
  std::vector<std::string> runs;
  RETURN_IF_ERROR(server->Query(fmt::format("SELECT run, max(load) AS latest FROM {}.{} WHERE state = 1 GROUP BY run ORDER BY latest DESC LIMIT {}",
                                            server->database(), kLoadsTable, most),
                                [&runs](const StoreRow& row) { runs.push_back(row.Text(0)); }));
  return runs;
}

std::string CommittedRows(const std::string& database, const std::string& run) {
  return fmt::format("run = {0} AND load GLOBAL IN (SELECT max(load) FROM {1}.{2} WHERE run = {0} AND state = 1 GROUP BY who)", Quoted(run), database,
                     kLoadsTable);
}

Result<std::string> RowsOfRanks(StoreServer* server, const std::string& run) {
  std::string rows = CommittedRows(server->database(), run);
  bool mixed = false;
  RETURN_IF_ERROR(server->Query(fmt::format("SELECT countIf(rank >= 0), countIf(rank < 0) FROM {}.{} WHERE run = {} AND state = 1", server->database(), kLoadsTable,
                                            Quoted(run)),
                                [&mixed](const StoreRow& row) { mixed = row.Uint(0) > 0 && row.Uint(1) > 0; }));
  if (!mixed) return rows;
  rows += " AND (rank >= 0";
  for (const std::string_view use : kUses) rows += fmt::format(" OR load GLOBAL IN ({})", LoadsInUse(server->database(), use, run));
  return rows + ")";
}

Status AskProblems(StoreServer* server, const std::string& rows, const std::function<void(uint64_t load, Problem problem)>& take) {
  return server->Query(fmt::format("SELECT load, name, value FROM {}.facts WHERE {} AND name LIKE '{}%' ORDER BY load, name", server->database(), rows, kProblemFact),
                       [&take](const StoreRow& row) {
                         take(row.Uint(0), {row.Text(1).substr(std::min(kProblemFact.size(), row.Text(1).size())), row.Text(2)});
                       });
}

}  // namespace profd::analysis
