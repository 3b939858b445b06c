// Memory over time by component, its peak, and who held it then.
#include <algorithm>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr size_t kMostPoints = 2000;
constexpr size_t kMostHolders = 50;

// Of each stretch of samples the one with most reserved, so that peaks stay.
std::vector<const MemorySample*> Thinned(const std::vector<MemorySample>& samples) {
  const size_t stretch = (samples.size() + kMostPoints - 1) / kMostPoints;
  std::vector<const MemorySample*> kept;
  for (size_t begin = 0; begin < samples.size(); begin += stretch) {
    const size_t end = std::min(begin + stretch, samples.size());
    const auto most = std::max_element(samples.begin() + static_cast<std::ptrdiff_t>(begin),
                                       samples.begin() + static_cast<std::ptrdiff_t>(end),
                                       [](const MemorySample& a, const MemorySample& b) {
                                         return a.allocated.value_or(a.reserved.value_or(0)) < b.allocated.value_or(b.reserved.value_or(0));
                                       });
    kept.push_back(&*most);
  }
  return kept;
}

const MemorySample* PeakOf(const std::vector<MemorySample>& samples, std::optional<double> MemorySample::*value) {
  const MemorySample* peak = nullptr;
  for (const MemorySample& each : samples) {
    if ((each.*value) && (peak == nullptr || *(each.*value) > *(peak->*value))) peak = &each;
  }
  return peak;
}

Json ComponentJson(const std::string& name, const std::vector<MemorySample>& samples, int64_t begin) {
  const auto peak = [&](std::optional<double> MemorySample::*value) {
    const MemorySample* found = PeakOf(samples, value);
    return found == nullptr ? Json() : Json(*(found->*value));
  };
  const MemorySample* top = PeakOf(samples, &MemorySample::allocated);
  if (top == nullptr) top = PeakOf(samples, &MemorySample::reserved);
  Json json = {{"component", name},
               {"peak_allocated_mb", peak(&MemorySample::allocated)},
               {"peak_reserved_mb", peak(&MemorySample::reserved)},
               {"peak_active_mb", peak(&MemorySample::active)},
               {"peak_at_ms", top == nullptr ? Json() : Json(Ms(top->t_ns - begin))},
               {"samples", samples.size()}};
  for (const char* list : {"time_ms", "allocated_mb", "reserved_mb", "active_mb"}) json[list] = Json::array();
  for (const MemorySample* each : Thinned(samples)) {
    json["time_ms"].push_back(Ms(each->t_ns - begin));
    json["allocated_mb"].push_back(OrNull(each->allocated));
    json["reserved_mb"].push_back(OrNull(each->reserved));
    json["active_mb"].push_back(OrNull(each->active));
  }
  return json;
}

// The framework's, else the one that has most.
const std::vector<MemorySample>* MainComponent(const Rank& rank) {
  for (const char* name : {"PTA", "MindSpore", "GE"}) {
    const auto found = rank.memory.find(name);
    if (found != rank.memory.end()) return &found->second;
  }
  return rank.memory.empty() ? nullptr : &rank.memory.begin()->second;
}

Json BlocksJson(const Rank& rank) {
  struct Sum {
    uint64_t count = 0;
    double total_kb = 0;
    double max_kb = 0;
    double held_ms = 0;
    uint64_t released = 0;
  };
  std::map<TextId, Sum> sums;
  for (const MemoryBlock& block : rank.blocks) {
    Sum& sum = sums[block.name];
    ++sum.count;
    sum.total_kb += block.size_kb;
    sum.max_kb = std::max(sum.max_kb, block.size_kb);
    if (!block.released_ns) continue;
    ++sum.released;
    sum.held_ms += Ms(*block.released_ns - block.taken_ns);
  }
  std::vector<std::pair<TextId, Sum>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& each) { return each.second.total_kb; });
  Json list = Json::array();
  for (const auto& [name, sum] : sorted) {
    list.push_back({{"name", TextOrNull(rank, name)}, {"count", sum.count}, {"total_kb", sum.total_kb}, {"max_kb", sum.max_kb},
                    {"mean_duration_ms", sum.released == 0 ? Json() : Json(sum.held_ms / static_cast<double>(sum.released))}});
  }
  return list;
}

Json HoldersAt(const Rank& rank, int64_t t_ns) {
  std::vector<const MemoryBlock*> held;
  for (const MemoryBlock& block : rank.blocks) {
    if (block.taken_ns <= t_ns && (!block.released_ns || *block.released_ns > t_ns)) held.push_back(&block);
  }
  std::ranges::stable_sort(held, std::greater<>(), &MemoryBlock::size_kb);
  if (held.size() > kMostHolders) held.resize(kMostHolders);
  Json list = Json::array();
  for (const MemoryBlock* block : held) list.push_back({{"name", TextOrNull(rank, block->name)}, {"size_kb", block->size_kb}});
  return list;
}

}  // namespace

Json MemoryView(const Rank& rank) {
  if (rank.memory.empty() && rank.blocks.empty()) return nullptr;
  const int64_t begin = BeginOf(rank);
  Json json;
  json["components"] = Json::array();
  for (const auto& [name, samples] : rank.memory) json["components"].push_back(ComponentJson(name, samples, begin));
  json["operators"] = BlocksJson(rank);
  json["at_peak"] = Json::array();
  json["fragmentation"] = nullptr;
  const std::vector<MemorySample>* main = MainComponent(rank);
  const MemorySample* peak = main == nullptr ? nullptr : PeakOf(*main, &MemorySample::allocated);
  if (peak == nullptr) return json;
  json["at_peak"] = HoldersAt(rank, peak->t_ns);
  // What is reserved and not in use when most is in use.
  if (peak->reserved && *peak->reserved > 0) json["fragmentation"] = 1 - *peak->allocated / *peak->reserved;
  return json;
}

}  // namespace profd::analysis
