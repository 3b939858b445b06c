#include "export/csv/operator_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "export/csv/csv_row.h"
#include "export/operators/numbers.h"

namespace profd::exporting::csv {
namespace {

using operators::HostTask;
using operators::Model;
using operators::PmuGroup;
using operators::TaskRow;

constexpr std::string_view kNone = "N/A";

Place DevicePlace(int device) {
  Place place;
  place.kind = Place::Kind::kDevice;
  place.device = device;
  return place;
}

// As the analyser's C++ prints doubles: up to three decimals, none that are zero at the end.
std::string ShortDecimal(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string Micros(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// What an operator is called, once for each of its executions.
struct OperatorRow {
  const TaskRow* task = nullptr;
  const HostTask* host = nullptr;
  std::string device;  // as text: the order of rows
  std::string start;
  std::string core_type;
  int64_t duration() const { return task->end_ns - task->start_ns; }
};

bool IsShown(const Model& model, const HostTask& task, const std::string& core_type) {
  if (core_type == "WRITE_BACK" || core_type == "INVALID") return false;
  if (core_type != "HCCL_AI_CPU" && core_type != "COMMUNICATION") return true;
  return model.OperatorName(task).ends_with("AivKernel");
}

std::vector<OperatorRow> OperatorRows(const Model& model) {
  std::vector<OperatorRow> rows;
  for (const TaskRow& task : model.rows) {
    const HostTask* host = model.HostOf(task);
    if (host == nullptr || !host->compute) continue;
    OperatorRow row{&task, host, fmt::to_string(task.device), Micros(task.start_ns), model.CoreType(*host)};
    if (IsShown(model, *host, row.core_type)) rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, [](const OperatorRow& a, const OperatorRow& b) {
    return std::tie(a.device, a.start) < std::tie(b.device, b.start);
  });
  return rows;
}

struct TensorTexts {
  std::string shapes;
  std::string types;
  std::string formats;
  size_t count = 0;

  void Add(const operators::Tensor& tensor) {
    if (count++ > 0) {
      shapes += ';';
      types += ';';
      formats += ';';
    }
    for (size_t i = 0; i < std::size(tensor.shape) && tensor.shape[i] != 0; ++i) {
      if (i > 0) shapes += ',';
      shapes += fmt::to_string(tensor.shape[i]);
    }
    types += operators::DataTypeName(tensor.data_type);
    formats += operators::FormatName(tensor.format);
  }
};

// Input and output; of the operator that describes the launch: those of its name and first time.
std::pair<TensorTexts, TensorTexts> TensorsOf(const Model& model, const HostTask& task) {
  std::pair<TensorTexts, TensorTexts> texts;
  const operators::Launch* launch = model.LaunchOf(task);
  const operators::NodeRecord* node = model.NodeOf(task);
  if (launch == nullptr || node == nullptr || !model.detailed) return texts;
  const operators::TensorRecord* first = nullptr;
  for (uint32_t i = launch->tensors_begin; i < launch->tensors_end; ++i) {
    const operators::TensorRecord& record = model.host.tensor_records[i];
    if (record.name != node->name || (first != nullptr && record.time != first->time)) continue;
    if (first == nullptr) first = &record;
    for (const operators::Tensor& tensor : model.host.tensors[record.tensors]) {
      (tensor.output ? texts.second : texts.first).Add(tensor);
    }
  }
  return texts;
}

void AddTensors(const TensorTexts& texts, bool any, CsvRow* row) {
  if (!any) {
    row->Text(kNone).Text(kNone).Text(kNone);
    return;
  }
  row->Text("\"" + texts.shapes + "\"").Text(texts.types).Text(texts.formats);
}

void AddBlocks(const HostTask& host, CsvRow* row) {
  if (host.has_blocks) {
    row->Int(host.blocks).Int(host.mix_blocks);
  } else {
    row->Text(kNone).Text(kNone);
  }
}

// Counters of one kind of core. Those of one that did not run are 0.
void AddCore(const operators::PmuCore& core, const operators::RowPmu* counted, uint32_t blocks, double mhz,
             CsvRow* row) {
  const operators::PmuCounts counts = counted == nullptr ? operators::PmuCounts{} : counted->counts;
  const double time = operators::PmuTime(counts, core.cores, counted == nullptr ? 0 : counted->mhz, blocks);
  row->SqlText(SqlRound(time, 3)).Int(static_cast<int64_t>(counts.cycles));
  for (const operators::PmuColumn& column : core.columns) {
    const std::optional<double> value = operators::PmuValue(column, core, counts, time, mhz);
    value ? row->SqlText(SqlRound(*value, 3)) : row->Text(kNone);
  }
}

// `shown`: the columns there are; null: none.
void AddCounters(const Model& model, const OperatorRow& each, const PmuGroup* shown, CsvRow* row) {
  if (shown == nullptr) return;
  const auto setup = model.device_pmu.find(each.task->device);
  if (each.task->pmu < 0 || setup == model.device_pmu.end()) {
    const size_t columns = 4 + shown->aic.columns.size() + shown->aiv.columns.size() + (shown->cube_utilization ? 1 : 0);
    for (size_t i = 0; i < columns; ++i) row->Text(kNone);
    return;
  }
  const operators::RowPmu* of_core[2] = {};  // cube, vector
  for (const int32_t index : {each.task->pmu, each.task->other_pmu}) {
    if (index < 0) continue;
    const operators::RowPmu& counted = model.pmu[static_cast<size_t>(index)];
    of_core[counted.vector_core ? 1 : 0] = &counted;
  }
  const operators::DevicePmu& device = setup->second;
  const bool main_is_vector = model.pmu[static_cast<size_t>(each.task->pmu)].vector_core;
  const uint32_t cube_blocks = main_is_vector ? each.host->mix_blocks : each.host->blocks;
  const uint32_t vector_blocks = main_is_vector ? each.host->blocks : each.host->mix_blocks;
  AddCore(device.group.aic, of_core[0], cube_blocks, device.mhz, row);
  AddCore(device.group.aiv, of_core[1], vector_blocks, device.mhz, row);
  if (!shown->cube_utilization) return;
  const double duration = static_cast<double>(each.duration()) / 1000;
  const double all = device.mhz * static_cast<double>(device.group.aic.cores);
  const double cycles = of_core[0] == nullptr ? 0 : static_cast<double>(of_core[0]->counts.cycles);
  row->Text(duration > 0 && all > 0 ? fmt::format("{:.3f}", cycles / all * 100 / duration) : "0");
}

void AddOperator(const Model& model, const OperatorRow& each, const std::string& wait, const PmuGroup* shown,
                 std::string* out) {
  const HostTask& host = *each.host;
  const operators::NodeRecord* node = model.detailed ? model.NodeOf(host) : nullptr;
  CsvRow row(*out, DevicePlace(each.task->device));
  row.Int(static_cast<int64_t>(host.model)).Int(each.task->task).Int(each.task->stream);
  row.Text(model.OperatorName(host)).Text(model.OperatorType(host));
  row.Text(node == nullptr ? kNone : node->unaging ? "static" : "dynamic").Text(each.core_type);
  row.Time(each.task->start_ns).Micros(each.duration()).Text(wait);
  AddBlocks(host, &row);
  row.Text(node == nullptr ? kNone : node->hf32 ? "YES" : "NO");
  const auto [inputs, outputs] = TensorsOf(model, host);
  const bool any = inputs.count + outputs.count > 0;
  AddTensors(inputs, any, &row);
  AddTensors(outputs, any, &row);
  if (each.task->context == operators::kNoContext) {
    row.Text(kNone);
  } else {
    row.Int(each.task->context);
  }
  AddCounters(model, each, shown, &row);
  row.End();
}

void AddSummary(const Model& model, std::span<const OperatorRow> rows, const PmuGroup* shown, SpooledText* lines) {
  std::string wait = "0";
  // As the analyser: in us since the epoch as doubles, which are 0.25 us apart.
  const auto micros = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) {
      const double between = micros(rows[i].task->start_ns) - micros(rows[i - 1].task->start_ns);
      wait = fmt::format("{:.6f}", std::max(0.0, between - micros(rows[i - 1].duration())));
    }
    AddOperator(model, rows[i], wait, shown, &lines->text());
    lines->Added(1);
  }
}

struct Total {
  uint64_t count = 0;
  int64_t sum_ns = 0;
  int64_t min_ns = INT64_MAX;
  int64_t max_ns = 0;
};

void AddStatistic(const Model& model, std::span<const OperatorRow> rows, int64_t begin_ns, SpooledText* lines) {
  using Key = std::tuple<int, std::string, std::string>;
  std::map<Key, Total> totals;
  std::map<int, int64_t> of_device;
  for (const OperatorRow& row : rows) {
    std::string type = model.OperatorType(*row.host);
    if (row.task->start_ns <= begin_ns || type == kNone || row.core_type == kNone) continue;
    if (row.core_type == "HCCL_AI_CPU" || row.core_type == "COMMUNICATION") continue;
    Total& total = totals[{row.task->device, std::move(type), row.core_type}];
    ++total.count;
    total.sum_ns += row.duration();
    total.min_ns = std::min(total.min_ns, row.duration());
    total.max_ns = std::max(total.max_ns, row.duration());
    of_device[row.task->device] += row.duration();
  }
  std::vector<std::pair<Key, Total>> sorted(totals.begin(), totals.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.sum_ns > b.second.sum_ns; });
  const auto micros = [](double ns) { return ShortDecimal(ns / 1000); };
  for (const auto& [key, total] : sorted) {
    const auto& [device, type, core_type] = key;
    const auto sum = static_cast<double>(total.sum_ns);
    const int64_t all = of_device[device];
    CsvRow row(lines->text(), DevicePlace(device));
    row.Text(type).Text(core_type).Int(static_cast<int64_t>(total.count)).Text(micros(sum));
    row.Text(micros(static_cast<double>(total.min_ns))).Text(micros(sum / static_cast<double>(total.count)));
    row.Text(micros(static_cast<double>(total.max_ns)));
    row.Text(ShortDecimal(all > 0 ? sum / static_cast<double>(all) * 100 : 0)).End();
    lines->Added(1);
  }
}

// Of tasks with contexts: where context 0 comes first, it stands for all of them.
std::vector<const TaskRow*> TimedTasks(const Model& model) {
  std::vector<const TaskRow*> rows;
  for (const TaskRow& row : model.rows) rows.push_back(&row);
  std::ranges::stable_sort(rows, {}, [](const TaskRow* row) { return row->start_ns; });
  using Key = std::tuple<int16_t, uint16_t, uint16_t, uint16_t>;
  const auto key_of = [](const TaskRow* row) { return Key(row->device, row->stream, row->task, row->batch); };
  std::map<Key, bool> only_first;  // of those with contexts: whether context 0 came first
  for (const TaskRow* row : rows) {
    if (row->context != operators::kNoContext) only_first.try_emplace(key_of(row), row->context == 0);
  }
  std::erase_if(rows, [&](const TaskRow* row) {
    if (row->context == 0) return false;
    const auto found = only_first.find(key_of(row));
    return found != only_first.end() && found->second;
  });
  return rows;
}

void AddTaskTimes(const Model& model, SpooledText* lines) {
  for (const TaskRow* task : TimedTasks(model)) {
    const HostTask* host = model.HostOf(*task);
    std::string type = host != nullptr && host->compute ? model.CoreType(*host) : std::string(kNone);
    if (type == kNone) type = model.TaskType(*task);
    CsvRow row(lines->text(), DevicePlace(task->device));
    row.Text(host == nullptr || host->kernel == 0 ? std::string(kNone) : model.host.NameOf(host->kernel));
    row.Text(type).Int(task->stream).Int(task->task).Micros(task->end_ns - task->start_ns);
    row.Time(task->start_ns).Time(task->end_ns).End();
    lines->Added(1);
  }
}

void AddApis(const Model& model, SpooledText* lines) {
  for (const auto& [key, total] : model.host.ApiTotals()) {
    const auto& [name, level] = key;
    const auto count = static_cast<double>(total.count);
    const double mean = static_cast<double>(total.sum_ns) / count;
    const double variance = std::max(0.0, total.sum_squares / count - mean * mean) / 1e6;
    const auto micros = [](double ns) { return ShortDecimal(ns / 1000); };
    CsvRow row(lines->text(), Place{});
    row.Text(level).Text(name).Text(micros(static_cast<double>(total.sum_ns)));
    row.Int(static_cast<int64_t>(total.count)).Text(micros(mean)).Text(micros(static_cast<double>(total.min_ns)));
    row.Text(micros(static_cast<double>(total.max_ns))).Text(ShortDecimal(variance)).End();
    lines->Added(1);
  }
}

std::string CounterColumns(const PmuGroup* shown) {
  if (shown == nullptr) return {};
  std::string names = ",aicore_time(us),aic_total_cycles";
  for (const operators::PmuColumn& column : shown->aic.columns) names += "," + column.name;
  names += ",aiv_time(us),aiv_total_cycles";
  for (const operators::PmuColumn& column : shown->aiv.columns) names += "," + column.name;
  if (shown->cube_utilization) names += ",cube_utilization(%)";
  return names;
}

}  // namespace

Result<std::vector<OperatorCsv>> MakeOperatorCsvs(const Model& model, int64_t begin_ns, Spool& spool) {
  std::vector<OperatorCsv> made;
  const auto add = [&](std::string_view name, std::string columns) -> SpooledText* {
    made.push_back({name, std::move(columns), SpooledText(spool)});
    return &made.back().lines;
  };
  made.reserve(4);
  const std::vector<OperatorRow> rows = OperatorRows(model);
  // All devices are counted alike.
  const PmuGroup* shown = model.device_pmu.empty() ? nullptr : &model.device_pmu.begin()->second.group;
  AddSummary(model, rows, shown,
             add("op_summary",
                 "Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
                 "Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
                 "Output Shapes,Output Data Types,Output Formats,Context ID" + CounterColumns(shown)));
  AddStatistic(model, rows, begin_ns,
               add("op_statistic",
                   "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"));
  AddTaskTimes(model, add("task_time",
                          "kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)"));
  AddApis(model, add("api_statistic", "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"));
  for (OperatorCsv& csv : made) RETURN_IF_ERROR(csv.lines.Finish());
  std::erase_if(made, [](const OperatorCsv& csv) { return csv.lines.rows() == 0; });
  return made;
}

}  // namespace profd::exporting::csv
