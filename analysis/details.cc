#include "analysis/details.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

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
  for (const Operator& op : rank.operators) bytes += BytesIn(op.ratio_ns) + BytesIn(op.unit_ns);
  for (const auto& [name, samples] : rank.memory) bytes += BytesIn(samples);
  for (const auto& series : rank.hardware) bytes += BytesIn(series->points);
  return bytes;
}

int NumberOf(const Rank& rank) { return rank.rank.value_or(rank.device.value_or(0)); }

}  // namespace

Details::Figures Details::FiguresOf(const Rank& rank) {
  Figures figures;
  const Json overall = OverallView(rank);
  if (overall.is_object()) {
    figures.free_ms = overall["free_ms"].get<double>();
    figures.computing_ms = overall["computing_ms"].get<double>();
  }
  for (const auto& [transport, speed] : {std::pair("SDMA", &figures.sdma), std::pair("RDMA", &figures.rdma)}) {
    double mb = 0;
    double ms = 0;
    for (const Collective& each : rank.collectives) {
      for (const Transport& part : each.transports) {
        if (part.name != transport) continue;
        mb += part.size_mb;
        ms += part.time_ms;
      }
    }
    if (ms > 0) *speed = mb / ms;
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
  // Of equal ones the first is the smallest and the last the largest, as where checks choose.
  const auto least = [this](auto value) REQUIRES(mutex_) { return std::ranges::min_element(held_, {}, [value](const LoadedRank& each) { return std::pair(value(each.figures), NumberOf(*each.rank)); })->rank; };
  const auto most = [this](auto value) REQUIRES(mutex_) { return std::ranges::max_element(held_, {}, [value](const LoadedRank& each) { return std::pair(value(each.figures), NumberOf(*each.rank)); })->rank; };
  const auto free = [](const Figures& of) { return of.free_ms; };
  const auto computing = [](const Figures& of) { return of.computing_ms; };
  const std::set<const Rank*> kept = {least(free), most(free), least(computing), most(computing), least([](const Figures& of) { return of.sdma; }),
                                      least([](const Figures& of) { return of.rdma; }), least([](const Figures&) { return 0; }),
                                      least([](const Figures& of) { return std::isinf(of.sdma); }), least([](const Figures& of) { return std::isinf(of.rdma); })};
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
