#include "analysis/views/step_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/step_finder.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

// More is not to be read, nor to be held in memory: one row for each rank then, without steps.
constexpr size_t kMostRows = 100'000;

bool HasTooManySteps(const Run& run) {
  size_t rows = 0;
  for (const auto& rank : run.ranks) {
    const StepFinder steps(*rank);
    std::set<int64_t> seen;
    for (const Collective& each : rank->collectives) seen.insert(steps.Of(each));
    rows += seen.size();
  }
  return rows > kMostRows;
}

using LinkRows = std::map<std::pair<int64_t, size_t>, LinkRow>;  // by step and rank

void AddLinkRows(const Rank& rank, size_t number, bool in_all, LinkRows* by_step) {
  if (rank.collectives.empty()) (*by_step)[{StepFinder::kNone, number}].rank = &rank;
  const StepFinder steps(rank);
  for (const Collective& each : rank.collectives) {
    const int64_t step = in_all ? StepFinder::kNone : steps.Of(each);
    LinkRow& of = (*by_step)[{step, number}];
    of.step = step;
    of.rank = &rank;
    for (const Transport& part : each.transports) {
      for (size_t i = 0; i < kLinkTransports.size(); ++i) {
        if (part.name == kLinkTransports[i]) of.sums[i].Add(part);
      }
    }
  }
}

std::vector<LinkRow> ListOf(LinkRows by_step) {
  std::vector<LinkRow> all;
  all.reserve(by_step.size());
  for (auto& [key, each] : by_step) all.push_back(std::move(each));
  return all;
}

}  // namespace

std::vector<StepRow> StepRowsOf(const Rank& rank) {
  std::vector<StepRow> rows;
  if (!KnowsComputing(rank)) return rows;
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  for (const auto& [step, of] : shares) {
    // A recording begins and ends within a step: of one where nothing ran, nothing was recorded.
    if (of.computing + of.uncovered > 0) rows.push_back({&rank, step, {of.computing, of.uncovered, of.free}});
  }
  if (!shares.empty()) return rows;
  if (const auto overall = OverallOf(rank)) rows.push_back({&rank, -1, {overall->shares.computing, overall->shares.uncovered, overall->shares.free}});
  return rows;
}

std::vector<StepRow> StepRowsOf(const Run& run) {
  std::vector<StepRow> rows;
  for (const auto& rank : run.ranks) {
    const std::vector<StepRow> more = StepRowsOf(*rank);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  std::ranges::stable_sort(rows, {}, &StepRow::step);
  return rows;
}

void KeepCompleteSteps(const Run& run, std::vector<StepRow>* rows) {
  std::set<std::pair<const Rank*, int64_t>> cut;
  for (const auto& rank : run.ranks) {
    if (!rank->recorded) continue;
    for (const Step& step : rank->steps) {
      if (step.start_ns < rank->recorded->start_ns || step.end_ns > rank->recorded->end_ns) cut.emplace(rank.get(), step.number);
    }
  }
  const auto is_cut = [&cut](const StepRow& row) { return cut.contains({row.rank, row.step}); };
  if (!std::ranges::all_of(*rows, is_cut)) std::erase_if(*rows, is_cut);
}

std::vector<StepRow> MeanRowsOf(const Run& run, const std::vector<StepRow>& rows) {
  const bool in_steps = std::ranges::all_of(rows, [](const StepRow& row) { return row.step >= 0; });
  std::map<const Rank*, std::pair<StepRow, double>> sums;
  for (const StepRow& row : rows) {
    auto& [sum, count] = sums[row.rank];
    ++count;
    for (size_t part = 0; part < row.ms.size(); ++part) sum.ms[part] += row.ms[part];
  }
  std::vector<StepRow> means;
  for (const auto& rank : run.ranks) {
    const auto found = sums.find(rank.get());
    if (found == sums.end()) continue;
    StepRow& mean = means.emplace_back(found->second.first);
    mean.rank = rank.get();
    for (double& ms : mean.ms) ms /= in_steps ? found->second.second : 1;
  }
  return means;
}

std::vector<LinkRow> LinkRowsOf(const Rank& rank) {
  LinkRows by_step;
  AddLinkRows(rank, 0, false, &by_step);
  return ListOf(std::move(by_step));
}

std::vector<LinkRow> LinkRowsOf(const Run& run) {
  LinkRows by_step;
  const bool in_all = HasTooManySteps(run);
  for (size_t number = 0; number < run.ranks.size(); ++number) AddLinkRows(*run.ranks[number], number, in_all, &by_step);
  return ListOf(std::move(by_step));
}

}  // namespace profd::analysis
