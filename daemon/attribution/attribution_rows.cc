#include "daemon/attribution/attribution_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "collectors/metric_table.h"
#include "daemon/attribution/container_rows.h"
#include "daemon/attribution/label_text.h"

namespace profd {
namespace {

// As many of each owner's as fit: the processes of one user do not hide those of others.
template <class Item, class OwnerOf>
void OrderFairly(std::vector<Item>* items, OwnerOf owner_of) {
  std::map<decltype(owner_of(items->front())), size_t> count;
  std::vector<std::pair<size_t, Item>> turns;
  turns.reserve(items->size());
  for (Item& item : *items) {
    size_t turn = count[owner_of(item)]++;
    turns.emplace_back(turn, std::move(item));
  }
  std::ranges::stable_sort(turns, {}, [](const auto& turn) { return turn.first; });
  for (size_t i = 0; i < turns.size(); ++i) (*items)[i] = std::move(turns[i].second);
}

struct Job {
  std::string id;
  std::string user;
  std::string scheduler;
  std::set<int> devices;
};

class RowMaker {
 public:
  explicit RowMaker(const AttributionInput& input) : input_(input) {
    for (const DeviceInfo& device : input.devices) {
      physical_of_[device.id] = device.physical_id;
      logical_of_[device.physical_id] = device.id;
    }
  }

  AttributionRows Make() {
    AddProcesses();
    AddJobs();
    ContainerRows containers = DescribeContainers(input_);
    for (SeriesKey& key : containers.series) rows_.series.emplace(std::move(key), 1);
    rows_.hidden_containers = containers.hidden;
    for (const TrainingProcess& process : input_.processes) {
      rows_.process_names[process.pid] = {LabelText(process.job_id),
                                          ContainerLabel(process, input_.names)};
    }
    return std::move(rows_);
  }

 private:
  bool HasDevice(int id) const { return physical_of_.contains(id); }

  void AddProcesses() {
    std::vector<const TrainingProcess*> order;
    for (const TrainingProcess& process : input_.processes) order.push_back(&process);
    OrderFairly(&order, [](const TrainingProcess* process) { return process->uid; });
    size_t shown = std::min(order.size(), input_.max_processes);
    rows_.hidden_processes = order.size() - shown;
    for (size_t i = 0; i < shown; ++i) {
      AddProcess(*order[i]);
      AddProgress(*order[i]);
    }
  }

  void AddProcess(const TrainingProcess& process) {
    std::optional<std::string> user = input_.user_of(process.uid);
    if (!user) return;
    const std::string rank = process.rank ? std::to_string(*process.rank) : std::string();
    for (int device : process.devices) {
      if (!HasDevice(device)) continue;
      Put(MetricByName("atlas_npu_process_info"), device,
          {std::to_string(process.pid), LabelText(process.job_id), rank, LabelText(*user),
           LabelText(process.command), LabelText(process.framework)},
          1);
    }
  }

  void AddProgress(const TrainingProcess& process) {
    if (!process.attached()) return;
    std::string npu;
    for (int device : process.devices) {
      if (npu.empty() && HasDevice(device)) npu = std::to_string(physical_of_.at(device));
    }
    const std::vector<std::string> labels = {
        npu, LabelText(process.job_id), process.rank ? std::to_string(*process.rank) : std::string(),
        std::to_string(process.pid)};
    if (process.step) {
      Put(MetricByName("atlas_npu_step"), kHostDevice, labels, static_cast<double>(*process.step));
      // From the first step on, so that the first increase is seen.
      Put(MetricByName("atlas_npu_steps_total"), kHostDevice, labels,
          static_cast<double>(process.steps_done));
    }
    if (process.steps_done > 0) {
      Put(MetricByName("atlas_npu_step_duration_seconds"), kHostDevice, labels, process.step_s);
    }
    if (process.activity && !process.activity->empty()) AddActivity(process, *process.activity, labels);
  }

  void AddActivity(const TrainingProcess& process, const ActivityAccount& account,
                   const std::vector<std::string>& labels) {
    const std::pair<const char*, double> shares[] = {
        {"computation", account.computation},
        {"communication", account.communication},
        {"communication_not_overlapped", account.not_overlapped},
        {"free", account.free}};
    for (const auto& [kind, share] : shares) {
      std::vector<std::string> with_kind = labels;
      with_kind.emplace_back(kind);
      Put(MetricByName("atlas_npu_activity_ratio"), kHostDevice, std::move(with_kind), share);
    }
    Put(MetricByName("atlas_npu_kernels_per_second"), kHostDevice, labels,
        account.PerSecond(account.kernels));
    Put(MetricByName("atlas_npu_longest_kernel_seconds"), kHostDevice, labels,
        static_cast<double>(account.longest_ns) / 1e9);
    Put(MetricByName("atlas_npu_steps_per_second"), kHostDevice, labels, account.PerSecond(account.steps));
    Put(MetricByName("atlas_npu_activity_lost_records_total"), kHostDevice, labels,
        static_cast<double>(process.lost_activity));
  }

  void AddJobs() {
    std::vector<Job> jobs;
    CollectJobs(&jobs);
    CollectMappedJobs(&jobs);
    OrderFairly(&jobs, [](const Job& job) { return job.user; });
    size_t shown = std::min(jobs.size(), input_.max_jobs);
    rows_.hidden_jobs = jobs.size() - shown;
    for (size_t i = 0; i < shown; ++i) {
      for (int device : jobs[i].devices) {
        Put(MetricByName("atlas_npu_job_info"), device,
            {jobs[i].id, jobs[i].user, jobs[i].scheduler}, 1);
      }
    }
  }

  void CollectJobs(std::vector<Job>* jobs) {
    std::map<std::pair<std::string, std::string>, size_t> index;
    for (const TrainingProcess& process : input_.processes) {
      std::optional<std::string> user = input_.user_of(process.uid);
      if (process.job_id.empty() || !user) continue;
      std::pair key(LabelText(process.job_id), LabelText(*user));
      auto [at, is_new] = index.try_emplace(key, jobs->size());
      if (is_new) jobs->push_back({key.first, key.second, "none", {}});
      Job& job = (*jobs)[at->second];
      // One of its processes may have been unreadable.
      if (job.scheduler == "none" && !process.scheduler.empty()) job.scheduler = process.scheduler;
      for (int device : process.devices) {
        if (HasDevice(device)) job.devices.insert(device);
      }
    }
    std::erase_if(*jobs, [](const Job& job) { return job.devices.empty(); });
  }

  // A job of the map that processes report, too, is the same job.
  void CollectMappedJobs(std::vector<Job>* jobs) {
    const size_t by_processes = jobs->size();
    for (const auto& [npu, ids] : input_.job_map.jobs) {
      auto device = logical_of_.find(npu);
      if (device == logical_of_.end()) {
        rows_.ignored.push_back(fmt::format("{}: this node has no NPU {}", npu, npu));
        continue;
      }
      for (const std::string& id : ids) AddMapped(id, device->second, by_processes, jobs);
    }
  }

  static void AddMapped(const std::string& id, int device, size_t by_processes,
                        std::vector<Job>* jobs) {
    Job* one = nullptr;
    size_t same = 0;
    for (size_t i = 0; i < jobs->size(); ++i) {
      Job& job = (*jobs)[i];
      if (job.id != id) continue;
      if (job.devices.contains(device)) return;
      same += i < by_processes ? 1 : 0;
      if (one == nullptr) one = &job;
    }
    // Of several users that call a job so, the map does not say whose it is.
    if (one != nullptr && same <= 1) {
      one->devices.insert(device);
    } else {
      jobs->push_back({id, "", "job_map", {device}});
    }
  }

  void Put(MetricId metric, int device, std::vector<std::string> labels, double value) {
    rows_.series.insert_or_assign(SeriesKey{metric, device, std::move(labels)}, value);
  }

  const AttributionInput& input_;
  std::map<int, int> physical_of_;
  std::map<int, int> logical_of_;
  AttributionRows rows_;
};

}  // namespace

AttributionRows DescribeAttribution(const AttributionInput& input) {
  return RowMaker(input).Make();
}

std::optional<int> DeviceOfPlugin(std::span<const DeviceInfo> devices,
                                  std::string_view id_untrusted) {
  for (const DeviceInfo& device : devices) {
    if (device.uuid.empty() || !id_untrusted.starts_with(device.uuid)) continue;
    std::string_view rest = id_untrusted.substr(device.uuid.size());
    if (rest.empty() || rest.front() == '-') return device.id;
  }
  size_t dash = id_untrusted.rfind('-');
  int physical = -1;
  bool known = id_untrusted.starts_with("Ascend") || id_untrusted.starts_with("npu-");
  if (!known || dash == std::string_view::npos ||
      !ParseNumber(id_untrusted.substr(dash + 1), &physical)) {
    return std::nullopt;
  }
  for (const DeviceInfo& device : devices) {
    if (device.physical_id == physical) return device.id;
  }
  return std::nullopt;
}

}  // namespace profd
