#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

constexpr size_t kLongest = 10;  // operators in a sequence
constexpr size_t kShortest = 3;
constexpr size_t kMostExecutions = 50'000;  // beyond them steps repeat what is there; bounds memory

// Of all occurrences of one sequence.
struct Sequence {
  size_t first = 0;  // execution, of the first occurrence
  size_t last = 0;
  uint64_t count = 0;
  int64_t wall_ns = 0;
  int64_t busy_ns = 0;
  double moving_ns = 0;
  double core_ns = 0;
  bool of_host = false;
  bool of_transfer = false;
};

using Key = std::u32string;  // numbers of operators: compares as a sequence

// What one execution adds to a sequence.
class Costs {
 public:
  explicit Costs(const Rank& rank) : of_(rank.operators.size()) {
    std::vector<uint64_t> calls(rank.operators.size());
    for (const Execution& each : rank.executions) ++calls[static_cast<size_t>(each.op)];
    const auto unit = [&rank](const Operator& op, std::string_view name) {
      const auto found = static_cast<size_t>(std::ranges::find(rank.unit_names, name) - rank.unit_names.begin());
      return found < op.unit_ns.size() ? op.unit_ns[found] : 0;
    };
    for (size_t i = 0; i < of_.size(); ++i) {
      const Operator& op = rank.operators[i];
      if (calls[i] == 0) continue;
      const double moving = std::max(unit(op, "aic_mte2"), unit(op, "aiv_mte2")) + std::max(unit(op, "aic_fixpipe"), unit(op, "aiv_mte3"));
      of_[i] = {moving / static_cast<double>(calls[i]), unit(op, "aicore") / static_cast<double>(calls[i])};
    }
  }
  double Moving(int32_t op) const { return of_[static_cast<size_t>(op)].first; }
  double Core(int32_t op) const { return of_[static_cast<size_t>(op)].second; }

 private:
  std::vector<std::pair<double, double>> of_;
};

// Whether a sequence cannot go on behind the execution: communication follows.
std::vector<bool> Ends(const Rank& rank) {
  std::vector<bool> ends(rank.executions.size() + 1);
  for (const uint32_t at : rank.communication_at) {
    if (at < ends.size() && at > 0) ends[at - 1] = true;
  }
  std::vector<int64_t> starts;
  if (rank.communication_at.empty()) {
    for (const Collective& each : rank.collectives) starts.push_back(each.start_ns);
  }
  std::ranges::sort(starts);
  for (size_t i = 0; i + 1 < rank.executions.size(); ++i) {
    const auto next = std::ranges::upper_bound(starts, rank.executions[i].start_ns);
    ends[i] = ends[i] || (next != starts.end() && *next <= rank.executions[i + 1].start_ns);
  }
  return ends;
}

// `take(first, last, key)` for every sequence of executions from `first` to `last`; each directly before those that are one
// execution longer.
template <class Take>
void EachSequence(const Rank& rank, const Take& take) {
  const std::vector<bool> ends = Ends(rank);
  const auto of_ai_cpu = [&rank](const Execution& each) { return rank.TextOf(rank.operators[static_cast<size_t>(each.op)].core) == kAiCpuCore; };
  const size_t count = std::min(rank.executions.size(), kMostExecutions);
  for (size_t first = 0; first < count; ++first) {
    Key key;
    for (size_t i = first; i < count && key.size() < kLongest && !of_ai_cpu(rank.executions[i]); ++i) {
      key.push_back(static_cast<char32_t>(rank.executions[i].op));
      take(first, i, key);
      if (ends[i]) break;
    }
  }
}

std::map<Key, Sequence> SequencesOf(const Rank& rank) {
  const Costs costs(rank);
  std::map<Key, Sequence> found;
  Sequence one;
  EachSequence(rank, [&](size_t first, size_t last, const Key& key) {
    if (first == last) one = {};
    const Execution& each = rank.executions[last];
    one.busy_ns += each.end_ns - each.start_ns;
    one.moving_ns += costs.Moving(each.op);
    one.core_ns += costs.Core(each.op);
    if (key.size() < kShortest) return;
    Sequence& all = found[key];
    if (all.count++ == 0) {
      all.first = first;
      all.last = last;
    }
    all.wall_ns += each.end_ns - rank.executions[first].start_ns;
    all.busy_ns += one.busy_ns;
    all.moving_ns += one.moving_ns;
    all.core_ns += one.core_ns;
  });
  return found;
}

// Of all sequences together. Where they overlap, each execution counts once; where executions do (on several streams),
// the time.
struct Covered {
  int64_t wall_ns = 0;
  int64_t busy_ns = 0;
};
Covered CoveredBy(const Rank& rank, const std::vector<std::pair<Key, Sequence>>& sequences) {
  std::set<std::u32string_view> keys;
  for (const auto& [key, each] : sequences) keys.insert(key);
  Covered covered;
  size_t next = 0;  // execution behind those that have counted
  int64_t end_ns = INT64_MIN;
  EachSequence(rank, [&](size_t first, size_t last, const Key& key) {
    if (last < next || key.size() < kShortest || !keys.contains(key)) return;
    // What an earlier sequence covered has been counted.
    const size_t from = std::max(first, next);
    const int64_t start_ns = std::max(first < next ? end_ns : rank.executions[first].start_ns, end_ns);
    for (size_t i = from; i <= last; ++i) {
      covered.busy_ns += std::max(rank.executions[i].end_ns - std::max(rank.executions[i].start_ns, end_ns), int64_t{0});
      end_ns = std::max(end_ns, rank.executions[i].end_ns);
    }
    covered.wall_ns += std::max(end_ns - start_ns, int64_t{0});
    next = last + 1;
  });
  return covered;
}

}  // namespace

std::optional<Finding> CheckFusibleOperators(const CheckInput& input) {
  const Rank& rank = input.rank;
  if (rank.executions.size() < kShortest) return std::nullopt;
  const auto limit = [&input](std::string_view name) { return input.limits.At("fusible_operators", name); };
  const auto whole_ns = static_cast<double>(rank.executions[std::min(rank.executions.size(), kMostExecutions) - 1].end_ns - rank.executions.front().start_ns);
  const double occurrences = limit("occurrences");
  const double busy_share = limit("busy_share");
  const double transfer_share = limit("transfer_share");
  const double share_of_all = limit("share_of_all");
  std::vector<std::pair<Key, Sequence>> kept;
  for (auto& [key, each] : SequencesOf(rank)) {
    if (static_cast<double>(each.count) <= occurrences || each.wall_ns <= 0) continue;
    each.of_host = static_cast<double>(each.busy_ns) / static_cast<double>(each.wall_ns) < busy_share;
    each.of_transfer = each.core_ns > 0 && each.moving_ns / each.core_ns > transfer_share;
    const bool long_enough = static_cast<double>(each.wall_ns) / whole_ns > share_of_all;
    if (!each.of_transfer && !(each.of_host && long_enough)) continue;
    // The longer one is more useful.
    const bool goes_on = !kept.empty() && key.starts_with(kept.back().first) && each.wall_ns > kept.back().second.wall_ns;
    if (goes_on) kept.pop_back();
    kept.emplace_back(key, each);
  }
  if (kept.empty()) return std::nullopt;
  std::ranges::stable_sort(kept, std::ranges::greater(), [](const auto& each) { return each.second.wall_ns; });
  const auto [wall_ns, busy_ns] = CoveredBy(rank, kept);
  const double share = whole_ns > 0 ? static_cast<double>(wall_ns) / whole_ns : 0;
  Finding finding;
  finding.priority = share > limit("high") ? Priority::kHigh : share < limit("low") ? Priority::kLow : Priority::kMedium;
  finding.title = Text("Sequences of operators that could be one", "可融合的算子序列");
  finding.evidence = Translate({"{:sequence repeats|sequences repeat}; from begin to end {:.3f} ms, of which the device was busy for {:.3f} ms", "{} 个序列重复出现；从开始到结束共 {:.3f} ms，其中器件忙 {:.3f} ms"}, Counted{kept.size()},
                         Ms(wall_ns), Ms(busy_ns));
  if (rank.executions.size() > kMostExecutions) finding.evidence += Translate({"; looked for among the first {} executions", "；只查找了前 {} 次执行"}, kMostExecutions);
  finding.advice = {Text("Where the host is the limit: find what launches them (record call stacks) and use a fused operator or a graph.", "受 Host 下发限制时：定位下发代码（采集调用栈），使用融合算子或图模式。"),
                    Text("Where transfers are the limit: a fused operator keeps what is between them on the chip.", "受搬运限制时：融合算子可将中间数据保留在片上。")};
  finding.columns = {"first", "last", "total_us", "busy_us", "transfer_us", "occurrences", "bound_by_transfer", "bound_by_host", "operators"};
  for (const auto& [key, each] : kept) {
    std::string names;
    for (const char32_t op : key) names += fmt::format("{}{}", names.empty() ? "" : ", ", rank.TextOf(rank.operators[op].name));
    finding.rows.push_back({each.first, each.last, static_cast<double>(each.wall_ns) / 1000, static_cast<double>(each.busy_ns) / 1000, each.moving_ns / 1000,
                            each.count, each.of_transfer, each.of_host, names});
  }
  finding.at_ns = rank.executions[kept.front().second.first].start_ns;
  return finding;
}

}  // namespace profd::analysis
