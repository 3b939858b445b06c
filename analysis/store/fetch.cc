#include "analysis/store/fetch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/store/tables.h"
#include "analysis/store/take_rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr size_t kRanksAtOnce = 64;  // of sums; all rows are asked for by rank
constexpr size_t kRunsNamed = 10;

struct Chosen {
  uint64_t load = 0;
  Filling filling;
};

class Fetcher {
 public:
  Fetcher(StoreServer* server, const FetchOrder& order, Run* run) : server_(*server), order_(order), run_(*run) {}

  Status Choose() {
    const std::string select = fmt::format(
        "SELECT who, rank, load, device, host, source, path FROM {}.{} WHERE run = {} AND state = 1 ORDER BY load DESC LIMIT 1 BY who",
        server_.database(), kLoadsTable, Quoted(order_.run));
    bool any = false;
    RETURN_IF_ERROR(server_.Query(select, [this, &any](const StoreRow& row) {
      any = true;
      const int64_t number = row.Int(1);
      if (!order_.ranks.empty() && !order_.ranks.contains(static_cast<int>(number))) return Status();
      auto rank = std::make_unique<Rank>();
      if (number >= 0) rank->rank = static_cast<int>(number);
      if (row.Int(3) >= 0) rank->device = static_cast<int>(row.Int(3));
      rank->host = row.Text(4);
      rank->source = row.Text(5);
      rank->path = row.Text(6);
      Chosen& chosen = chosen_.emplace_back();
      chosen.load = row.Uint(2);
      chosen.filling.rank = rank.get();
      run_.ranks.push_back(std::move(rank));
      return Status();
    }));
    if (!any) return NoRun();
    if (chosen_.empty()) return NotFound(fmt::format("run {} has none of these ranks", order_.run));
    if (chosen_.size() > kMostFetchedRanks) {
      return ResourceExhausted(fmt::format("run {} has {} ranks, more than {} at once: name some with --ranks, or take --overview", order_.run,
                                           chosen_.size(), kMostFetchedRanks));
    }
    return {};
  }

  Status Fill() {
    const size_t at_once = order_.complete ? 1 : kRanksAtOnce;
    for (size_t begin = 0; begin < chosen_.size(); begin += at_once) {
      const std::span<Chosen> some = std::span(chosen_).subspan(begin, std::min(at_once, chosen_.size() - begin));
      for (const FetchQuery& query : FetchQueries()) {
        if (Wanted(query)) RETURN_IF_ERROR(Ask(query, some, ""));
      }
      if (Wanted(ExecutionsQuery())) RETURN_IF_ERROR(AskExecutions(some));
      for (Chosen& each : some) FinishRank(&each.filling);
    }
    return {};
  }

 private:
  Status NoRun() {
    const auto runs = StoredRuns(&server_, kRunsNamed);
    if (!runs.ok()) return runs.status();
    if (runs->empty()) return NotFound(fmt::format("no run {}: {} has no run yet; profctl export RUN --to loads one", order_.run, server_.database()));
    return NotFound(fmt::format("no run {} in {}; the latest there: {}", order_.run, server_.database(), fmt::join(*runs, ", ")));
  }

  bool Wanted(const FetchQuery& query) const {
    if (query.when == (order_.complete ? FetchWhen::kSums : FetchWhen::kComplete)) return false;
    if (order_.complete || order_.only.empty() || query.views.empty()) return true;
    return std::ranges::any_of(order_.only, [&query](const std::string& view) { return query.views.find(" " + view + " ") != std::string_view::npos; });
  }

  Status Ask(const FetchQuery& query, std::span<Chosen> some, const std::string& more) {
    if (order_.go_on && !order_.go_on()) return Status(StatusCode::kCancelled, "interrupted");
    std::map<uint64_t, Filling*> by_load;
    std::set<int> numbers;
    for (Chosen& each : some) {
      by_load[each.load] = &each.filling;
      numbers.insert(each.filling.rank->rank.value_or(-1));
    }
    std::vector<uint64_t> loads;
    for (const auto& [load, filling] : by_load) loads.push_back(load);
    const std::string select = fmt::format("SELECT load, {} FROM {}.{} {} WHERE run = {} AND rank IN ({}) AND load IN ({}){} {}", query.columns,
                                           server_.database(), query.table, query.join, Quoted(order_.run), fmt::join(numbers, ", "),
                                           fmt::join(loads, ", "), more, query.tail);
    return server_.Query(select, [&](const StoreRow& row) {
      const auto found = by_load.find(row.Uint(0));
      return found == by_load.end() ? Status() : query.take(row, found->second);
    });
  }

  // Of those operators alone that hardware's counters are shown by.
  Status AskExecutions(std::span<Chosen> some) {
    for (Chosen& each : some) {
      const std::vector<int32_t> operators = LongestOperators(*each.filling.rank);
      if (each.filling.rank->hardware.empty() || operators.empty()) continue;
      RETURN_IF_ERROR(Ask(ExecutionsQuery(), {&each, 1}, fmt::format(" AND op IN ({})", fmt::join(operators, ", "))));
    }
    return {};
  }

  StoreServer& server_;
  const FetchOrder& order_;
  Run& run_;
  std::vector<Chosen> chosen_;
};

}  // namespace

Result<Run> FetchRun(StoreServer* server, const FetchOrder& order) {
  Run run;
  run.name = order.run;
  run.inputs = {fmt::format("{}/{}", server->database(), order.run)};
  Fetcher fetcher(server, order, &run);
  RETURN_IF_ERROR(fetcher.Choose());
  RETURN_IF_ERROR(fetcher.Fill());
  std::ranges::stable_sort(run.ranks, {}, [](const std::unique_ptr<Rank>& each) {
    return std::pair(!each->rank.has_value(), each->rank.value_or(each->device.value_or(0)));
  });
  return run;
}

Result<std::vector<std::string>> StoredRuns(StoreServer* server, size_t most) {
  std::vector<std::string> runs;
  const Status asked = server->Query(fmt::format("SELECT run, max(load) AS latest FROM {}.{} WHERE state = 1 GROUP BY run ORDER BY latest DESC LIMIT {}",
                                                 server->database(), kLoadsTable, most),
                                     [&runs](const StoreRow& row) {
                                       runs.push_back(row.Text(0));
                                       return Status();
                                     });
  if (!asked.ok()) return asked;
  return runs;
}

std::string CommittedRows(const std::string& database, const std::string& run) {
  return fmt::format("run = {0} AND load GLOBAL IN (SELECT max(load) FROM {1}.{2} WHERE run = {0} AND state = 1 GROUP BY who)", Quoted(run), database,
                     kLoadsTable);
}

}  // namespace profd::analysis
