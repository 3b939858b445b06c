#include <algorithm>
#include <map>

#include "analysis/checks/check.h"

namespace profd::analysis {
namespace {

constexpr uint64_t kAlignment = 512;  // bytes; what is not longer is not looked at

struct OfOp {
  uint64_t bytes = 0;
  int64_t ns = 0;
  int64_t odd_ns = 0;  // of those that are not aligned
  int64_t at_ns = 0;
};

}  // namespace

std::optional<Finding> CheckByteAlignment(const CheckInput& input) {
  const Rank& rank = input.rank;
  std::map<TextId, OfOp> ops;
  int64_t all_ns = 0;
  int64_t odd_ns = 0;
  for (const Transfer& each : rank.transfers) {
    if (rank.TextOf(each.transport) != "SDMA" || rank.TextOf(each.link) == "ON_CHIP" || each.bytes <= kAlignment) continue;
    OfOp& op = ops[each.name];
    const int64_t ns = each.end_ns - each.start_ns;
    if (op.bytes == 0) op.at_ns = each.start_ns;
    op.bytes += each.bytes;
    op.ns += ns;
    all_ns += ns;
    if (each.bytes % kAlignment == 0) continue;
    op.odd_ns += ns;
    odd_ns += ns;
  }
  std::erase_if(ops, [](const auto& each) { return each.second.odd_ns == 0; });
  if (ops.empty()) return std::nullopt;
  std::vector<std::pair<TextId, OfOp>> sorted(ops.begin(), ops.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& each) { return each.second.odd_ns; });
  const double share = static_cast<double>(odd_ns) / static_cast<double>(all_ns);
  Finding finding;
  finding.priority = share >= input.limits.At("byte_alignment", "high")     ? Priority::kHigh
                     : share >= input.limits.At("byte_alignment", "medium") ? Priority::kMedium
                                                                            : Priority::kLow;
  finding.title = Text("Data of collectives is not aligned", "集合通信的数据未对齐");
  finding.evidence = Translate({"{:collective moves|collectives move} data over SDMA in sizes that are not a multiple of {} bytes: {:.3f} ms of {:.3f} ms",
                          "{} 个通信算子经 SDMA 搬运的数据量不是 {} 字节的整数倍：{:.3f} ms / {:.3f} ms"}, Counted{sorted.size()}, kAlignment, Ms(odd_ns), Ms(all_ns));
  finding.advice = {Text("Choose sizes (buckets, batch, hidden size) such that what each rank sends is a multiple of 512 bytes.", "调整大小（梯度桶、batch、hidden size），使每个 rank 发送的数据量为 512 字节的整数倍。")};
  finding.columns = {"name", "size_bytes", "duration_us", "unaligned_us", "bandwidth_gb_s"};
  for (const auto& [name, op] : sorted) {
    const auto us = static_cast<double>(op.ns) / 1000;
    finding.rows.push_back({rank.TextOf(name), op.bytes, us, static_cast<double>(op.odd_ns) / 1000,
                            op.ns > 0 ? Json(static_cast<double>(op.bytes) / static_cast<double>(op.ns)) : Json()});
  }
  finding.at_ns = sorted.front().second.at_ns;
  return finding;
}

}  // namespace profd::analysis
