#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "analysis/checks/check.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// A sequence of operators of the framework that one API of the NPU does faster (analysis 1.7). Steps are parted by
// blanks: "a|b" one of them, a trailing '?' it may be missing, "mul{0,2}" so many of them.
struct Rule {
  std::string_view since;  // of kVersions
  std::string_view api;
  std::string_view pattern;
  bool in_any_order = false;
};
// Of CANN, by the time of their release; each has the rules of those before.
constexpr std::array<std::string_view, 7> kVersions = {"6.3.RC2", "7.0.RC1", "7.0.0", "8.0.RC1", "8.0.RC2", "8.0.RC3", "8.0.0"};
constexpr auto kRules = std::to_array<Rule>({
    {"6.3.RC2", "torch_npu.npu_confusion_transpose", "permute|transpose contiguous? reshape|view"},
    {"6.3.RC2", "torch_npu.npu_confusion_transpose", "reshape|view contiguous? permute|transpose"},
    {"6.3.RC2", "torch_npu.fast_gelu", "gelu"},
    {"6.3.RC2", "torch_npu.npu_scaled_masked_softmax", "softmax mul? masked_fill_|add"},
    {"6.3.RC2", "optimizer.clip_grad_norm_fused_", "add reciprocal mul"},
    {"7.0.RC1", "torch_npu.npu_fusion_attention", "matmul add? mul? masked_fill_|add? softmax dropout? matmul"},
    {"7.0.RC1", "torch_npu.npu_rotary_mul", "chunk|slice neg cat mul{0,2} add"},
    {"7.0.0", "torch_npu.npu_rms_norm", "pow? mean? add? rsqrt mul type_as?"},
    {"7.0.0", "torch_npu.npu_swiglu", "slice|chunk silu mul", true},
    {"7.0.0", "torch_npu.npu_swiglu", "slice|chunk sigmoid mul mul", true},
    {"8.0.RC1", "torch_npu.npu_geglu", "slice|chunk gelu mul", true},
    {"8.0.RC1", "torch_npu.npu_group_norm_silu", "group_norm silu"},
    {"8.0.RC1", "torch.addmm", "mul mul add"},
    {"8.0.RC1", "torch_npu.npu_add_layer_norm", "add layer_norm"},
    {"8.0.RC3", "mindspeed.ops.npu_matmul_add", "matmul add"},
    {"8.0.RC3", "mindspeed.ops.npu_moe_token_permute", "argsort argsort index_select"},
    {"8.0.RC3", "mindspeed.ops.npu_moe_token_unpermute", "index_select mul reduce_sum"},
});
constexpr std::array<std::string_view, 9> kOptimizers = {"AdamW", "SGD", "Adadelta", "Lamb", "AdamP", "BertAdam", "RMSprop", "RMSpropTF", "Adam"};

struct Part {
  std::vector<std::string_view> names;
  int least = 1;
  int most = 1;
};

std::vector<Part> PartsOf(std::string_view pattern) {
  std::vector<Part> parts;
  for (std::string_view text; NextPart(&pattern, ' ', &text);) {
    Part part;
    constexpr std::string_view kUpToTwo = "{0,2}";
    if (text.ends_with('?')) {
      part.least = 0;
      text.remove_suffix(1);
    } else if (text.ends_with(kUpToTwo)) {
      part.least = 0;
      part.most = 2;
      text.remove_suffix(kUpToTwo.size());
    }
    for (std::string_view name; NextPart(&text, '|', &name);) part.names.push_back(name);
    parts.push_back(std::move(part));
  }
  return parts;
}

using Names = std::span<const std::string_view>;

bool Is(const Part& part, std::string_view name) { return std::ranges::find(part.names, name) != part.names.end(); }

// How many of `names` the parts take from the first on; 0: they do not fit.
size_t Fit(std::span<const Part> parts, Names names) {
  if (parts.empty()) return 0;
  size_t taken = 0;
  while (taken < static_cast<size_t>(parts[0].most) && taken < names.size() && Is(parts[0], names[taken])) ++taken;
  for (size_t n = taken + 1; n-- > static_cast<size_t>(parts[0].least);) {
    if (parts.size() == 1) return n;
    const size_t rest = Fit(parts.subspan(1), names.subspan(n));
    const bool rest_may_be_empty = std::ranges::all_of(parts.subspan(1), [](const Part& part) { return part.least == 0; });
    if (rest > 0 || rest_may_be_empty) return n + rest;
  }
  return 0;
}

size_t FitInAnyOrder(std::span<const Part> parts, Names names) {
  if (names.size() < parts.size()) return 0;
  std::vector<bool> used(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t k = 0;
    while (k < parts.size() && (used[k] || !Is(parts[k], names[i]))) ++k;
    if (k == parts.size()) return 0;
    used[k] = true;
  }
  return parts.size();
}

// What a thread called itself, by start; what those called is left out.
struct ThreadCalls {
  std::vector<std::string_view> names;  // without "aten::"
  std::vector<uint32_t> slices;
};

std::vector<ThreadCalls> ThreadCallsOf(const CheckInput& input) {
  const Rank& rank = input.rank;
  std::map<int32_t, std::vector<uint32_t>> threads;
  for (size_t i = 0; i < rank.slices.size(); ++i) {
    const Slice& each = rank.slices[i];
    if (each.lane < 0 || rank.lanes[static_cast<size_t>(each.lane)].group != "Python" || !input.IsInStep(each.start_ns, each.end_ns)) continue;
    const std::string_view name = rank.TextOf(each.name);
    if (name.starts_with("aten::") || name.starts_with("npu::")) threads[each.lane].push_back(static_cast<uint32_t>(i));
  }
  std::vector<ThreadCalls> all;
  for (auto& [lane, slices] : threads) {
    std::ranges::stable_sort(slices, [&rank](uint32_t x, uint32_t y) {
      const Slice& a = rank.slices[x];
      const Slice& b = rank.slices[y];
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    ThreadCalls& calls = all.emplace_back();
    int64_t end_ns = INT64_MIN;
    for (const uint32_t i : slices) {
      if (rank.slices[i].end_ns <= end_ns) continue;
      end_ns = rank.slices[i].end_ns;
      const std::string_view name = rank.TextOf(rank.slices[i].name);
      calls.names.push_back(name.substr(name.find("::") + 2));
      calls.slices.push_back(i);
    }
  }
  return all;
}

// A version that is not among them is taken for the latest, as where it was not recorded.
bool Has(std::string_view version, const Rule& rule) {
  return std::ranges::find(kVersions, rule.since) <= std::ranges::find(kVersions, version);
}

struct Place {
  uint64_t count = 0;
  int64_t at_ns = 0;
};
using Places = std::map<std::tuple<std::string, std::string, TextId>, Place>;  // by API, what it replaces, stack

void Count(const Rank& rank, uint32_t slice, std::string api, std::string what, Places* places) {
  const auto stack = rank.stacks.find(slice);
  Place& place = (*places)[{std::move(api), std::move(what), stack == rank.stacks.end() ? kNoText : stack->second}];
  if (place.count++ == 0) place.at_ns = rank.slices[slice].start_ns;
}

void CountRules(const CheckInput& input, Places* places) {
  const Rank& rank = input.rank;
  const std::vector<ThreadCalls> all = ThreadCallsOf(input);
  for (const Rule& rule : kRules) {
    if (!Has(rank.cann_version, rule)) continue;
    const std::vector<Part> parts = PartsOf(rule.pattern);
    for (const ThreadCalls& calls : all) {
      for (size_t i = 0; i < calls.names.size();) {
        const Names rest = Names(calls.names).subspan(i);
        const size_t length = rule.in_any_order ? FitInAnyOrder(parts, rest) : Fit(parts, rest);
        if (length > 0) {
          std::string what;
          for (const std::string_view name : rest.first(length)) what += fmt::format("{}{}", what.empty() ? "" : ", ", name);
          Count(rank, calls.slices[i], std::string(rule.api), std::move(what), places);
        }
        i += std::max<size_t>(1, length);
      }
    }
  }
}

void CountOptimizers(const CheckInput& input, Places* places) {
  const Rank& rank = input.rank;
  for (size_t i = 0; i < rank.slices.size(); ++i) {
    const std::string_view name = rank.TextOf(rank.slices[i].name);
    constexpr std::string_view kBegin = "Optimizer.step#";
    constexpr std::string_view kEnd = ".step";
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) continue;
    const std::string_view optimizer = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
    const bool known = std::ranges::find(kOptimizers, optimizer) != kOptimizers.end();
    if (!known || !input.IsInStep(rank.slices[i].start_ns, rank.slices[i].end_ns)) continue;
    Count(rank, static_cast<uint32_t>(i), fmt::format("torch_npu.optim.NpuFused{}", optimizer), std::string(optimizer), places);
  }
}

}  // namespace

std::optional<Finding> CheckAffinityApi(const CheckInput& input) {
  const Rank& rank = input.rank;
  Places places;
  CountRules(input, &places);
  CountOptimizers(input, &places);
  if (places.empty()) return std::nullopt;
  std::vector<std::pair<std::tuple<std::string, std::string, TextId>, Place>> sorted(places.begin(), places.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& each) { return each.second.count; });
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("APIs that the NPU has faster ones for", "可替换为 NPU 亲和 API 的调用");
  finding.columns = {"api", "replaces", "calls", "stack"};
  std::vector<std::string> apis;
  uint64_t calls = 0;
  for (const auto& [key, place] : sorted) {
    const auto& [api, what, stack] = key;
    finding.rows.push_back({api, what, place.count, stack == kNoText ? Json() : Json(rank.TextOf(stack))});
    if (std::ranges::find(apis, api) == apis.end()) apis.push_back(api);
    if (stack != kNoText) finding.stacks.emplace_back(rank.TextOf(stack));
    calls += place.count;
  }
  finding.evidence = Translate({"{:place} in the code could use {:faster API; it was|faster APIs; they were} called {:time}", "代码中 {} 处可使用 {} 个更快的 API；共调用 {} 次"}, Counted{sorted.size()}, Counted{apis.size()}, Counted{calls});
  for (const std::string& api : apis) finding.advice.push_back(Translate({"Use {}.", "使用 {}。"}, api));
  finding.advice.emplace_back(Text("Code before and after, for each: https://gitcode.com/Ascend/msprof-analyze/blob/master/docs/en/fused_operator_api_replacement_example.md",
                                   "各 API 替换前后的代码：https://gitcode.com/Ascend/msprof-analyze/blob/master/docs/zh/fused_operator_api_replacement_example.md"));
  if (rank.stacks.empty()) finding.advice.emplace_back(Text("Record call stacks (with_stack=True) to see the lines of Python.", "采集调用栈（with_stack=True）以定位 Python 代码行。"));
  finding.step = input.StepNumber();
  finding.at_ns = sorted.front().second.at_ns;
  return finding;
}

}  // namespace profd::analysis
