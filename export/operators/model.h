// One dump's operators, of whatever collector that records them in the process: device tasks joined with the launches
// that put them there (operator-data b.3). Writers of tables, timelines and databases read this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "dump/reader.h"
#include "export/batch.h"
#include "export/clock_map.h"
#include "export/dump_info.h"
#include "export/operators/cpu_records.h"
#include "export/operators/device_marks.h"
#include "export/operators/device_tasks.h"
#include "export/operators/framework.h"
#include "export/operators/host_tasks.h"
#include "export/operators/overlap.h"

namespace profd::exporting {
struct RowFilter;
}

namespace profd::exporting::operators {

// A task as it ran.
struct TaskRow {
  int64_t start_ns = 0;  // wall clock
  int64_t end_ns = 0;
  int32_t host = -1;  // index of HostTasks::tasks; -1: the host's records do not have it
  uint32_t context = kNoContext;
  int16_t device = 0;
  uint16_t stream = 0;
  uint16_t task = 0;
  uint16_t batch = 0;
  uint16_t type = 0;       // as DeviceTask
  int32_t pmu = -1;        // index of Model::pmu; -1: no counters
  int32_t other_pmu = -1;  // of the other kind of core, in a task that has both
  float rest_ns = 0;       // what the duration has more than end_ns - start_ns, which are cut to ns

  double duration_ns() const { return static_cast<double>(end_ns - start_ns) + static_cast<double>(rest_ns); }
};

// Of one device; its group has no columns where there are no counters of tasks.
struct DevicePmu {
  PmuGroup group;
  double mhz = 0;  // nominal
  bool consistent = true;  // both kinds of core have a known group and as many events, as the vendor's analyser demands
  std::vector<std::pair<uint64_t, double>> clock;  // (count of the device, MHz): changes, by time; none: nominal
  double MhzAt(uint64_t count) const;
};

// The second level of cache, by task.
struct DeviceCache {
  std::vector<CacheRecord> records;
  std::vector<uint32_t> events;
  int chip = 0;
};

// What the AI CPU of one device reports.
struct DeviceCpu {
  CpuRecords records;
  std::function<int64_t(uint64_t)> clock;      // count of the device to wall clock, ns
  std::function<int64_t(uint64_t)> monotonic;  // the host's monotonic clock, the same
};

// What is made of a model at its first use; any thread.
template <class Made, class From>
class OnceMade {
 public:
  const Made& Of(const From& from, Made (*make)(const From&)) const {
    MutexLock lock(mutex_);
    if (!made_) made_ = make(from);
    return *made_;
  }

 private:
  mutable Mutex mutex_;
  mutable std::optional<Made> made_ GUARDED_BY(mutex_);
};

class Model {
 public:
  explicit Model(HostData records, bool has_details) : host(std::move(records)), detailed(has_details) {}

  // Takes the tasks of one device, and their counters where there are some. `clock`: its counter to wall clock; those
  // that ended before `begin_ns` are left out.
  void Join(int device, DeviceTasks ran, const std::function<ClockMap::CutTime(uint64_t)>& clock, int64_t begin_ns,
            DevicePmu setup);

  const HostTask* HostOf(const TaskRow& row) const { return TaskAt(row.host); }
  const HostTask* HostOf(const CpuNode& node) const { return TaskAt(node.host); }
  const Launch* LaunchOf(const HostTask& task) const {
    return task.launch < 0 ? nullptr : &host_tasks.launches[static_cast<size_t>(task.launch)];
  }
  const NodeRecord* NodeOf(const HostTask& task) const {
    const Launch* launch = LaunchOf(task);
    return launch == nullptr || launch->node < 0 ? nullptr : &host_tasks.nodes[static_cast<size_t>(launch->node)];
  }
  // Of rows and tasks, as shown.
  uint32_t TaskId(const auto& task) const { return host.unique_tasks ? uint32_t{task.batch} << 16 | task.task : task.task; }
  uint32_t BatchId(const auto& task) const { return host.unique_tasks ? 0 : task.batch; }
  const CommunicationLaunch& LaunchOf(const CommunicationOp& op) const {
    return host_tasks.communication_launches[static_cast<size_t>(op.launch)];
  }
  const CommunicationOpInfo* InfoOf(const CommunicationOp& op) const {
    const int32_t info = LaunchOf(op).op_info;
    return info < 0 ? nullptr : &host.communication.op_infos[static_cast<size_t>(info)];
  }
  const CommunicationInfo* InfoOf(const CommunicationTask& task) const {
    return task.info < 0 ? nullptr : &host.communication.infos[static_cast<size_t>(task.info)];
  }
  const CommunicationHostTask& HostOf(const CommunicationTask& task) const {
    return host_tasks.communication[static_cast<size_t>(task.host)];
  }
  const CopyInfo* CopyOf(const HostTask& task) const {
    return task.copy < 0 ? nullptr : &host.communication.copies[static_cast<size_t>(task.copy)];
  }
  // Finds the framework's operators that the launches were made by.
  void TieFramework();
  // The operator that made what `connection` (of a task or a communication launch) launches, an index of
  // FrameworkData::operators; -1: not known.
  int32_t FrameworkOf(int32_t connection) const {
    return framework_of_.empty() || connection < 0 ? -1 : framework_of_[static_cast<size_t>(connection)];
  }
  // The framework's step in which that was launched; none: not known.
  std::optional<int64_t> StepOf(int32_t connection) const;
  // "hcom_allReduce__241_19_1": launch, end of the group's hash, number in the group, how often it has run by then.
  std::string NameOf(const CommunicationOp& op) const;
  std::string TypeOf(const CommunicationOp& op) const;  // "hcom_allReduce_"; "N/A": not known

  // Leaves out what begins outside. APIs and memory stay: others are joined with them, and who shows them asks `window`.
  void KeepOnly(const TimeWindow& kept);

  // Leaves out all but so many operators and kinds of collectives, those that took longest, and the calls that launched
  // them. Once, behind KeepOnly.
  void KeepLongest(size_t count);

  // What runs before an operator is what its wait begins with, though it may be left out.
  struct Executed {
    int device = -1;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  // The one before what begins on the device at that time. Null: it is the first, or KeepLongest left nothing out.
  const Executed* ExecutedBefore(int device, int64_t start_ns) const;

  // What the row is called among the operators; only where HostTask::compute.
  std::string_view OperatorName(const HostTask& task) const;
  std::string_view OperatorType(const HostTask& task) const;  // "N/A" at level 0
  std::string_view CoreType(const HostTask& task) const;      // the same
  // Host type where there is one that is more precise than the device's.
  std::string TaskType(const TaskRow& row) const;

  HostData host;
  HostTasks host_tasks;
  bool detailed;
  Large<TaskRow> rows;  // in no order
  std::map<int, DevicePmu> device_pmu;
  Large<PmuRecord> pmu;
  PmuCountsTable pmu_counts;  // of these
  Communication communication;
  std::map<int, DeviceCpu> cpu;  // by device
  std::map<int, DeviceCache> cache;
  std::vector<DeviceMark> marks;  // of the application; by number
  std::unique_ptr<FrameworkData> framework;  // null: there is none
  TimeWindow window;  // as KeepOnly
  OnceMade<std::map<int, Overlap>, Model> overlaps;  // for OverlapsOf
  size_t longest = 0;  // as KeepLongest; 0: all
  Large<Executed> before_cut;  // with KeepLongest the operators and collectives of before, by device and start
  uint64_t ambiguous = 0;  // device tasks whose ids several launches have: left out
  uint64_t stray_counters = 0;  // PMU records of no task that is known: left out
  uint64_t unplaced = 0;  // device tasks that stay without a launch: flips of their stream are missing
  uint64_t impossible = 0;  // device tasks that begin before 1970, or end before they begin: left out

 private:
  const HostTask* TaskAt(int32_t number) const {
    return number < 0 ? nullptr : &host_tasks.tasks[static_cast<size_t>(number)];
  }
  // Both before the rows that do not stay are gone.
  void KeepCacheOf(const std::function<bool(const TaskRow&)>& stays);
  void TieCpuNodes();
  void AddCommunication(int device, std::span<const TaskRow> ran, int64_t begin_ns);
  size_t TakePmu(DeviceTasks* ran);
  // `joined`: the indices of the tasks that the rows from `first_row` on were made of.
  void JoinPmu(DeviceTasks ran, std::span<const uint32_t> joined, size_t first_row);
  void JoinPmuInOrder(DeviceTasks ran, std::span<const uint32_t> joined, size_t first_row);

  std::vector<int32_t> framework_of_;  // by connection; empty: no framework
};

// The rows of a device whose launches are known, of each stream and task by their start.
using Executions = std::map<std::pair<uint16_t, uint16_t>, std::vector<const TaskRow*>>;
Executions ExecutionsOf(const Model& model, int device);

// Whether a file of this place belongs to the operators' records.
bool IsOperatorFile(const Place& place, std::string_view base);
// One of those that LoadRequest::details is about.
bool IsDetailFile(const Place& place, std::string_view base);

struct LoadReport {
  struct File {
    int device = -1;  // -1: the host
    std::string base;
    uint64_t bytes = 0;  // as they are stored
    uint64_t records = 0;
    uint64_t bad_records = 0;
    uint64_t bad_bytes = 0;  // of those, and of records that are cut off
  };
  std::vector<File> files;
  std::vector<DumpInfo::Problem> problems;
};

// The dictionary of the host's records alone. Null: there is none.
std::shared_ptr<const HostData> LoadNames(const DumpReader& reader, const DumpInfo& info);

struct LoadRequest {
  const DumpReader& reader;
  const DumpInfo& info;
  const RowFilter& filter;  // devices, and what begins in the window
  bool runtime_apis = true;
  bool details = true;  // counters and shapes
  bool only_framework = false;  // of a framework's profiler its operators and steps, nothing else
  size_t longest = 0;  // as Model::KeepLongest; 0: all
  std::function<ClockMap(const Place&)> clock_of;
  std::function<bool(uint64_t)> progress;  // as FileFeeder; any thread
};

// Null: the dump has no such records. The host's and the devices' files are read by a thread each.
std::unique_ptr<Model> LoadModel(const LoadRequest& order, LoadReport* report);

}  // namespace profd::exporting::operators
