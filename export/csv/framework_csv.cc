// kernel_details and operator_details, as PyTorch's profiler makes them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "export/csv/csv_row.h"
#include "export/csv/operator_parts.h"
#include "export/operators/framework_times.h"

namespace profd::exporting::csv {
namespace {

using operators::FrameworkData;
using operators::FrameworkOperator;
using operators::FrameworkTimes;
using operators::Model;

int32_t ConnectionOf(const Model& model, const OperatorRow& row) {
  if (row.communication != nullptr) return model.LaunchOf(*row.communication).api;
  return model.HostOf(*row.task)->connection;
}

// Without its first column where all are of one device.
OperatorCsv KernelDetails(const Model& model, const OperatorCsv& summary, OperatorRowsPtr rows) {
  const bool several = std::ranges::any_of(*rows, [&](const OperatorRow& row) { return row.device() != rows->front().device(); });
  std::string columns = summary.columns;
  const auto rename = [&columns](std::string_view from, std::string_view to) {
    if (const size_t at = columns.find(from); at != std::string::npos) columns.replace(at, from.size(), to);
  };
  rename("Op Name", "Name");
  rename("OP Type", "Type");
  rename("Task Type", "Accelerator Core");
  rename("Task Start Time", "Start Time");
  rename("Task Duration", "Duration");
  rename("Task Wait Time", "Wait Time");
  OperatorCsv made{"kernel_details", (several ? "Step Id,Device_id," : "Step Id,") + columns, rows->size(), nullptr, false};
  made.add = [&model, rows, several, add = summary.add](size_t at, std::string* out) {
    if (const auto step = model.StepOf(ConnectionOf(model, (*rows)[at]))) *out += fmt::to_string(*step);
    *out += ',';
    const size_t begin = out->size();
    add(at, out);
    if (!several) out->erase(begin, out->find(',', begin) + 1 - begin);
  };
  return made;
}

void AddOperatorDetails(const FrameworkData& data, const FrameworkOperator& op, const FrameworkTimes& times,
                        std::string* out) {
  CsvRow row(*out);
  row.Text(data.texts.Text(op.name)).Text(operators::Listed(data.texts.Text(op.shapes)));
  row.Text(operators::Listed(data.texts.Text(op.stack)));
  for (const int64_t ns : {times.host_self, op.end - op.begin, times.device_self, times.device_total, times.core_self,
                           times.core_total}) {
    row.Text(ShortDecimal(static_cast<double>(ns) / 1000));
  }
  row.End();
}

// Of all operators but the steps, by begin.
OperatorCsv OperatorDetails(const Model& model) {
  const FrameworkData& data = *model.framework;
  const auto order = std::make_shared<std::vector<uint32_t>>();
  for (uint32_t i = 0; i < data.operators.size(); ++i) {
    if (!data.IsStep(data.operators[i]) && model.window.Has(data.operators[i].begin)) order->push_back(i);
  }
  std::ranges::sort(*order, {}, [&data](uint32_t i) {
    const FrameworkOperator& op = data.operators[i];
    return std::tuple(op.begin, -op.end, i);
  });
  const auto times = std::make_shared<const std::vector<FrameworkTimes>>(operators::FrameworkTimesOf(model));
  OperatorCsv made{"operator_details",
                   "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),"
                   "Device Total Duration(us),Device Self Duration With AICore(us),Device Total Duration With AICore(us)",
                   order->size(), nullptr, false};
  made.add = [&data, order, times](size_t at, std::string* out) {
    const uint32_t i = (*order)[at];
    AddOperatorDetails(data, data.operators[i], (*times)[i], out);
  };
  return made;
}

}  // namespace

std::vector<OperatorCsv> FrameworkCsvs(const Model& model, const OperatorCsv& summary, OperatorRowsPtr rows) {
  if (model.framework == nullptr) return {};
  return {KernelDetails(model, summary, std::move(rows)), OperatorDetails(model)};
}

}  // namespace profd::exporting::csv
