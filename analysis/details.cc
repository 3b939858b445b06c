#include "analysis/details.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/checks/check.h"
#include "analysis/views/step_rows.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

template <class Values>
size_t BytesIn(const Values& values) {
  return values.capacity() * sizeof(typename Values::value_type);
}

size_t BytesOf(const Rank& rank) {
  constexpr size_t kOfStack = 64;
  size_t bytes = BytesIn(rank.executions) + BytesIn(rank.communication_at) + BytesIn(rank.slices) + BytesIn(rank.flows) + BytesIn(rank.transfers) +
                 BytesIn(rank.blocks) + rank.stacks.size() * kOfStack + BytesIn(rank.operators);
  for (const Intervals& intervals : rank.overlap) bytes += BytesIn(intervals);
  for (const Operator& op : rank.operators) bytes += BytesIn(op.ratio_ns) + BytesIn(op.ratio_sums) + BytesIn(op.unit_ns);
  for (const auto& [name, samples] : rank.memory) bytes += BytesIn(samples);
  for (const auto& series : rank.hardware) bytes += BytesIn(series->points);
  return bytes;
}

int NumberOf(const Rank& rank) { return rank.rank.value_or(rank.device.value_or(0)); }

}  // namespace

Details::Figures Details::FiguresOf(const Rank& rank) {
  Figures figures;
  const auto take = [](Figures::OfStep value, Figures::OfStep* least) { *least = std::min(*least, value); };
  for (const StepRow& row : StepRowsOf(rank)) {
    take({row.At(StepPart::kFree), row.step}, &figures.least_free);
    take({-row.At(StepPart::kFree), row.step}, &figures.most_free);
    take({row.At(StepPart::kComputing), row.step}, &figures.least_computing);
    take({-row.At(StepPart::kComputing), row.step}, &figures.most_computing);
  }
  for (const LinkRow& row : LinkRowsOf(rank)) {
    for (size_t i = 0; i < row.sums.size(); ++i) {
      if (row.sums[i].time_ms > 0) take({SpeedOf(row.sums[i]), row.step}, &figures.speeds[i]);
    }
  }
  for (size_t i = 0; i < kLinkTransports.size(); ++i) {
    const Transport sum = SumOf(rank, kLinkTransports[i]);
    if (sum.time_ms > 0) figures.speeds_of_all[i] = {SpeedOf(sum), 0};
  }
  return figures;
}

std::string DetailsLeftOut(size_t ranks) {
  return fmt::format("operators, timeline, memory and hardware of {} ranks were left out, for all of them need more than {} MiB; "
                     "read one of these ranks by itself to see them", ranks, Details::kMostBytes >> 20);
}

void Details::Add(Rank* rank) {
  const LoadedRank held{rank, FiguresOf(*rank), BytesOf(*rank)};
  const MutexLock lock(mutex_);
  held_.push_back(held);
  bytes_ += held.bytes;
  if (bytes_ > most_bytes_) LeaveOut();
}

size_t Details::Finish() {
  const MutexLock lock(mutex_);
  if (left_out_ > 0) LeaveOut();
  return left_out_;
}

void Details::LeaveOut() {
  std::set<const Rank*> kept;
  const auto keep = [this, &kept](auto value) REQUIRES(mutex_) {
    kept.insert(std::ranges::min_element(held_, {}, [value](const LoadedRank& each) { return std::pair(value(each.figures), NumberOf(*each.rank)); })->rank);
  };
  for (const auto figure : {&Figures::least_free, &Figures::most_free, &Figures::least_computing, &Figures::most_computing}) keep([figure](const Figures& of) { return of.*figure; });
  for (size_t i = 0; i < kLinkTransports.size(); ++i) {
    keep([i](const Figures& of) { return of.speeds[i]; });
    keep([i](const Figures& of) { return of.speeds_of_all[i]; });
    keep([i](const Figures& of) { return of.speeds_of_all[i] == Figures::kNone; });
  }
  keep([](const Figures&) { return 0; });
  std::vector<LoadedRank> still;
  for (const LoadedRank& each : held_) {
    if (kept.contains(each.rank)) {
      still.push_back(each);
      continue;
    }
    bytes_ -= each.bytes;
    each.rank->DropDetails(StepSharesOf(*each.rank), OverallOf(*each.rank));
    ++left_out_;
  }
  held_ = std::move(still);
}

}  // namespace profd::analysis
