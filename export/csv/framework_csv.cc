// kernel_details, operator_details and what the framework's allocator reports, as PyTorch's profiler makes them.
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
  const bool several =
      std::ranges::any_of(*rows, [&](const OperatorRow& row) { return row.device() != rows->front().device(); });
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
  columns.insert(0, several ? "Step Id,Device_id," : "Step Id,");
  OperatorCsv made{"kernel_details", std::move(columns), rows->size(), nullptr, false};
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

// Of all operators but the steps, by begin; of those that took longest alone, the ones that launched some of them.
OperatorCsv OperatorDetails(const Model& model) {
  const FrameworkData& data = *model.framework;
  const auto times = std::make_shared<const std::vector<FrameworkTimes>>(operators::FrameworkTimesOf(model));
  const auto order = std::make_shared<std::vector<uint32_t>>();
  for (uint32_t i = 0; i < data.operators.size(); ++i) {
    if (data.IsStep(data.operators[i]) || !model.window.Has(data.operators[i].begin)) continue;
    if (model.longest == 0 || (*times)[i].device_total > 0) order->push_back(i);
  }
  std::ranges::sort(*order, {}, [&data](uint32_t i) {
    const FrameworkOperator& op = data.operators[i];
    return std::tuple(op.begin, -op.end, i);
  });
  OperatorCsv made{"operator_details",
                   "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),"
                   "Device Self Duration(us),Device Total Duration(us),Device Self Duration With AICore(us),"
                   "Device Total Duration With AICore(us)",
                   order->size(), nullptr, false};
  made.add = [&data, order, times](size_t at, std::string* out) {
    const uint32_t i = (*order)[at];
    AddOperatorDetails(data, data.operators[i], (*times)[i], out);
  };
  return made;
}

constexpr double kMiB = 1024.0 * 1024.0;

OperatorCsv MemoryRecords(const Model& model) {
  std::vector<std::string> lines;
  for (const operators::FrameworkMemory& each : model.framework->memory.records) {
    if (!model.window.Has(each.time)) continue;
    CsvRow row(lines.emplace_back());
    row.Text(operators::kFrameworkComponent).Time(each.time);
    for (const int64_t bytes : {each.allocated, each.reserved, each.active}) {
      row.Repr(static_cast<double>(bytes) / kMiB);
    }
    row.Int(each.stream).Text(fmt::format("NPU:{}", each.device)).End();
  }
  return OfLines("framework_memory_record",
                 "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),"
                 "Stream Ptr,Device Type",
                 std::move(lines), false);
}

OperatorCsv Allocations(const Model& model) {
  const FrameworkData& data = *model.framework;
  std::vector<std::string> lines;
  for (const auto& [taken, released, inactive] : data.memory.Allocations()) {
    if (!model.window.Has(taken->time)) continue;
    const int32_t op = data.TakerAt(taken->thread, taken->time);
    CsvRow row(lines.emplace_back());
    row.Text(op < 0 ? std::string_view() : data.texts.Text(data.operators[static_cast<size_t>(op)].name));
    row.Repr(static_cast<double>(taken->bytes) / 1024).Time(taken->time);
    for (const int64_t since : {int64_t{0}, taken->time}) {
      for (const operators::FrameworkMemory* end : {released, inactive}) {
        end == nullptr ? row.Text("") : row.Time(end->time - since);
      }
    }
    for (const operators::FrameworkMemory* at : {taken, released}) {
      for (const auto total : {&operators::FrameworkMemory::allocated, &operators::FrameworkMemory::reserved,
                               &operators::FrameworkMemory::active}) {
        at == nullptr ? row.Text("") : row.Repr(static_cast<double>(at->*total) / kMiB);
      }
    }
    row.Int(taken->stream).Text(fmt::format("NPU:{}", taken->device)).End();
  }
  return OfLines("framework_operator_memory",
                 "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),"
                 "Active Duration(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
                 "Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),"
                 "Release Total Active(MB),Stream Ptr,Device Type",
                 std::move(lines), false);
}

}  // namespace

std::vector<OperatorCsv> FrameworkCsvs(const Model& model, const OperatorCsv& summary, OperatorRowsPtr rows) {
  if (model.framework == nullptr) return {};
  return {KernelDetails(model, summary, std::move(rows)), OperatorDetails(model), MemoryRecords(model),
          Allocations(model)};
}

}  // namespace profd::exporting::csv
