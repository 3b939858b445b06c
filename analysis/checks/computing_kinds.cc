#include "analysis/checks/computing_kinds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/checks/check.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr std::array<std::string_view, kComputingKinds> kNames = {
    "computing: flash attention",
    "computing: conv",
    "computing: matmul",
    "computing: vector",
    "computing: SDMA (tensor move)",
    "computing: other cube",
    "computing: page attention",
    "computing: fused with communication"};

struct KindWord {
  ComputingKind kind;
  std::string_view word;
};
// Of the framework's operators on the host.
constexpr auto kHostWords =
    std::to_array<KindWord>({{ComputingKind::kFlashAttention, "flash_attention"},
                          {ComputingKind::kFlashAttention, "fusion_attention"},
                          {ComputingKind::kFlashAttention, "flashattn"},
                          {ComputingKind::kFlashAttention, "xformers_flash"},
                          {ComputingKind::kFlashAttention, "efficient_attention"},
                          {ComputingKind::kFlashAttention, "flash2attn"},
                          {ComputingKind::kConv, "aten::conv"},
                          {ComputingKind::kMatmul, "aten::addmm"},
                          {ComputingKind::kMatmul, "aten::bmm"},
                          {ComputingKind::kMatmul, "aten::mm"},
                          {ComputingKind::kMatmul, "aten::matmul"}});
constexpr std::array<std::string_view, 3> kFused = {"allgathermatmul", "matmulreducescatter",
                                                    "matmulallreduce"};

bool Holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::optional<ComputingKind> KindOfHostOperator(std::string_view name) {
  const std::string lower = LowerCase(name);
  const auto found = std::ranges::find_if(
      kHostWords, [&lower](const KindWord& each) { return Holds(lower, each.word); });
  return found == kHostWords.end() ? std::nullopt : std::optional(found->kind);
}

// The framework's operators that multiply matrices, by thread, and what they launched.
class HostOperators {
 public:
  explicit HostOperators(const Rank& rank) : rank_(rank) {
    std::map<TextId, std::optional<ComputingKind>> kinds;
    for (const Slice& each : rank.slices) {
      if (each.lane < 0 || rank.lanes[static_cast<size_t>(each.lane)].group != "Python") continue;
      const auto [it, is_new] = kinds.try_emplace(each.name);
      if (is_new) it->second = KindOfHostOperator(rank.TextOf(each.name));
      if (it->second)
        threads_[rank.lanes[static_cast<size_t>(each.lane)].name].push_back(
            {each.start_ns, each.end_ns, *it->second});
    }
    for (auto& [name, spans] : threads_)
      std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
      });
    for (const Flow& flow : rank.flows) {
      if (const auto kind = Around(rank.slices[flow.slice]))
        launched_.emplace(flow.execution, *kind);
    }
  }
  std::optional<ComputingKind> Of(uint32_t execution) const {
    const auto found = launched_.find(execution);
    return found == launched_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct Span {
    int64_t start_ns;
    int64_t end_ns;
    ComputingKind kind;
  };

  // Of the operator around a launch on the same thread.
  std::optional<ComputingKind> Around(const Slice& launch) const {
    if (launch.lane < 0) return std::nullopt;
    const auto thread = threads_.find(rank_.lanes[static_cast<size_t>(launch.lane)].name);
    if (thread == threads_.end()) return std::nullopt;
    constexpr int kDeepest = 64;  // operators that call each other
    auto after = std::ranges::upper_bound(thread->second, launch.start_ns, {}, &Span::start_ns);
    for (int tried = 0; after != thread->second.begin() && tried < kDeepest; ++tried) {
      --after;
      if (after->end_ns > launch.start_ns) return after->kind;
    }
    return std::nullopt;
  }

  const Rank& rank_;
  std::map<std::string, std::vector<Span>> threads_;
  std::map<uint32_t, ComputingKind> launched_;
};

// What an operator reports about itself.
class OperatorKinds {
 public:
  explicit OperatorKinds(const Rank& rank) : rank_(rank), calls_(rank.operators.size()) {
    for (const Execution& each : rank.executions) ++calls_[static_cast<size_t>(each.op)];
  }

  // What precedes the operator of the framework.
  std::optional<ComputingKind> First(const Operator& op) const {
    const std::string type = LowerCase(rank_.TextOf(op.type));
    const std::string name = LowerCase(rank_.TextOf(op.name));
    if (Holds(type, "pagedattention")) return ComputingKind::kPageAttention;
    if (name.starts_with("aclnninplacecopy") && Holds(name, "tensormove"))
      return ComputingKind::kTensorMove;
    const bool fused =
        std::ranges::any_of(kFused, [&type](std::string_view word) { return Holds(type, word); });
    return fused ? std::optional(ComputingKind::kFusedWithCommunication) : std::nullopt;
  }

  ComputingKind ByType(const Operator& op) const {
    const std::string type = LowerCase(rank_.TextOf(op.type));
    if (Holds(type, "flashattention") || Holds(type, "fusedinferattention"))
      return ComputingKind::kFlashAttention;
    if (type.starts_with("conv")) return ComputingKind::kConv;
    if (Holds(type, "matmul")) return ComputingKind::kMatmul;
    return HasCube(op) ? ComputingKind::kOtherCube : ComputingKind::kVector;
  }

  // Of one that communicates as well, what computes of one execution, where units were counted.
  std::optional<double> ComputingNs(int32_t number) const {
    const Operator& op = rank_.operators[static_cast<size_t>(number)];
    const double cube = std::max(UnitNs(op, "aic_mac"), UnitNs(op, "aic_mte2"));
    const double all = cube + UnitNs(op, "aiv");
    const uint64_t calls = calls_[static_cast<size_t>(number)];
    return all > 0 && calls > 0 ? std::optional(all / static_cast<double>(calls)) : std::nullopt;
  }

 private:
  double UnitNs(const Operator& op, std::string_view unit) const {
    const auto number =
        static_cast<size_t>(std::ranges::find(rank_.unit_names, unit) - rank_.unit_names.begin());
    return number < op.unit_ns.size() ? op.unit_ns[number] : 0;
  }

  // Without counters the kind of core decides.
  bool HasCube(const Operator& op) const {
    const bool counted =
        op.counted_ns > 0 || std::ranges::any_of(op.unit_ns, [](double ns) { return ns > 0; });
    const std::string_view core = rank_.TextOf(op.core);
    if (!counted) return core == "AI_CORE" || core == "MIX_AIC";
    double mac = std::max(UnitNs(op, "aicore"), UnitNs(op, "aic_mac"));
    for (size_t i = 0; i < rank_.ratio_names.size(); ++i) {
      if (rank_.ratio_names[i] == "aic_mac" || rank_.ratio_names[i] == "mac")
        mac = std::max(mac, op.Ratio(i));
    }
    return mac > 0;
  }

  const Rank& rank_;
  std::vector<uint64_t> calls_;
};

double CommonNs(const Intervals& part, int64_t start_ns, int64_t end_ns) {
  double ns = 0;
  auto each = std::ranges::upper_bound(part, start_ns, {}, &Interval::end_ns);
  for (; each != part.end() && each->start_ns < end_ns; ++each) {
    ns += static_cast<double>(std::min(each->end_ns, end_ns) - std::max(each->start_ns, start_ns));
  }
  return ns;
}

}  // namespace

std::string_view ComputingKindName(ComputingKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::array<KindTime, kComputingKinds> ComputingKindsOf(const Rank& rank) {
  const HostOperators host(rank);
  const OperatorKinds kinds(rank);
  std::array<KindTime, kComputingKinds> times{};
  for (size_t i = 0; i < rank.executions.size(); ++i) {
    const Execution& each = rank.executions[i];
    const Operator& op = rank.operators[static_cast<size_t>(each.op)];
    const auto first = kinds.First(op);
    const auto of_host = first ? std::nullopt : host.Of(static_cast<uint32_t>(i));
    const ComputingKind kind = first ? *first : of_host ? *of_host : kinds.ByType(op);
    auto ns = static_cast<double>(each.end_ns - each.start_ns);
    if (kind == ComputingKind::kFusedWithCommunication)
      ns = std::min(ns, kinds.ComputingNs(each.op).value_or(ns));
    KindTime& time = times[static_cast<size_t>(kind)];
    time.ms += ns / 1e6;
    ++time.executions;
  }
  return times;
}

double UncoveredWaitMs(const Rank& rank) {
  const Intervals& uncovered = rank.overlap[OverlapKind::kNotOverlapped];
  struct Waiting {
    double all_ns = 0;
    double part_ns = 0;  // of it, what lies in uncovered communication and waits for others
  };
  std::map<int32_t, std::map<int32_t, Waiting>> groups;  // by plane
  for (const PlaneWait& each : rank.waits) {
    Waiting& plane = groups[GroupOfPlane(each.plane)][each.plane];
    plane.all_ns += static_cast<double>(each.end_ns - each.start_ns);
    plane.part_ns += each.behind_rdma ? 0 : CommonNs(uncovered, each.start_ns, each.end_ns);
  }
  double ns = 0;
  for (const auto& [group, planes] : groups) {
    ns += std::ranges::min_element(planes, {}, [](const auto& each) { return each.second.all_ns; })->second.part_ns;
  }
  return ns / 1e6;
}

double FreeCopiesMs(const Rank& rank) {
  const Intervals& free = rank.overlap[OverlapKind::kFree];
  std::set<int32_t> streams;
  for (const Execution& each : rank.executions) streams.insert(each.lane);
  double ns = 0;
  for (const Copy& each : rank.copies)
    ns += streams.contains(each.lane) ? CommonNs(free, each.start_ns, each.end_ns) : 0;
  return ns / 1e6;
}

}  // namespace profd::analysis
