#include <algorithm>
#include <array>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

struct Kind {
  std::string_view api;
  Text advice;
  std::string_view code;
};
constexpr auto kKinds = std::to_array<Kind>({
    {"aclMallocMemInner", Text("export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True: memory that was taken grows instead of being taken anew.", "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True：已申请的内存可扩展，而不必重新申请。"),
     "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"},
    {"aclrtFreePhysical", 
     Text("Memory of the device is short: see how much is in use, use a smaller batch, leave out torch.npu.empty_cache().", "器件内存不足：查看占用量，减小 batch，去掉 torch.npu.empty_cache()。"), {}},
    {"aclrtFree", 
     Text("Memory of the device is short: see how much is in use, use a smaller batch, leave out torch.npu.empty_cache().", "器件内存不足：查看占用量，减小 batch，去掉 torch.npu.empty_cache()。"), {}},
});

}  // namespace

std::optional<Finding> CheckMemory(const CheckInput& input) {
  Finding finding;
  double longest = 0;
  double all = 0;
  for (const Kind& kind : kKinds) {
    const Calls calls = CallsOf(input, [&kind](std::string_view name) { return ApiOf(name) == kind.api; });
    const double ms = Ms(calls.ns);
    if (ms * 1000 < input.limits.At("memory", "least_us") || calls.count == 0) continue;
    longest = std::max(longest, ms);
    all += ms;
    finding.rows.push_back({kind.api, calls.count, ms});
    if (finding.advice.empty() || finding.advice.back() != TranslatedText(kind.advice)) finding.advice.emplace_back(kind.advice);
    if (!kind.code.empty()) finding.code.push_back(kind.code);
    finding.at_ns = std::min(finding.at_ns.value_or(INT64_MAX), *calls.first_ns);
  }
  if (finding.rows.empty()) return std::nullopt;
  const double step = StepLengthMs(input);
  finding.priority = step > 0 ? PriorityOf(longest, step, input.limits) : Priority::kHigh;
  finding.cost_ms = CostOf(input, all);
  finding.step = input.StepNumber();
  finding.title = Text("Taking and freeing memory of the device", "申请和释放器件内存");
  finding.evidence = Translate({"{:.3f} ms in calls that take or free memory of the device", "申请或释放器件内存的调用共 {:.3f} ms"}, all);
  finding.columns = {"api", "calls", "total_ms"};
  return finding;
}

}  // namespace profd::analysis
