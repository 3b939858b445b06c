#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckDataloader(const CheckInput& input) {
  const Rank& rank = input.rank;
  const double least_us = input.limits.At("dataloader", "least_us");
  std::map<TextId, std::string> lower;  // names that are of a data loader; empty: another
  std::vector<const Slice*> found;
  bool single = false;
  int64_t sum_ns = 0;
  for (const Slice& slice : rank.slices) {
    const auto [it, is_new] = lower.try_emplace(slice.name);
    if (is_new) {
      std::string name = LowerOf(rank.TextOf(slice.name));
      if (name.find("dataloader") != std::string::npos) it->second = name;
    }
    const int64_t ns = slice.end_ns - slice.start_ns;
    if (it->second.empty() || static_cast<double>(ns) / 1000 < least_us) continue;
    if (found.empty()) single = it->second.find("singleprocess") != std::string::npos;
    found.push_back(&slice);
    sum_ns += ns;
  }
  if (found.empty()) return std::nullopt;
  std::ranges::stable_sort(found, {}, &Slice::start_ns);
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.cost_ms = PerStep(rank, Ms(sum_ns));
  finding.title = Text("Slow data loader", "数据加载慢");
  finding.evidence = Say({"{} calls of the data loader took {:.0f} us or longer; the first {:.3f} ms", "数据加载有 {} 次调用耗时达到或超过 {:.0f} us；首次为 {:.3f} ms"}, found.size(), least_us,
                         Ms(found.front()->end_ns - found.front()->start_ns));
  finding.advice = {Text("Keep the data on a fast local disk, and read it in few large files.", "将数据放在高速本地盘，并以少量大文件读取。"),
                    Text("Raise num_workers of the DataLoader.", "增大 DataLoader 的 num_workers。")};
  if (!single) {
    finding.advice.push_back(Text("Bind the loader's processes to CPUs of their own.", "为数据加载进程绑定独立的 CPU。"));
    finding.advice.push_back(Text("Archive formats (tar, MindRecord) read faster than single files.", "归档格式（tar、MindRecord）比零散文件读取更快。"));
    finding.advice.push_back(Text("Set pin_memory=True.", "设置 pin_memory=True。"));
  }
  finding.columns = {"name", "start_ms", "duration_ms"};
  for (const Slice* slice : found) finding.rows.push_back({rank.TextOf(slice->name), Ms(slice->start_ns - BeginOf(rank)), Ms(slice->end_ns - slice->start_ns)});
  finding.at_ns = found.front()->start_ns;
  return finding;
}

}  // namespace profd::analysis
