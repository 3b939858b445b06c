// Training steps: how long each was and what it was made of (analysis 4.1).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

struct Parts {
  double total = 0;
  std::optional<double> interval;
  std::optional<double> fp_and_bp;
  std::optional<double> tail;
};

Parts PartsOf(const Step& step) {
  Parts parts;
  parts.total = Ms(step.end_ns - step.start_ns);
  if (step.fp_ns) parts.interval = Ms(*step.fp_ns - step.start_ns);
  if (step.fp_ns && step.bp_ns) parts.fp_and_bp = Ms(*step.bp_ns - *step.fp_ns);
  if (step.bp_ns) parts.tail = Ms(step.end_ns - *step.bp_ns);
  return parts;
}

void AddShares(const Shares* shares, Json* json) {
  const auto add = [&](const char* name, double value) { (*json)[name] = shares == nullptr ? Json() : Json(value); };
  const Shares none;
  const Shares& of = shares == nullptr ? none : *shares;
  add("computing_ms", of.computing);
  add("communication_ms", of.communication);
  add("uncovered_communication_ms", of.uncovered);
  add("overlapped_ms", of.overlapped());
  add("free_ms", of.free);
}

// Adds up what is known; no mean where nothing is.
struct Mean {
  double sum = 0;
  uint64_t count = 0;
  void Add(const std::optional<double>& value) {
    if (!value) return;
    sum += *value;
    ++count;
  }
  // `count_ns`: as Rank.
  Json Get(int64_t count_ns = 0) const {
    if (count == 0) return {};
    const double mean = sum / static_cast<double>(count);
    if (count_ns == 0) return mean;
    // In doubles: times of foreign runs may be too large for a product.
    const auto of_count = static_cast<double>(count_ns);
    return std::round(mean * 1e6 / of_count) * of_count / 1e6;
  }
};

// Averages are of complete steps.
std::span<const Step> WholeSteps(const Rank& rank) {
  const std::span<const Step> all = rank.steps;
  return rank.first_step_is_short && all.size() > 1 ? all.subspan(1) : all;
}

double Quantile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(std::llround(part * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

double MsWithin(const Intervals& intervals, const Interval& span) {
  int64_t ns = 0;
  auto each = std::ranges::lower_bound(intervals, span.start_ns, {}, &Interval::end_ns);
  for (; each != intervals.end() && each->start_ns < span.end_ns; ++each) {
    ns += std::min(each->end_ns, span.end_ns) - std::max(each->start_ns, span.start_ns);
  }
  return Ms(ns);
}

std::map<int64_t, Shares> StepSharesOf(const Rank& rank) {
  const Overlap& of = rank.overlap;
  std::map<int64_t, Shares> shares = rank.shares;
  // What another tool's table has stays as it is.
  if (rank.source != "dump" && !shares.empty()) return shares;
  if (of[OverlapKind::kComputing].empty() && of[OverlapKind::kCommunication].empty()) return shares;
  for (const Step& step : rank.steps) {
    Shares one = shares[step.number];
    const Interval span{step.start_ns, step.end_ns};
    one.computing = MsWithin(of[OverlapKind::kComputing], span);
    one.communication = MsWithin(of[OverlapKind::kCommunication], span);
    one.uncovered = MsWithin(of[OverlapKind::kNotOverlapped], span);
    one.free = std::max(0.0, Ms(step.end_ns - step.start_ns) - one.computing - one.uncovered);
    if (one.computing > 0 || one.communication > 0) {
      shares[step.number] = one;
    } else {
      shares.erase(step.number);
    }
  }
  return shares;
}

bool KnowsComputing(const Rank& rank) {
  const bool of_table = rank.source != "dump" && !rank.shares.empty() && !rank.shares_of_intervals;
  const bool of_sums = rank.sums && (rank.sums->executions > 0 || rank.sums->overall.computing > 0);
  const bool any = !rank.executions.empty() || of_table || of_sums || rank.details_left_out ||
                   !rank.overlap[OverlapKind::kComputing].empty();
  return any || rank.collectives.empty();
}

bool KnowsFreeTime(const Run& run) {
  return run.ranks.size() < 2 || std::ranges::any_of(run.ranks, [](const auto& rank) {
           const auto overall = OverallOf(*rank);
           return rank->source != "dump" || (overall && overall->shares.communication > 0);
         });
}

double StepsOf(const Rank& rank) {
  const auto with_number = std::ranges::count_if(rank.shares, [](const auto& each) { return each.first >= 0; });
  double steps = std::max(static_cast<double>(rank.steps.size()), static_cast<double>(with_number));
  if (rank.recorded) {
    steps = 0;
    for (const Step& step : rank.steps) {
      const int64_t within = std::min(step.end_ns, rank.recorded->end_ns) - std::max(step.start_ns, rank.recorded->start_ns);
      if (within > 0) steps += static_cast<double>(within) / static_cast<double>(step.end_ns - step.start_ns);
    }
  }
  return std::max(steps, 1.0);
}

bool HasSteps(const Rank& rank) {
  return !rank.steps.empty() || std::ranges::any_of(rank.shares, [](const auto& each) { return each.first >= 0; });
}

bool HasSteps(const Run& run) {
  return std::ranges::any_of(run.ranks, [](const auto& rank) { return HasSteps(*rank); });
}

std::optional<MeanStep> MeanWholeStepOf(const Rank& rank) {
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  // Its length, and what it was made of where that is known.
  std::vector<std::pair<double, const Shares*>> steps;
  for (const bool complete : {true, false}) {
    if (!steps.empty()) break;
    for (const Step& step : WholeSteps(rank)) {
      if (complete && rank.recorded && (step.start_ns < rank.recorded->start_ns || step.end_ns > rank.recorded->end_ns)) continue;
      const auto found = shares.find(step.number);
      steps.emplace_back(Ms(step.end_ns - step.start_ns), found == shares.end() ? nullptr : &found->second);
    }
  }
  // Only sums that another tool had made.
  for (const auto& [number, of] : shares) {
    if (rank.steps.empty() && number >= 0) steps.emplace_back(of.whole(), &of);
  }
  if (steps.empty()) return std::nullopt;
  MeanStep mean;
  Shares sum;
  double with_shares = 0;
  for (const auto& [ms, of] : steps) {
    mean.total_ms += ms / static_cast<double>(steps.size());
    if (of == nullptr) continue;
    ++with_shares;
    sum.Add(*of);
  }
  if (with_shares > 0) mean.shares = sum.MeanOf(with_shares);
  return mean;
}

Json StepsView(const Rank& rank) {
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  const int64_t begin = BeginOf(rank);
  Json list = Json::array();
  for (const Step& step : rank.steps) {
    const Parts parts = PartsOf(step);
    Json json = {{"step", step.number},
                 {"start_ms", Ms(step.start_ns - begin)},
                 {"total_ms", parts.total},
                 {"iteration_interval_ms", OrNull(parts.interval)},
                 {"fp_and_bp_ms", OrNull(parts.fp_and_bp)},
                 {"tail_ms", OrNull(parts.tail)}};
    const auto found = shares.find(step.number);
    AddShares(found == shares.end() ? nullptr : &found->second, &json);
    json["reduces"] = Json::array();
    for (const Reduce& reduce : step.reduces) {
      json["reduces"].push_back({{"name", rank.TextOf(reduce.name)},
                                 {"start_ms", Ms(reduce.start_ns - step.start_ns)},
                                 {"duration_ms", Ms(reduce.end_ns - reduce.start_ns)}});
    }
    list.push_back(std::move(json));
  }
  if (!rank.steps.empty()) return list;
  // Only sums that another tool had made: there are no points in time.
  for (const auto& [number, of] : shares) {
    if (number < 0) continue;
    Json json = {{"step", number}, {"start_ms", nullptr}, {"total_ms", of.whole()},
                 {"iteration_interval_ms", nullptr}, {"fp_and_bp_ms", nullptr}, {"tail_ms", nullptr}};
    AddShares(&of, &json);
    json["reduces"] = Json::array();
    list.push_back(std::move(json));
  }
  return list;
}

Json StepAverageView(const Rank& rank) {
  const std::span<const Step> steps = WholeSteps(rank);
  if (steps.empty()) return nullptr;
  Mean total;
  Mean interval;
  Mean fp_and_bp;
  Mean tail;
  struct ReduceMean {
    Mean start;
    Mean duration;
  };
  std::map<TextId, ReduceMean> reduces;
  const std::map<int64_t, Shares> shares = StepSharesOf(rank);
  Shares all;
  double with_shares = 0;
  for (const Step& step : steps) {
    const Parts parts = PartsOf(step);
    total.Add(parts.total);
    interval.Add(parts.interval);
    fp_and_bp.Add(parts.fp_and_bp);
    tail.Add(parts.tail);
    for (const Reduce& reduce : step.reduces) {
      reduces[reduce.name].start.Add(Ms(reduce.start_ns - step.start_ns));
      reduces[reduce.name].duration.Add(Ms(reduce.end_ns - reduce.start_ns));
    }
    const auto found = shares.find(step.number);
    if (found == shares.end()) continue;
    ++with_shares;
    all.Add(found->second);
  }
  Json json = {{"step", "average"},
               {"steps", steps.size()},
               {"total_ms", total.Get(rank.count_ns)},
               {"iteration_interval_ms", interval.Get(rank.count_ns)},
               {"fp_and_bp_ms", fp_and_bp.Get(rank.count_ns)},
               {"tail_ms", tail.Get(rank.count_ns)}};
  const Shares mean_shares = all.MeanOf(std::max(with_shares, 1.0));
  AddShares(with_shares > 0 ? &mean_shares : nullptr, &json);
  std::vector<std::pair<double, Json>> sorted;
  for (const auto& [name, mean] : reduces) {
    const Json start = mean.start.Get(rank.count_ns);
    sorted.emplace_back(start.get<double>(),
                        Json{{"name", rank.TextOf(name)}, {"start_ms", start}, {"duration_ms", mean.duration.Get(rank.count_ns)}});
  }
  std::ranges::stable_sort(sorted, {}, [](const auto& each) { return each.first; });
  json["reduces"] = Json::array();
  for (auto& [start, reduce] : sorted) json["reduces"].push_back(std::move(reduce));
  return json;
}

double CommunicationInIntervalMs(const Rank& rank) {
  const auto& communication = rank.overlap[OverlapKind::kCommunication];
  Mean mean;
  for (const Step& step : WholeSteps(rank)) {
    if (step.fp_ns) mean.Add(MsWithin(communication, {step.start_ns, *step.fp_ns}));
  }
  return mean.count == 0 ? 0 : mean.sum / static_cast<double>(mean.count);
}

Json StepPointsView(const Rank& rank) {
  if (rank.fp_point == kNoText && rank.bp_point == kNoText) return nullptr;
  return {{"fp_start", TextOrNull(rank, rank.fp_point)}, {"bp_end", TextOrNull(rank, rank.bp_point)}};
}

// Outliers are beyond three standard deviations from the mean.
Json StepDistributionView(const Rank& rank) {
  const std::span<const Step> steps = WholeSteps(rank);
  if (steps.empty()) return nullptr;
  std::vector<double> totals;
  for (const Step& step : steps) totals.push_back(Ms(step.end_ns - step.start_ns));
  std::ranges::sort(totals);
  const auto count = static_cast<double>(totals.size());
  const double mean = std::accumulate(totals.begin(), totals.end(), 0.0) / count;
  const double squares = std::accumulate(totals.begin(), totals.end(), 0.0, [mean](double sum, double each) {
    return sum + (each - mean) * (each - mean);
  });
  const double deviation = std::sqrt(squares / count);
  Json json = {{"steps", totals.size()}, {"min_ms", totals.front()}, {"mean_ms", mean},
               {"p50_ms", Quantile(totals, 0.5)}, {"p99_ms", Quantile(totals, 0.99)}, {"max_ms", totals.back()},
               {"stddev_ms", deviation}};
  json["outliers"] = Json::array();
  for (const Step& step : steps) {
    if (std::abs(Ms(step.end_ns - step.start_ns) - mean) > 3 * deviation) json["outliers"].push_back(step.number);
  }
  return json;
}

}  // namespace profd::analysis
