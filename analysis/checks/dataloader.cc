#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

std::string ChineseAdviceFor(const std::string& op) {
  if (op.starts_with("Shuffle")) return fmt::format("{}：减小 buffer_size，或在读取数据时混洗（shuffle=True）", op);
  return fmt::format("{}：增大 num_parallel_workers；执行 Python 的算子检查其脚本，Batch 调整 prefetch_size", op);
}

// Where the queues of MindData's pipeline say that the training waits for its input.
std::optional<Finding> PipelineFinding(const Rank& rank) {
  const Json pipeline = DataPipelineView(rank);
  if (!pipeline.is_object() || pipeline["bottleneck"].is_null()) return std::nullopt;
  const auto stage = pipeline["bottleneck"].get<std::string>();
  Finding finding;
  finding.priority = Priority::kHigh;
  for (const Json& time : pipeline["times"]) {
    if (time["what"] == "get_next") finding.cost_ms = time["mean_ms"].get<double>();
  }
  finding.title = Text("The training waits for its input", "训练等待输入数据");
  finding.evidence = TranslatedText(fmt::format("the queues of the input pipeline show a stage that is too slow: {}", PipelineStageName(stage)),
                          fmt::format("输入流水线的队列表明 {} 过慢", stage));
  finding.columns = {"queue", "empty", "total", "mean_size"};
  for (const Json& queue : pipeline["queues"]) {
    finding.evidence += Translate({"; the {} queue was empty at {} of {:step}", "；{} 队列在 {}/{} 个 step 为空"}, queue["queue"].get<std::string>(),
                            queue["empty"].get<uint64_t>(), Counted{queue["total"].get<size_t>()});
    finding.rows.push_back({queue["queue"], queue["empty"], queue["total"], queue["mean_size"]});
  }
  // One for each operator, and what else there is.
  const Json& operators = pipeline["bottleneck_operators"];
  for (size_t i = 0; i < pipeline["suggestions"].size(); ++i) {
    const auto english = pipeline["suggestions"][i].get<std::string>();
    const std::string chinese = i < operators.size() ? ChineseAdviceFor(operators[i].get<std::string>()) : english;
    finding.advice.emplace_back(english, chinese);
  }
  if (finding.advice.empty()) finding.advice.emplace_back(Text("Raise num_parallel_workers of the pipeline's operators, and keep the data on a fast local disk.", "增大流水线算子的 num_parallel_workers，并将数据放在高速本地盘。"));
  return finding;
}

}  // namespace

std::optional<Finding> CheckDataloader(const CheckInput& input) {
  const Rank& rank = input.rank;
  const double least_us = input.limits.At("dataloader", "least_us");
  std::map<TextId, std::string> lower;  // names that are of a data loader; empty: another
  std::vector<const Slice*> found;
  int64_t in_steps_ns = 0;
  for (const Slice& slice : rank.slices) {
    const auto [it, is_new] = lower.try_emplace(slice.name);
    if (is_new) {
      std::string name = LowerCase(rank.TextOf(slice.name));
      if (name.find("dataloader") != std::string::npos) it->second = name;
    }
    const int64_t ns = slice.end_ns - slice.start_ns;
    if (it->second.empty() || static_cast<double>(ns) / 1000 < least_us) continue;
    found.push_back(&slice);
    if (IsInSteps(rank, slice.start_ns)) in_steps_ns += ns;
  }
  if (found.empty()) return PipelineFinding(rank);
  std::ranges::stable_sort(found, {}, &Slice::start_ns);
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.cost_ms = PerStep(rank, Ms(in_steps_ns));
  finding.title = Text("Slow data loader", "数据加载慢");
  finding.evidence = Translate({"{:call} of the data loader took {:.0f} us or longer; the first {:.3f} ms", "数据加载有 {} 次调用耗时达到或超过 {:.0f} us；首次为 {:.3f} ms"}, Counted{found.size()}, least_us,
                         Ms(found.front()->end_ns - found.front()->start_ns));
  finding.advice = {Text("Keep the data on a fast local disk, and read it in few large files.", "将数据放在高速本地盘，并以少量大文件读取。"),
                    Text("Raise num_workers of the DataLoader.", "增大 DataLoader 的 num_workers。")};
  // That of the first call, which the evidence describes.
  if (lower[found.front()->name].find("singleprocess") == std::string::npos) {
    finding.advice.emplace_back(Text("Bind the loader's processes to CPUs of their own.", "为数据加载进程绑定独立的 CPU。"));
    finding.advice.emplace_back(Text("Archive formats (tar, MindRecord) read faster than single files.", "归档格式（tar、MindRecord）比零散文件读取更快。"));
    finding.advice.emplace_back(Text("Set pin_memory=True.", "设置 pin_memory=True。"));
  }
  finding.columns = {"name", "start_ms", "duration_ms"};
  for (const Slice* slice : found) finding.rows.push_back({rank.TextOf(slice->name), Ms(slice->start_ns - BeginOf(rank)), Ms(slice->end_ns - slice->start_ns)});
  finding.at_ns = found.front()->start_ns;
  return finding;
}

}  // namespace profd::analysis
