// One dump's operators, of whatever collector that records them in the process: device tasks joined with the launches
// that put them there (operator-data b.3). Writers of tables, timelines and databases read this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dump/reader.h"
#include "export/dump_info.h"
#include "export/operators/device_tasks.h"
#include "export/operators/host_tasks.h"

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
};

// Of one device; its group has no columns where there are no counters of tasks.
struct DevicePmu {
  PmuGroup group;
  double mhz = 0;  // nominal
  std::vector<std::pair<uint64_t, double>> clock;  // (count of the device, MHz): changes, by time; none: nominal
  double MhzAt(uint64_t count) const;
};

// Counters of a row.
struct RowPmu {
  PmuCounts counts;
  double mhz = 0;  // when it ended
  bool vector_core = false;
};

class Model {
 public:
  // `clock`: of the host place.
  Model(std::function<int64_t(uint64_t)> host_clock, int64_t begin_ns, bool has_details)
      : host(std::move(host_clock), begin_ns), detailed(has_details) {}

  // Takes the tasks of one device. `clock`: its counter to wall clock; those that ended before `begin_ns` are left out.
  void Join(int device, const DeviceTasks& ran, const std::function<int64_t(uint64_t)>& clock, int64_t begin_ns);
  // After it, for the same device.
  void JoinPmu(int device, const DeviceTasks& ran, DevicePmu setup);

  const HostTask* HostOf(const TaskRow& row) const {
    return row.host < 0 ? nullptr : &host_tasks.tasks[static_cast<size_t>(row.host)];
  }
  const Launch* LaunchOf(const HostTask& task) const {
    return task.launch < 0 ? nullptr : &host_tasks.launches[static_cast<size_t>(task.launch)];
  }
  const NodeRecord* NodeOf(const HostTask& task) const {
    const Launch* launch = LaunchOf(task);
    return launch == nullptr || launch->node < 0 ? nullptr : &host.nodes[static_cast<size_t>(launch->node)];
  }
  // What the row is called among the operators; only where HostTask::compute.
  std::string OperatorName(const HostTask& task) const;
  std::string OperatorType(const HostTask& task) const;  // "N/A" at level 0
  std::string CoreType(const HostTask& task) const;      // the same
  // Host type where there is one that says more than the device's.
  std::string TaskType(const TaskRow& row) const;

  HostData host;
  HostTasks host_tasks;
  bool detailed;
  std::vector<TaskRow> rows;  // in no order
  std::map<int, DevicePmu> device_pmu;
  std::vector<RowPmu> pmu;
  uint64_t ambiguous = 0;     // device tasks whose ids several launches have: left out

 private:
  const std::map<std::pair<uint16_t, uint64_t>, int32_t>& ByKey();
  std::map<std::pair<uint16_t, uint64_t>, int32_t> by_key_;
  size_t joined_from_ = 0;                // rows of the device that was joined last
  std::vector<DeviceTask> joined_tasks_;  // what they were made of
};

// Whether a file of this place belongs to the operators' records.
bool IsOperatorFile(const Place& place, std::string_view base);

struct LoadReport {
  struct File {
    const Place* place = nullptr;
    const DataFile* file = nullptr;
    uint64_t bytes = 0;  // as they are stored
    uint64_t records = 0;
    uint64_t bad_records = 0;
    uint64_t bad_bytes = 0;  // of those, and of records that are cut off
  };
  std::vector<File> files;
  std::vector<DumpInfo::Problem> problems;
};

// Null: the dump has no such records. `progress`: as FileFeeder.
std::unique_ptr<Model> LoadModel(const DumpReader& reader, const DumpInfo& info,
                                 const std::function<ClockMap(const Place&)>& clock_of,
                                 const std::function<bool(uint64_t)>& progress,
                                 LoadReport* report);

}  // namespace profd::exporting::operators
