#include "export/sqlite/operator_rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "export/operators/details.h"
#include "export/sqlite/communication_rows.h"
#include "export/sqlite/framework_rows.h"
#include "export/sqlite/task_numbers.h"

namespace profd::exporting {
namespace {

using operators::HostTask;
using operators::TaskRow;

constexpr char kNone[] = "N/A";

// "aic_mac_time(us)" without its unit; times in ns, bandwidths in bytes a second.
std::pair<std::string_view, double> CounterName(std::string_view column) {
  const std::string_view name = column.substr(0, column.find('('));
  if (column.ends_with("(us)")) return {name, 1e3};
  return {name, column.ends_with("(GB/s)") ? 1e9 : 1};
}

class OperatorWriter : OperatorRowWriter {
 public:
  explicit OperatorWriter(const OperatorTarget& to) : OperatorRowWriter(to), tasks_(to.model.rows) {}

  Status Write() {
    RETURN_IF_ERROR(WriteTasks());
    RETURN_IF_ERROR(WriteOperators());
    RETURN_IF_ERROR(WriteCounters());
    RETURN_IF_ERROR(WriteApis());
    RETURN_IF_ERROR(WriteMemory());
    RETURN_IF_ERROR(WriteCommunicationRows(to_, tasks_));
    ids_.task += tasks_.distinct() + static_cast<int64_t>(model_.marks.size());
    return WriteFrameworkRows(to_);
  }

 private:
  const TaskRow& RowAt(size_t place) const { return model_.rows[tasks_.RowAt(place)]; }

  Status WriteTasks();
  Status AddMark(CellLoader& out, const operators::DeviceMark& mark, int64_t number);
  Status WriteOperators();
  Status AddOperator(KeyedLoader& out, int64_t id, const HostTask& host, std::string_view core_type);
  Status WriteCounters();
  Status WriteApis();
  Status WriteMemory();
  int64_t TaskTypeOf(const TaskRow& task);
  const std::array<int64_t, 6>& TensorIds(const HostTask& host);
  std::array<int64_t, 6> MakeTensorIds(const HostTask& host);

  const TaskNumbers tasks_;
  std::map<std::tuple<int64_t, uint16_t, bool>, int64_t> task_types_;
  std::unordered_map<int32_t, std::array<int64_t, 6>> tensor_ids_;  // by HostData::tensors
};

int64_t OperatorWriter::TaskTypeOf(const TaskRow& task) {
  const HostTask* host = model_.HostOf(task);
  const std::tuple key(host == nullptr ? int64_t{-1} : int64_t{host->type}, task.type,
                       task.context != operators::kNoContext);
  const auto known = task_types_.find(key);
  if (known != task_types_.end()) return known->second;
  return task_types_[key] = Id(model_.TaskType(task));
}

Status OperatorWriter::WriteTasks() {
  CellLoader out = CellsOf(OperatorTable::kTask);
  std::vector<const operators::DeviceMark*> marks;
  for (const operators::DeviceMark& mark : model_.marks) marks.push_back(&mark);
  std::ranges::stable_sort(marks, {}, &operators::DeviceMark::start_ns);
  size_t next = 0;
  const auto add_marks = [&](int64_t until_ns) -> Status {
    for (; next < marks.size() && marks[next]->start_ns < until_ns; ++next) {
      RETURN_IF_ERROR(AddMark(out, *marks[next], ids_.task + tasks_.distinct() + static_cast<int64_t>(next)));
    }
    return {};
  };
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskRow& task = RowAt(i);
    RETURN_IF_ERROR(add_marks(task.start_ns));
    const HostTask* host = model_.HostOf(task);
    row_.Begin().Int(task.start_ns).Int(task.end_ns).Int(task.device);
    row_.Int(host == nullptr || host->connection < 0 ? -1 : ids_.connection + host->connection);
    row_.Int(ids_.task + tasks_.NumberAt(i)).Int(pid_).Int(TaskTypeOf(task));
    row_.Int(task.context == operators::kNoContext ? kNoId32 : int64_t{task.context});
    row_.Int(task.stream).Int(model_.TaskId(task)).Int(host == nullptr ? kNoId32 : static_cast<int64_t>(host->model));
    RETURN_IF_ERROR(out.Add(row_.End(), 0));
  }
  RETURN_IF_ERROR(add_marks(std::numeric_limits<int64_t>::max()));
  return out.Finish();
}

// A stream reaches a mark by a task of its own.
Status OperatorWriter::AddMark(CellLoader& out, const operators::DeviceMark& mark, int64_t number) {
  row_.Begin().Int(mark.start_ns).Int(mark.end_ns).Int(mark.device).Int(MarkConnection(mark.mark));
  row_.Int(number).Int(pid_).Int(Id("MsTx")).Int(kNoId32).Int(mark.stream).Int(mark.task).Int(kNoId32);
  return out.Add(row_.End(), 0);
}

// Shapes, data types, formats of the inputs, then of the outputs.
std::array<int64_t, 6> OperatorWriter::MakeTensorIds(const HostTask& host) {
  const operators::InputAndOutput tensors = operators::TensorsOf(model_, host);
  std::array<int64_t, 6> made;
  made.fill(Id(kNone));
  size_t at = 0;
  for (const operators::TensorTexts* texts : {&tensors.first, &tensors.second}) {
    if (texts->count > 0) std::ranges::copy(std::array{Id("\"" + texts->shapes + "\""), Id(texts->types), Id(texts->formats)}, &made[at]);
    at += 3;
  }
  return made;
}

const std::array<int64_t, 6>& OperatorWriter::TensorIds(const HostTask& host) {
  const auto [known, is_new] = tensor_ids_.try_emplace(operators::TensorsNumber(model_, host));
  if (is_new) known->second = MakeTensorIds(host);
  return known->second;
}

Status OperatorWriter::AddOperator(KeyedLoader& out, int64_t id, const HostTask& host, std::string_view core_type) {
  const operators::NodeRecord* node = model_.detailed ? model_.NodeOf(host) : nullptr;
  const std::array<int64_t, 6>& tensors = TensorIds(host);
  const int64_t none = Id(kNone);
  row_.Begin().Int(Id(model_.OperatorName(host))).Key();
  row_.Int(host.has_blocks ? int64_t{host.blocks} : kNoId32).Int(host.has_blocks ? int64_t{host.mix_blocks} : kNoId32);
  row_.Int(Id(core_type)).Int(Id(model_.OperatorType(host)));
  row_.Int(tensors[2]).Int(tensors[1]).Int(tensors[0]).Int(tensors[5]).Int(tensors[4]).Int(tensors[3]);
  const operators::Launch* launch = model_.LaunchOf(host);
  const bool described = node != nullptr && launch != nullptr && launch->attributes != 0;
  row_.Int(described ? Id(model_.host.NameOf(launch->attributes)) : none);
  row_.Int(node == nullptr ? none : Id(node->unaging ? "static" : "dynamic"));
  row_.Int(node == nullptr ? none : Id(node->hf32 ? "YES" : "NO"));
  row_.Int(none).Int(none);  // grid, block
  return out.Add(id, row_.End());
}

Status OperatorWriter::WriteOperators() {
  KeyedLoader out = KeyedOf(OperatorTable::kComputeTaskInfo);
  CellLoader schedules = CellsOf(OperatorTable::kCommunicationScheduleTaskInfo);
  int64_t next = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_.NumberAt(i) != next) continue;  // not its first execution
    const int64_t id = ids_.task + next++;
    const HostTask* host = model_.HostOf(RowAt(i));
    if (host == nullptr || !host->compute) continue;
    const std::string_view core_type = model_.CoreType(*host);
    const std::string_view name = model_.OperatorName(*host);
    const bool schedules_only =
        name.ends_with("AicpuKernel") || model_.host.fused_communication_streams.contains(RowAt(i).stream);
    if (!schedules_only) {
      RETURN_IF_ERROR(AddOperator(out, id, *host, core_type));
      continue;
    }
    row_.Begin().Int(Id(name)).Int(id).Int(Id(core_type)).Int(Id(model_.OperatorType(*host)));
    RETURN_IF_ERROR(schedules.Add(row_.End(), 0));
  }
  RETURN_IF_ERROR(schedules.Finish());
  return out.Finish();
}

Status OperatorWriter::WriteCounters() {
  CellLoader out = CellsOf(OperatorTable::kTaskPmuInfo);
  // Ids of the columns' names, and what their values are multiplied with.
  std::map<const operators::PmuCore*, std::vector<std::pair<int64_t, double>>> names;
  const int64_t times[2] = {model_.pmu.empty() ? 0 : Id("aic_total_time"), model_.pmu.empty() ? 0 : Id("aiv_total_time")};
  const int64_t cycles[2] = {model_.pmu.empty() ? 0 : Id("aic_total_cycles"),
                             model_.pmu.empty() ? 0 : Id("aiv_total_cycles")};
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskRow& task = RowAt(i);
    const HostTask* host = model_.HostOf(task);
    const auto cores = operators::CountersOf(model_, task, host == nullptr ? HostTask{} : *host);
    if (!cores) continue;
    if (model_.device_pmu.at(task.device).group.one_core) continue;  // the table is of chips with two kinds of core
    const double mhz = model_.device_pmu.at(task.device).mhz;
    const auto add = [&](int64_t name, double value) {
      return out.Add(row_.Begin().Int(ids_.task + tasks_.NumberAt(i)).Int(name).Numeric(value).End(), 0);
    };
    for (size_t kind = 0; kind < 2; ++kind) {
      const operators::CoreCounters& counted = (*cores)[kind];
      auto& known = names[counted.core];
      for (size_t k = known.size(); k < counted.core->columns.size(); ++k) {
        const auto [name, factor] = CounterName(counted.core->columns[k].name);
        known.emplace_back(Id(name), factor);
      }
      RETURN_IF_ERROR(add(times[kind], counted.time_us * 1e3));
      RETURN_IF_ERROR(add(cycles[kind], static_cast<double>(counted.counts.cycles)));
      for (size_t k = 0; k < known.size(); ++k) {
        const auto value =
            operators::PmuValue(counted.core->columns[k], counted.counts, counted.time_us, mhz);
        if (value) RETURN_IF_ERROR(add(known[k].first, *value * known[k].second));
      }
    }
  }
  return out.Finish();
}

Status OperatorWriter::WriteApis() {
  KeyedLoader out = KeyedOf(OperatorTable::kCannApi);
  for (size_t i = 0; i < model_.host.apis.size(); ++i) {
    const operators::Api& api = model_.host.apis[i];
    const int64_t begin = model_.host.WallNs(api.begin);
    if (api.early || !model_.window.Has(begin)) continue;
    row_.Begin().Int(begin).Int(model_.host.WallNs(api.end)).Int(api.level);
    row_.Int(ThreadId(api.thread)).Key().Int(Id(model_.host.ApiName(api)));
    RETURN_IF_ERROR(out.Add(ids_.connection + static_cast<int64_t>(i), row_.End()));
  }
  return out.Finish();
}

// What the graph engine reports; each record complete, the sign of its size apart.
Status OperatorWriter::WriteMemory() {
  CellLoader out = CellsOf(OperatorTable::kNpuOpMem);
  for (const operators::MemoryRecord& record : model_.host.memory.memory) {
    const int64_t time = model_.host.WallNs(record.time);
    if (record.device_type != operators::kNpuMemory || !model_.window.Has(time)) continue;
    const bool freed = record.bytes < 0;
    const auto bytes = static_cast<uint64_t>(record.bytes);
    row_.Begin().Int(record.name == 0 ? Id(kNone) : Id(model_.host.NameOf(record.name)));
    row_.Int(static_cast<int64_t>(record.address)).Int(Id(freed ? "release" : "allocate"));
    row_.Int(static_cast<int64_t>(freed ? 0 - bytes : bytes)).Int(time);
    row_.Int(ThreadId(record.thread)).Int(static_cast<int64_t>(record.allocated));
    row_.Int(static_cast<int64_t>(record.reserved)).Int(Id("GE")).Int(record.device);
    RETURN_IF_ERROR(out.Add(row_.End(), 0));
  }
  return out.Finish();
}

}  // namespace

Status WriteOperatorRows(const OperatorTarget& to) { return OperatorWriter(to).Write(); }

}  // namespace profd::exporting
