#include <algorithm>

#include "analysis/checks/check.h"

namespace profd::analysis {

std::optional<Finding> CheckSynchronizeStream(const CheckInput& input) {
  const Rank& rank = input.rank;
  struct Call {
    int64_t start_ns = 0;
    bool launch = false;
  };
  std::vector<Call> calls;
  for (const Slice& slice : rank.slices) {
    const std::string_view name = rank.TextOf(slice.name);
    const bool launch = name.starts_with("Node@launch") || name == "launch";
    if (launch || ApiOf(name).starts_with("aclrtSynchronizeStream")) calls.push_back({slice.start_ns, launch});
  }
  std::ranges::stable_sort(calls, {}, &Call::start_ns);
  uint64_t launches = 0;
  uint64_t waited = 0;
  std::optional<int64_t> first;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].launch) continue;
    ++launches;
    if (i + 1 == calls.size() || calls[i + 1].launch) continue;
    ++waited;
    if (!first) first = calls[i + 1].start_ns;
  }
  const double share = launches == 0 ? 0 : static_cast<double>(waited) / static_cast<double>(launches);
  if (share <= input.limits.At("synchronize_stream", "share")) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = Text("Launches wait for the stream", "下发等待同步流");
  finding.evidence = Translate({"{0} of {1} launches ({2:.1f} %) are followed by a synchronisation of the stream", "{1} 次下发中有 {0} 次（{2:.1f} %）之后紧跟同步流"}, waited, launches, share * 100);
  finding.advice = {Text("unset ASCEND_LAUNCH_BLOCKING, and leave out torch.npu.synchronize() and .item() in the loop.", "执行 unset ASCEND_LAUNCH_BLOCKING，并去掉循环中的 torch.npu.synchronize() 和 .item()。")};
  finding.code = {"unset ASCEND_LAUNCH_BLOCKING"};
  finding.at_ns = first;
  return finding;
}

}  // namespace profd::analysis
