#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

struct Sizes {
  uint64_t count = 0;
  uint64_t small = 0;
  double small_ms = 0;
  double Share() const { return count == 0 ? 0 : static_cast<double>(small) / static_cast<double>(count); }
};

Sizes SizesOf(const Rank& rank, std::string_view transport, double limit_mb) {
  Sizes sizes;
  for (const Collective& each : rank.collectives) {
    for (const Transport& part : each.transports) {
      if (part.name != transport || part.size_mb <= 0) continue;
      ++sizes.count;
      if (part.size_mb >= limit_mb) continue;
      ++sizes.small;
      sizes.small_ms += part.time_ms;
    }
  }
  return sizes;
}

}  // namespace

std::optional<Finding> CheckPacket(const CheckInput& input) {
  const Sizes sdma = SizesOf(input.rank, "SDMA", input.limits.At("packet", "sdma_mb"));
  const Sizes rdma = SizesOf(input.rank, "RDMA", input.limits.At("packet", "rdma_mb"));
  const double limit = input.limits.At("packet", "share");
  if (sdma.Share() <= limit && rdma.Share() <= limit) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kLow;
  finding.cost_ms = PerStep(input.rank, sdma.small_ms + rdma.small_ms);
  finding.title = Text("Communication in small packets", "通信小包");
  finding.columns = {"transport", "count", "small_count", "small_share", "small_ms"};
  for (const auto& [name, sizes] : {std::pair("SDMA", sdma), std::pair("RDMA", rdma)}) {
    if (sizes.count > 0) finding.rows.push_back({name, sizes.count, sizes.small, sizes.Share(), sizes.small_ms});
    if (sizes.Share() <= limit) continue;
    Join(&finding.evidence, Text("; ", "；"),
         Translate({"{0} of {1} operations over {2} ({3:.2f} %) are small", "{2} 的 {1} 次通信中有 {0} 次为小包（{3:.2f} %）"}, sizes.small, sizes.count, name, sizes.Share() * 100));
  }
  finding.advice = {Text("Use a larger batch or accumulate gradients over more of them.", "增大 batch 或梯度累积次数。"),
                    Text("With DeepSpeed's ZeRO-3, try ZeRO-2 or ZeRO-1.", "若使用 DeepSpeed ZeRO-3，可尝试 ZeRO-2 或 ZeRO-1。"),
                    Text("Use fused optimizers and larger buckets of gradients.", "使用融合优化器和更大的梯度桶。")};
  return finding;
}

}  // namespace profd::analysis
