// Whose work the NPUs do, and how well profd knows; see metric_table.h. Fed by daemon/attribution.
// Joins, bounds and what each label can be: docs/jobs.md.
#pragma once

#include <array>

#include "collectors/metric_spec.h"

namespace profd {

inline constexpr auto kJobMetrics = [] {
  using enum MetricType;
  using enum MetricScope;
  return std::to_array<MetricSpec>({
      {"atlas_npu_job_info", kGauge, kDevice, "job_id,user,scheduler", "",
       "Always 1; one series for each job that uses the NPU or is mapped to it", "processes, job map directory"},
      {"atlas_npu_process_info", kGauge, kDevice, "pid,job_id,rank,user,command,framework", "",
       "Always 1; one series for each known process that uses the NPU", "processes"},
      {"atlas_npu_container_info", kGauge, kDevice, "namespace,pod,container,container_id", "",
       "Always 1; one series for each container that uses the NPU or was allocated it; pod is the pod's uid if its "
       "name is unknown", "cgroups, kubelet, container runtime"},
      // The process's first NPU (empty: not known) is a label of their own: a process on several NPUs
      // has one series, not one for each.
      {"atlas_npu_step", kGauge, kNode, "npu,job_id,rank,pid", "",
       "Training step that began last in an attached process", "step marks"},
      {"atlas_npu_steps_total", kCounter, kNode, "npu,job_id,rank,pid", "",
       "Training steps an attached process has completed since it attached", "step marks"},
      {"atlas_npu_step_duration_seconds", kGauge, kNode, "npu,job_id,rank,pid", "seconds",
       "Median of the last 16 training steps of an attached process", "step marks"},
      // While a session collects from inside the process.
      {"atlas_npu_activity_ratio", kGauge, kNode, "npu,job_id,rank,pid,kind", "ratio",
       "Share of the last 10 seconds in which the devices of a process computed (kind=computation), communicated "
       "(communication), communicated without computing (communication_not_overlapped), did neither (free)",
       "activity records"},
      {"atlas_npu_kernels_per_second", kGauge, kNode, "npu,job_id,rank,pid", "",
       "Kernels a process has completed per second, over the last 10 seconds", "activity records"},
      {"atlas_npu_longest_kernel_seconds", kGauge, kNode, "npu,job_id,rank,pid", "seconds",
       "Longest kernel of a process in the last 10 seconds; 0 without any", "activity records"},
      {"atlas_npu_steps_per_second", kGauge, kNode, "npu,job_id,rank,pid", "",
       "Training steps a process has completed per second, over the last 10 seconds", "step marks"},
      {"atlas_npu_activity_lost_records_total", kCounter, kNode, "npu,job_id,rank,pid", "",
       "Activity records of a process dropped because its ring was full", "activity records"},
      {"profd_attribution_hidden_processes", kGauge, kNode, "", "",
       "Processes without series of their own because of attribution.max_processes", "attribution"},
      {"profd_attribution_hidden_jobs", kGauge, kNode, "", "",
       "Jobs without series of their own because of attribution.max_jobs", "attribution"},
      {"profd_attribution_hidden_containers", kGauge, kNode, "", "",
       "Containers without series of their own because of attribution.max_processes", "attribution"},
      {"profd_attribution_source_up", kGauge, kNode, "source", "",
       "1 if the source's last round succeeded; there are series for sources in use only: job_map, kubelet, cri, "
       "users", "attribution"},
      {"profd_attribution_source_errors_total", kCounter, kNode, "source", "",
       "Rounds of a source that failed", "attribution"},
      {"profd_attribution_ignored_files", kGauge, kNode, "", "",
       "Files in the job map directory that name an NPU this node does not have, or that cannot be used",
       "job map directory"},
  });
}();

}  // namespace profd
