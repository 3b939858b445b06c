#include "export/compat.h"

#include <fmt/format.h>

#include <array>

namespace profd::exporting {
namespace {

constexpr auto kDefects = std::to_array<DefectRow>({
    {Defect::kReduceDuration, "CSV step_trace, chips 5, 15, 16",
     "the first Reduce Duration is start - end in unsigned arithmetic: 18446744073709131.616 instead of 420", "end - start",
     "the value"},
    {Defect::kUnknownIsZero, "CSV step_trace, chips 5, 15, 16",
     "0.000 for times and lengths that are not known, N/A on the other chips", "N/A on every chip",
     "0 is a time, and one header has one meaning"},
    {Defect::kModuleSize, "CSV npu_module_mem, chips 5, 15, 16",
     "a size the driver does not know is 18014398509481983", "-1, as elsewhere", "the wrap-around of -1"},
    {Defect::kMissingEvent, "CSV op_summary, op_statistic, task_time, communication_statistic",
     "none of them when an event of the metric group was not counted, or the group has no columns "
     "(`PipelineExecuteUtilization`)",
     "all of them, N/A where the event is missing", "the rest is valid"},
});

constexpr bool InOrder() {
  for (size_t i = 0; i < kDefects.size(); ++i) {
    if (static_cast<size_t>(kDefects[i].id) != i) return false;
  }
  return true;
}
static_assert(InOrder());

}  // namespace

std::span<const DefectRow> Defects() { return kDefects; }

std::string DefectTable() {
  std::string text = "| Where | Vendor | Ours | Why |\n|---|---|---|---|\n";
  for (const DefectRow& row : kDefects) {
    text += fmt::format("| {} | {} | {} | {} |\n", row.where, row.vendor, row.ours, row.why);
  }
  return text;
}

}  // namespace profd::exporting
