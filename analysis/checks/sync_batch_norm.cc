#include <fmt/format.h>


#include "analysis/checks/check.h"

namespace profd::analysis {

std::optional<Finding> CheckSyncBatchNorm(const CheckInput& input) {
  const Rank& rank = input.rank;
  const Calls calls = CallsOf(rank, [](std::string_view name) { return LowerOf(name) == "syncbatchnorm"; });
  if (static_cast<double>(calls.count) < input.limits.At("sync_batch_norm", "count")) return std::nullopt;
  const double ms = Ms(calls.ns);
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.cost_ms = PerStep(rank, ms);
  finding.title = "SyncBatchNorm";
  finding.evidence = fmt::format("SyncBatchNorm was called {} times, {:.3f} ms in all", calls.count, ms);
  finding.advice = {"Leave out torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) where the batch of one rank is large enough.",
                    "Else gather sums and squares of all layers in one all-reduce instead of one for each layer."};
  finding.at_ns = calls.first_ns;
  return finding;
}

}  // namespace profd::analysis
