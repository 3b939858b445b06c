#include "export/operators/model.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "export/batch.h"
#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

// A context has 16 bits beside none, which is in the highest one of a stream: where streams have it (chips 15 and 16) no
// task has a context.
template <class Task>
uint64_t JoinKey(const Task& task) {
  const uint64_t none = task.context == kNoContext ? 0x8000 : 0;
  return (task.stream ^ none) << 48 | uint64_t{task.batch} << 32 | uint64_t{task.task} << 16 | (task.context & 0xFFFF);
}

// What tasks of the host and of the device have in common.
enum class TaskNumbers {
  kBatches,  // stream, 16 bits, and how often they wrapped
  kUnique,   // 32 bits alone, the upper ones where others have the stream
  kStreams,  // as unique ones in the host's records, but stream and lower half in the device's
};

uint64_t HostKey(HostTask task, TaskNumbers numbers) {
  if (numbers == TaskNumbers::kUnique) task.stream = std::exchange(task.batch, uint16_t{0});
  if (numbers == TaskNumbers::kStreams) task.batch = 0;
  return JoinKey(task);
}

// The tasks of one device by their keys; sorted pairs, a hash table of them would take thrice the memory.
class HostKeys {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kAmbiguous = -2;

  HostKeys(const Large<HostTask>& tasks, int device, TaskNumbers numbers) {
    keys_.reserve(static_cast<size_t>(std::ranges::count(tasks, device, &HostTask::device)));
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].device == device) keys_.emplace_back(HostKey(tasks[i], numbers), static_cast<int32_t>(i));
    }
    if (!std::ranges::is_sorted(keys_)) std::ranges::sort(keys_);
  }
  // A task mostly follows the one before it of its stream: that is looked at first.
  int32_t Find(uint64_t key) {
    size_t& next = next_of_stream_[key >> 48];
    const bool follows = Has(next, key) && (next == 0 || !Has(next - 1, key));
    const size_t at = follows ? next : static_cast<size_t>(std::ranges::lower_bound(keys_, key, {}, &std::pair<uint64_t, int32_t>::first) - keys_.begin());
    if (!Has(at, key)) return kNone;
    next = at + 1;
    return Has(next, key) ? kAmbiguous : keys_[at].second;
  }

 private:
  bool Has(size_t at, uint64_t key) const { return at < keys_.size() && keys_[at].first == key; }

  Large<std::pair<uint64_t, int32_t>> keys_;
  std::unordered_map<uint64_t, size_t> next_of_stream_;
};

// A task of communication stands for its contexts, too, of which it may have many: they are none of the keys.
int32_t FindHost(const Model& model, const DeviceTask& task, HostKeys* by_key) {
  int32_t found = by_key->Find(JoinKey(task));
  if (found == HostKeys::kNone && task.context != kNoContext) {
    DeviceTask around = task;
    around.context = kNoContext;
    found = by_key->Find(JoinKey(around));
    if (found >= 0 && model.host_tasks.tasks[static_cast<size_t>(found)].contexts < 0) return HostKeys::kNone;
  }
  if (found < 0) return found;
  const int32_t contexts = model.host_tasks.tasks[static_cast<size_t>(found)].contexts;
  if (contexts < 0) return found;
  const CommunicationHostTask& host = model.host_tasks.communication[static_cast<size_t>(contexts)];
  return host.Has(model.host.communication.infos, task.context) ? found : HostKeys::kNone;
}

// Words 2 and 3 of the device's records of chips 15 and 16: a number of 32 bits (operator-data b.2), or stream and task
// (dump-format 2.12). The specifications do not agree; what the host knows more tasks of is meant. The device's tasks
// then have their stream and number where those of other chips have them.
TaskNumbers NumbersOf(const Model& model, int device, Large<DeviceTask>* tasks) {
  if (!model.host.unique_tasks) return TaskNumbers::kBatches;
  HostKeys unique(model.host_tasks.tasks, device, TaskNumbers::kUnique);
  HostKeys streams(model.host_tasks.tasks, device, TaskNumbers::kStreams);
  size_t as_unique = 0;
  size_t as_streams = 0;
  for (DeviceTask task : *tasks) {
    as_unique += unique.Find(JoinKey(task)) >= 0 ? 1 : 0;
    std::swap(task.stream, task.task);
    as_streams += streams.Find(JoinKey(task)) >= 0 ? 1 : 0;
  }
  if (as_streams <= as_unique) return TaskNumbers::kUnique;
  for (DeviceTask& task : *tasks) std::swap(task.stream, task.task);
  return TaskNumbers::kStreams;
}

constexpr uint16_t kNoBatch = 0xFFFF;

// The batches of a stream of which flips are missing on one side or the other.
struct BatchMap {
  std::vector<uint16_t> device_of;  // the device's batch, by the host's; kNoBatch: none that is known
  std::vector<bool> placed;         // by the device's batch: it is one of the host's

  uint16_t DeviceOf(uint16_t host) const {
    if (host < device_of.size()) return device_of[host];
    const size_t behind = host - device_of.size();  // the end of the stream
    return static_cast<uint16_t>(std::min<size_t>(placed.size() + behind, kNoBatch));
  }
};
using BatchMaps = std::map<uint16_t, BatchMap>;  // by stream

// The first and the last of the batches between `all` flips that a batch between some of them may be.
std::pair<size_t, size_t> BatchesBetween(std::span<const uint16_t> flips, size_t batch, std::span<const uint16_t> all) {
  const auto place = [&all](uint16_t number) { return static_cast<size_t>(std::ranges::lower_bound(all, number) - all.begin()); };
  return {batch == 0 ? 0 : place(flips[batch - 1]) + 1, batch == flips.size() ? all.size() : place(flips[batch])};
}

BatchMap MapBatches(std::span<const uint16_t> host, std::span<const uint16_t> device) {
  std::vector<uint16_t> all;
  std::ranges::set_union(host, device, std::back_inserter(all));
  std::vector<uint16_t> device_of(all.size() + 1, kNoBatch);
  for (size_t batch = 0; batch <= device.size(); ++batch) {
    const auto [first, last] = BatchesBetween(device, batch, all);
    if (first == last) device_of[first] = static_cast<uint16_t>(batch);
  }
  BatchMap made;
  made.placed.resize(device.size() + 1);
  for (size_t batch = 0; batch <= host.size(); ++batch) {
    const auto [first, last] = BatchesBetween(host, batch, all);
    // The host's flips are among its tasks: where its first ones are missing, so are the tasks before them.
    const uint16_t of_device = first == last || batch == 0 ? device_of[last] : kNoBatch;
    made.device_of.push_back(of_device);
    if (of_device != kNoBatch) made.placed[of_device] = true;
  }
  return made;
}

// Whether ids of the stream wrap within the batch, by start: it is several, for they rise in one.
bool Wraps(const Large<DeviceTask>& tasks, uint16_t stream, size_t batch) {
  const auto [begin, end] = EqualRange(tasks, std::pair(stream, batch), [](const DeviceTask& task) { return std::pair(task.stream, size_t{task.batch}); });
  const auto is_back = [](const DeviceTask& task, const DeviceTask& later) {
    return later.task < task.task || (later.task == task.task && later.context == task.context);
  };
  return std::adjacent_find(begin, end, is_back) != end;
}

// The last flips of the device are missing. What it has not run by the end of the collection is no loss, though.
bool LacksLast(std::span<const uint16_t> of_device, std::span<const uint16_t> of_host, uint16_t stream, const DeviceTasks& ran) {
  if (!of_device.empty() && of_device.back() >= of_host.back()) return false;
  return std::ranges::includes(of_host, of_device) && Wraps(ran.tasks, stream, of_device.size());
}

// Batches are counted from the first flip that is there. Where the last flips of a stream have the same number on both
// sides, others that only one side has are missing on the other one. Other different last numbers may mean that the two
// sides do not count alike, which only hardware can show.
BatchMaps MissingFlips(const HostData& host, int device, const DeviceTasks& ran) {
  BatchMaps missing;
  if (host.unique_tasks) return missing;  // they do not wrap
  std::vector<const TaskRecord*> flips;
  for (const TaskRecord& flip : host.flips) {
    if (flip.device == device) flips.push_back(&flip);
  }
  std::ranges::stable_sort(flips, {}, &TaskRecord::time);
  std::map<uint16_t, FlipNumbers> of_host;
  for (const TaskRecord* flip : flips) of_host[flip->stream].Add(flip->batch);
  for (const auto& [stream, numbers] : of_host) {
    const auto found = ran.flip_numbers.find(stream);
    const FlipNumbers of_device = found == ran.flip_numbers.end() ? FlipNumbers() : found->second;
    const std::span<const uint16_t> here = numbers.all();
    const std::span<const uint16_t> there = of_device.all();
    if (here.empty() || !of_device.increasing() || std::ranges::equal(here, there)) continue;
    const bool same_last = !there.empty() && here.back() == there.back();
    if (same_last || LacksLast(there, here, stream, ran)) missing.emplace(stream, MapBatches(here, there));
  }
  return missing;
}

// Whether the device's task may be of several batches, or of one that the host does not have.
bool IsUnplaced(const BatchMaps& missing, const DeviceTask& task) {
  if (missing.empty()) return false;
  const auto found = missing.find(task.stream);
  return found != missing.end() && task.batch < found->second.placed.size() && !found->second.placed[task.batch];
}

// Numbers the host's tasks as the device's are, whose rows all look for them by that. Those of a batch that is none of the
// device's, or is one of several that it has together, are of none.
void NumberAsDevice(const BatchMaps& missing, int device, auto* tasks) {
  if (missing.empty()) return;
  for (auto& task : *tasks) {
    const auto found = missing.find(task.stream);
    if (task.device == device && found != missing.end()) task.batch = found->second.DeviceOf(task.batch);
  }
}

}  // namespace

void Model::Join(int device, DeviceTasks ran, const std::function<ClockMap::CutTime(uint64_t)>& clock, int64_t begin_ns,
                 DevicePmu setup) {
  const TaskNumbers numbers = NumbersOf(*this, device, &ran.tasks);
  const BatchMaps missing_flips = MissingFlips(host, device, ran);
  NumberAsDevice(missing_flips, device, &host_tasks.tasks);
  NumberAsDevice(missing_flips, device, &host_tasks.communication);
  HostKeys by_key(host_tasks.tasks, device, numbers);
  // Where collecting was switched on while a graph ran, the first execution of its tasks is incomplete.
  std::unordered_map<uint64_t, uint32_t> executions;
  if (host.dynamic) {
    for (const DeviceTask& task : ran.tasks) ++executions[JoinKey(task)];
  }
  const size_t first_row = rows.size();
  rows.reserve(first_row + ran.tasks.size());
  Large<uint32_t> joined;
  joined.reserve(ran.tasks.size());
  for (size_t i = 0; i < ran.tasks.size(); ++i) {
    const DeviceTask& task = ran.tasks[i];
    TaskRow row;
    const ClockMap::CutTime end = clock(task.end);
    row.end_ns = end.ns;
    if (row.end_ns < begin_ns) continue;
    const ClockMap::CutTime start = clock(task.start);
    row.start_ns = start.ns;
    row.rest_ns = end.rest - start.rest;
    if (row.start_ns < 0 || row.end_ns < row.start_ns) {
      ++impossible;
      continue;
    }
    row.device = static_cast<int16_t>(device);
    row.stream = task.stream;
    row.task = task.task;
    row.batch = task.batch;
    row.context = task.context;
    row.type = task.type;
    row.host = FindHost(*this, task, &by_key);
    unplaced += IsUnplaced(missing_flips, task) ? 1 : 0;
    if (row.host == HostKeys::kAmbiguous) {
      ++ambiguous;
      continue;
    }
    if (numbers == TaskNumbers::kUnique) {
      row.batch = task.stream;
      row.stream = row.host < 0 ? task.task : HostOf(row)->stream;
    } else if (numbers == TaskNumbers::kStreams && row.host >= 0) {
      row.batch = HostOf(row)->batch;
    }
    if (host.dynamic && row.host >= 0 && std::exchange(executions[JoinKey(task)], 1) > 1) continue;
    rows.push_back(row);
    joined.push_back(static_cast<uint32_t>(i));
  }
  AddCommunication(device, std::span(rows).subspan(first_row), begin_ns);
  if (ran.pmu.empty()) return;
  JoinPmu(std::move(ran), joined, first_row);
  device_pmu.insert_or_assign(device, std::move(setup));
}

void Model::TieFramework() {
  if (framework == nullptr) return;
  framework_of_.assign(host.apis.size(), -1);
  std::vector<bool> looked(host.apis.size());
  for (const HostTask& task : host_tasks.tasks) {
    if (task.connection < 0 || looked[static_cast<size_t>(task.connection)]) continue;
    const auto connection = static_cast<size_t>(task.connection);
    const Api& api = host.apis[connection];
    looked[connection] = true;
    framework_of_[connection] = framework->LauncherAt(api.thread, host.WallNs(api.begin));
  }
}

std::optional<int64_t> Model::StepOf(int32_t connection) const {
  if (framework == nullptr || connection < 0) return std::nullopt;
  const int32_t op = FrameworkOf(connection);
  const int64_t t_ns = op >= 0 ? framework->operators[static_cast<size_t>(op)].begin
                               : host.WallNs(host.apis[static_cast<size_t>(connection)].begin);
  return framework->StepAt(t_ns);
}

Executions ExecutionsOf(const Model& model, int device) {
  Executions all;
  for (const TaskRow& row : model.rows) {
    if (row.device == device && row.host >= 0) all[{row.stream, row.task}].push_back(&row);
  }
  for (auto& [task, of_task] : all) std::ranges::sort(of_task, {}, &TaskRow::start_ns);
  return all;
}

// Each is of the execution whose start is next to its own.
void Model::TieCpuNodes() {
  for (auto& [device, of_device] : cpu) {
    if (of_device.records.nodes.empty()) continue;
    const Executions all = ExecutionsOf(*this, device);
    for (CpuNode& node : of_device.records.nodes) {
      const auto found = all.find({node.stream, node.task});
      if (found == all.end()) continue;
      const int64_t start_ns = of_device.clock(node.start);
      const auto apart = [start_ns](const TaskRow* row) {
        return std::max(row->start_ns, start_ns) - std::min(row->start_ns, start_ns);
      };
      const auto after = std::ranges::lower_bound(found->second, start_ns, {}, &TaskRow::start_ns);
      const auto first = after == found->second.begin() ? after : after - 1;
      const auto end = after == found->second.end() ? after : after + 1;
      node.host = (*std::ranges::min_element(first, end, {}, apart))->host;
    }
  }
}

// Its records have no times. They are of the executions of their tasks, in order, so both are cut alike and those that
// stay keep their operators.
void Model::KeepCacheOf(const std::function<bool(const TaskRow&)>& stays) {
  for (auto& [device, of_device] : cache) {
    const Executions all = ExecutionsOf(*this, device);
    std::map<Executions::key_type, size_t> executions;
    std::vector<CacheRecord> inside;
    for (const CacheRecord& record : of_device.records) {
      const Executions::key_type task(record.stream, record.task);
      const size_t number = executions[task]++;
      const auto found = all.find(task);
      if (found == all.end() || number >= found->second.size()) continue;
      if (stays(*found->second[number])) inside.push_back(record);
    }
    of_device.records = std::move(inside);
  }
}

void Model::KeepOnly(const TimeWindow& kept) {
  window = kept;
  TieCpuNodes();
  if (!kept.HasAll()) KeepCacheOf([&kept](const TaskRow& row) { return kept.Has(row.start_ns); });
  for (auto& entry : cpu) {  // clang 14 captures no structured bindings
    auto& of_device = entry.second;
    std::erase_if(of_device.records.nodes, [&](const CpuNode& node) { return !kept.Has(of_device.clock(node.start)); });
    std::erase_if(of_device.records.pipeline,
                  [&](const PipelineRecord& record) { return !kept.Has(of_device.monotonic(record.time_ns)); });
  }
  std::erase_if(rows, [&kept](const TaskRow& row) { return !kept.Has(row.start_ns); });
  std::erase_if(marks, [&kept](const DeviceMark& mark) { return !kept.Has(mark.start_ns); });
  std::erase_if(communication.tasks, [&kept](const CommunicationTask& task) { return !kept.Has(task.start_ns); });
  for (CommunicationOp& op : communication.ops) op.shown = op.shown && kept.Has(op.start_ns);
}

std::string_view Model::OperatorName(const HostTask& task) const {
  if (task.communication >= 0) return host.NameOf(host.apis[static_cast<size_t>(task.communication)].item);
  const Launch* launch = LaunchOf(task);
  if (launch == nullptr) return host.NameOf(task.kernel);
  if (const NodeRecord* node = NodeOf(task); node != nullptr && detailed) return host.NameOf(node->name);
  return host.NameOf(launch->first_name != 0 ? launch->first_name : launch->item);
}

std::string_view Model::OperatorType(const HostTask& task) const {
  if (!detailed) return kNotKnown;
  const NodeRecord* node = NodeOf(task);
  return node == nullptr ? host.NameOf(task.kernel) : host.NameOf(node->type);
}

std::string_view Model::CoreType(const HostTask& task) const {
  if (!detailed) return kNotKnown;
  const std::string_view runtime = RuntimeTypeName(host, task.type);
  const NodeRecord* node = NodeOf(task);
  int core = CoreOfKernel(runtime);
  if (task.communication >= 0 && runtime == "KERNEL_AICPU") return kCommunicationOnCpu;
  if (task.communication >= 0 && runtime == "KERNEL_AICORE") return "COMMUNICATION";
  if (node != nullptr) {
    core = static_cast<int>(node->core_type);
    // A kernel of an AI CPU that no communication call has made.
    if (core == static_cast<int>(kCommunicationCore) && runtime == "KERNEL_AICPU" && task.communication < 0) core = 1;
  }
  const std::string_view name = core < 0 ? std::string_view() : CoreTypeName(static_cast<uint32_t>(core));
  return name.empty() ? runtime : name;
}

std::string Model::TaskType(const TaskRow& row) const {
  const HostTask* task = HostOf(row);
  const std::string_view host_type = task == nullptr ? std::string_view() : RuntimeTypeName(host, task->type);
  if (!host_type.empty() && host_type != "FFTS_PLUS") return std::string(host_type);
  return row.context != kNoContext ? SubTaskTypeName(row.type) : SqeTypeName(row.type);
}

}  // namespace profd::exporting::operators
