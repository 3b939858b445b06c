#include "export/csv/operator_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "export/beside.h"
#include "export/csv/csv_row.h"
#include "export/operators/details.h"
#include "export/csv/operator_parts.h"
#include "export/csv/parallel_rows.h"
#include "export/csv/tuning_rules.h"
#include "export/operators/numbers.h"
#include "export/operators/overlap.h"
#include "export/operators/sort_records.h"

namespace profd::exporting::csv {
namespace {

using operators::HostTask;
using operators::kNotKnown;
using operators::Model;
using operators::PmuGroup;
using operators::TaskRow;

std::string Micros(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// As texts, for the analyser sorts them as such: the same as by value where they have as many digits.
bool IsTextLess(int64_t a, int64_t b) {
  char texts[2][24];
  char* ends[2];
  const int64_t values[2] = {a, b};
  for (size_t i = 0; i < 2; ++i) ends[i] = AppendInt(texts[i], values[i]);
  return std::string_view(texts[0], ends[0]) < std::string_view(texts[1], ends[1]);
}

void AddTensors(const operators::TensorTexts& texts, CsvRow* row) {
  if (texts.count == 0) {
    row->Text(kNotKnown).Text(kNotKnown).Text(kNotKnown);
    return;
  }
  // In quotes, which are a part of the text and doubled.
  row->Raw("\"\"\"").Append(texts.shapes).Append("\"\"\"");
  row->Text(texts.types).Text(texts.formats);
}

// Cells of op_summary that follow from what a task was launched by. Most tasks are like others: they have theirs in
// common.
struct AlikeCells {
  std::string names;    // name, type, state, task type
  std::string tensors;  // of inputs and outputs
  bool is_shown = false;
};

AlikeCells CellsOf(const Model& model, const operators::TensorTable& tensors, const HostTask& host) {
  AlikeCells made;
  const std::string_view core = model.CoreType(host);
  made.is_shown = operators::IsShown(model, host, core);
  if (!made.is_shown) return made;
  const operators::NodeRecord* node = model.detailed ? model.NodeOf(host) : nullptr;
  CsvRow names(made.names);
  names.Text(model.OperatorName(host)).Text(model.OperatorType(host));
  names.Text(node == nullptr ? kNotKnown : node->unaging ? "static" : "dynamic").Text(core);
  const auto& [inputs, outputs] = tensors.Of(host);
  CsvRow texts(made.tensors);
  AddTensors(inputs, &texts);
  AddTensors(outputs, &texts);
  return made;
}

class AlikeTable {
 public:
  AlikeTable(const Model& model, const operators::TensorTable& tensors) : model_(model), tensors_(tensors) {}

  // Of what Find answers.
  const AlikeCells& operator[](int32_t alike) const { return cells_[static_cast<size_t>(alike)]; }
  // -1: there are too many, it has its own.
  int32_t Find(const HostTask& host) {
    constexpr size_t kMost = 65'536;
    if (cells_.size() >= kMost) return -1;
    const auto [known, is_new] = known_.try_emplace(operators::AlikeOf(model_, host), static_cast<int32_t>(cells_.size()));
    if (is_new) cells_.push_back(CellsOf(model_, tensors_, host));
    return known->second;
  }

 private:
  const Model& model_;
  const operators::TensorTable& tensors_;
  std::unordered_map<operators::Alike, int32_t, operators::AlikeHash> known_;
  std::vector<AlikeCells> cells_;
};

Large<OperatorRow> OperatorRows(const Model& model, AlikeTable* table) {
  Large<OperatorRow> rows;
  rows.reserve(model.rows.size());
  for (const TaskRow& task : model.rows) {
    const HostTask* host = model.HostOf(task);
    if (host == nullptr || !host->compute) continue;
    const int32_t alike = table->Find(*host);
    const bool shown = alike >= 0 ? (*table)[alike].is_shown : operators::IsShown(model, *host, model.CoreType(*host));
    if (shown) rows.push_back({&task, nullptr, alike});
  }
  for (const operators::CommunicationOp& op : model.communication.ops) {
    if (op.shown) rows.push_back({nullptr, &op});
  }
  constexpr int64_t kFirstOfAsManyDigits = 1'000'000'000'000'000'000;  // wall clock in ns, 2001 to 2286
  operators::SortSmall(&rows, [](const OperatorRow& a, const OperatorRow& b) {
    if (a.device() != b.device()) return IsTextLess(a.device(), b.device());
    if (std::min(a.start_ns(), b.start_ns()) >= kFirstOfAsManyDigits) return a.start_ns() < b.start_ns();
    return Micros(a.start_ns()) < Micros(b.start_ns());
  });
  return rows;
}

void AddBlocks(const HostTask& host, CsvRow* row) {
  if (host.has_blocks) {
    row->Int(host.blocks).Int(host.mix_blocks);
  } else {
    row->Text(kNotKnown).Text(kNotKnown);
  }
}

void AddCore(const operators::CoreCounters& counted, double mhz, bool two_decimals, CsvRow* row) {
  row->SqlText(SqlRound(counted.time_us, two_decimals ? 2 : 3)).Int(counted.counts.cycles);
  for (const operators::PmuColumn& column : counted.core->columns) {
    if (column.only_database) continue;
    const std::optional<double> value =
        operators::PmuValue(column, counted.counts, counted.time_us, mhz);
    value ? row->SqlText(SqlRound(*value, 3)) : row->Text(kNotKnown);
  }
}

std::vector<std::string> NamesOf(const PmuGroup& group) {
  std::vector<std::string> names{"aicore_time(us)", group.one_core ? "total_cycles" : "aic_total_cycles"};
  for (const operators::PmuColumn* column : group.aic.Summary()) names.push_back(column->name);
  if (!group.one_core) {
    names.emplace_back("aiv_time(us)");
    names.emplace_back("aiv_total_cycles");
  }
  for (const operators::PmuColumn* column : group.aiv.Summary()) names.push_back(column->name);
  if (group.cube_utilization) names.emplace_back("cube_utilization(%)");
  return names;
}

// Devices may count different groups: the columns are those of the first, then what each further one has beyond them.
struct CounterColumns {
  explicit CounterColumns(const Model& model) {
    for (const auto& [device, pmu] : model.device_pmu) {
      for (const std::string& name : NamesOf(pmu.group)) {
        const auto known = std::ranges::find(names, name);
        places[device].push_back(static_cast<size_t>(known - names.begin()));
        if (known == names.end()) names.push_back(name);
      }
    }
    std::erase_if(places, [this](const auto& of) {
      return of.second.size() == names.size() && std::ranges::is_sorted(of.second);
    });
  }
  std::vector<std::string> names;
  std::map<int, std::vector<size_t>> places;  // of the cells of a device that has not all columns in this order
};

void AddOwnCounters(const operators::DevicePmu& device, const OperatorRow& each,
                    std::span<const operators::CoreCounters> cores, CsvRow* row) {
  const PmuGroup& group = device.group;
  for (const operators::CoreCounters& core : cores.first(group.one_core ? 1 : 2)) {
    AddCore(core, device.mhz, group.one_core || group.custom, row);
  }
  if (!group.cube_utilization) return;
  const double duration = static_cast<double>(each.duration()) / 1000;
  const double all = device.mhz * static_cast<double>(group.aic.cores);
  const auto cycles = static_cast<double>(cores.front().counts.cycles);
  duration > 0 && all > 0 ? row->Decimals(cycles / all * 100 / duration, 3) : row->Text("0");
}

void AddCounters(const Model& model, const OperatorRow& each, const CounterColumns& columns, CsvRow* row) {
  const auto cores = each.task == nullptr ? std::nullopt
                                          : operators::CountersOf(model, *each.task, *model.HostOf(*each.task));
  if (!cores) {
    for (size_t i = 0; i < columns.names.size(); ++i) row->Text(kNotKnown);
    return;
  }
  const operators::DevicePmu& device = model.device_pmu.at(each.device());
  const auto places = columns.places.find(each.device());
  if (places == columns.places.end()) return AddOwnCounters(device, each, *cores, row);
  std::string own;
  CsvRow cells(own);
  AddOwnCounters(device, each, *cores, &cells);
  std::vector<std::string_view> all(columns.names.size(), kNotKnown);
  std::string_view rest = own;  // numbers, or N/A
  for (const size_t place : places->second) {
    all[place] = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(all[place].size() + 1, rest.size()));
  }
  for (const std::string_view cell : all) row->Raw(cell);
}

// What the rows of op_summary share.
struct SummaryRows {
  explicit SummaryRows(const Model& of)
      : model(of), counters(of), tensors(of), alike(of, tensors), rows(OperatorRows(of, &alike)) {}
  SummaryRows(const SummaryRows&) = delete;
  SummaryRows& operator=(const SummaryRows&) = delete;

  const Model& model;
  CounterColumns counters;
  operators::TensorTable tensors;
  AlikeTable alike;
  Large<OperatorRow> rows;
};

void AddOperator(const SummaryRows& of, const OperatorRow& each, const std::optional<double>& wait, std::string* out) {
  const Model& model = of.model;
  const HostTask& host = *model.HostOf(*each.task);
  const operators::NodeRecord* node = model.detailed ? model.NodeOf(host) : nullptr;
  CsvRow row(*out, each.task->device);
  row.Int(host.model).Int(model.TaskId(*each.task)).Int(each.task->stream);
  const AlikeCells own = each.alike < 0 ? CellsOf(model, of.tensors, host) : AlikeCells();
  const AlikeCells& cells = each.alike < 0 ? own : of.alike[each.alike];
  row.Raw(cells.names);
  row.Time(each.task->start_ns).Micros(each.duration());
  wait ? row.Decimals(*wait, 6) : row.Int(0);
  AddBlocks(host, &row);
  row.Text(node == nullptr ? kNotKnown : node->hf32 ? "YES" : "NO");
  row.Raw(cells.tensors);
  if (each.task->context == operators::kNoContext) {
    row.Text(kNotKnown);
  } else {
    row.Int(each.task->context);
  }
  AddCounters(model, each, of.counters, &row);
  row.End();
}

void AddCommunication(const SummaryRows& of, const OperatorRow& each, const std::optional<double>& wait,
                      std::string* out) {
  const Model& model = of.model;
  const operators::CommunicationOp& op = *each.communication;
  CsvRow row(*out, op.device);
  row.Int(op.model).Text(kNotKnown).Text(kNotKnown).Text(model.NameOf(op)).Text(model.TypeOf(op));
  row.Text(kNotKnown).Text("COMMUNICATION").Time(op.start_ns).Micros(each.duration());
  wait ? row.Decimals(*wait, 6) : row.Int(0);
  row.Int(0);
  constexpr int kColumnsWithout = 9;  // mix blocks, HF32, tensors, context
  for (int i = 0; i < kColumnsWithout; ++i) row.Text(kNotKnown);
  AddCounters(model, each, of.counters, &row);
  row.End();
}

// Of tasks with contexts: where context 0 is first, it stands for all of them.
Large<const TaskRow*> TimedTasks(const Model& model) {
  Large<const TaskRow*> rows;
  rows.reserve(model.rows.size());
  for (const TaskRow& row : model.rows) rows.push_back(&row);
  operators::SortSmall(&rows, [](const TaskRow* a, const TaskRow* b) { return a->start_ns < b->start_ns; });
  using Key = std::tuple<int16_t, uint16_t, uint16_t, uint16_t>;
  const auto key_of = [](const TaskRow* row) { return Key(row->device, row->stream, row->task, row->batch); };
  std::map<Key, bool> only_first;  // of those with contexts: whether context 0 was first
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

void AddTaskTime(const Model& model, const TaskRow& task, std::string* out) {
  const HostTask* host = model.HostOf(task);
  const std::string_view core = host != nullptr && host->compute ? model.CoreType(*host) : kNotKnown;
  CsvRow row(*out, task.device);
  row.Text(host == nullptr || host->kernel == 0 ? std::string_view(kNotKnown) : model.host.NameOf(host->kernel));
  core == kNotKnown ? row.Text(model.TaskType(task)) : row.Text(core);
  row.Int(task.stream).Int(model.TaskId(task)).Micros(static_cast<int64_t>(task.duration_ns()));
  row.Time(task.start_ns).Time(task.end_ns).End();
}

// op_summary, and what is counted over its rows, which it returns.
OperatorRowsPtr AddSummaries(const Model& model, int64_t begin_ns, std::vector<OperatorCsv>* csvs) {
  const auto made = std::make_shared<const SummaryRows>(model);
  OperatorRowsPtr rows(made, &made->rows);
  const auto add = [made](size_t at, std::string* out) {
    const auto add_row = made->rows[at].communication != nullptr ? AddCommunication : AddOperator;
    add_row(*made, made->rows[at], WaitOf(made->model, made->rows, at), out);
  };
  csvs->push_back({"op_summary",
                   "Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
                   "Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
                   "Output Shapes,Output Data Types,Output Formats,Context ID", rows->size(), add});
  for (const std::string& name : made->counters.names) csvs->back().columns += "," + name;
  std::ranges::move(FrameworkCsvs(model, csvs->back(), rows), std::back_inserter(*csvs));
  csvs->push_back(OperatorStatistic(model, *rows, begin_ns));
  csvs->push_back(CommunicationStatistic(model, *rows));
  return rows;
}

// Without, the vendor's analyser writes none of these tables.
bool HasAllEvents(const Model& model) {
  for (const auto& [device, pmu] : model.device_pmu) {
    if (!pmu.consistent || (pmu.group.aic.columns.empty() && pmu.group.aiv.columns.empty())) return false;
    for (const operators::PmuCore* core : {&pmu.group.aic, &pmu.group.aiv}) {
      for (const operators::PmuColumn& column : core->columns) {
        if (!operators::PmuValue(column, {}, 0, pmu.mhz)) return false;
      }
    }
  }
  return true;
}

OperatorCsv TaskTimes(const Model& model) {
  const auto tasks = std::make_shared<const Large<const TaskRow*>>(TimedTasks(model));
  return {"task_time", "kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)",
          tasks->size(), [&model, tasks](size_t at, std::string* out) { AddTaskTime(model, *(*tasks)[at], out); }};
}

}  // namespace

std::optional<double> WaitOf(const Model& model, std::span<const OperatorRow> rows, size_t at) {
  const OperatorRow& row = rows[at];
  const OperatorRow* before = at == 0 ? nullptr : &rows[at - 1];
  const bool at_once = before != nullptr && before->device() == row.device() && before->start_ns() == row.start_ns();
  const Model::Executed* ran = at_once ? nullptr : model.ExecutedBefore(row.device(), row.start_ns());
  if (before == nullptr && ran == nullptr) return std::nullopt;
  const int64_t start_ns = ran != nullptr ? ran->start_ns : before->start_ns();
  const int64_t end_ns = ran != nullptr ? ran->end_ns : before->end_ns();
  const double between = MicrosAsPrinted(row.start_ns()) - MicrosAsPrinted(start_ns);
  return std::max(0.0, between - MicrosAsPrinted(end_ns - start_ns));
}

OperatorCsv OfLines(std::string_view name, std::string columns, std::vector<std::string> lines, bool of_devices) {
  const auto kept = std::make_shared<const std::vector<std::string>>(std::move(lines));
  return {name, std::move(columns), kept->size(), [kept](size_t at, std::string* out) { *out += (*kept)[at]; }, of_devices};
}

Status WriteOperatorCsvs(const Model& model, int64_t begin_ns, unsigned threads, const CsvTarget& target,
                         std::vector<std::string_view>* names) {
  const bool of_tasks = !target.compat_msprof || HasAllEvents(model);
  std::vector<OperatorCsv> csvs;
  std::vector<OperatorCsv> others;
  OperatorRowsPtr summary;
  RunBeside(2, [&](size_t part) {
    if (part == 0) {
      if (of_tasks) summary = AddSummaries(model, begin_ns, &csvs);
      return;
    }
    operators::OverlapsOf(model);  // made once, for WritePytorchFiles
    if (of_tasks) others.push_back(TaskTimes(model));
    others.push_back(ApiStatistic(model));
    if (!target.compat_msprof || target.legacy_names) others.push_back(OperatorPhases(model));
  });
  std::ranges::move(others, std::back_inserter(csvs));
  if (target.legacy_names) {
    std::ranges::move(LegacyCsvs(model, target.pid), std::back_inserter(csvs));
    if (summary != nullptr) RETURN_IF_ERROR(WriteTuningRules(model, *summary, target));
  }
  std::ranges::move(ResourceCsvs(model), std::back_inserter(csvs));
  for (const OperatorCsv& csv : csvs) {
    if (csv.rows == 0) continue;
    CsvFile file(
        {target.dir, csv.name, target.timestamp, csv.columns, csv.rows, target.rows_per_file, false, csv.of_devices, target.go_on},
        target.files);
    RETURN_IF_ERROR(WriteRows(csv.rows, threads, csv.add, &file));
    RETURN_IF_ERROR(file.Close());
    names->push_back(csv.name);
  }
  return Status::Ok();
}

}  // namespace profd::exporting::csv
