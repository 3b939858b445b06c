// Whose work an NPU does: jobs, processes and containers as info series in the metric store
// (atlas_npu_job_info, atlas_npu_process_info, atlas_npu_container_info), to be joined by npu with what
// is measured. Sources: training processes the daemon knows (JobDirectory), their cgroups, the
// scheduler's job map folder, the kubelet's pod-resources socket, the container runtime's socket.
// Whatever may wait (sockets, files, the user database) is done on threads of its own with deadlines: a
// source that hangs or lies costs its own labels and nothing else. Series of what has gone disappear with
// the next round. Lives on the control strand. docs/jobs.md
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "collectors/collector.h"
#include "collectors/process_names.h"
#include "daemon/config/daemon_config.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/metrics/metric_store.h"

namespace profd {

class Attribution {
 public:
  struct Deps {
    Strand& control;
    const Clock& clock;
    const Host& host;  // its devices, and its view of /proc
    const JobDirectory& jobs;
    MetricStore& store;
    ProcessNames* names_or_null = nullptr;  // receives the names of processes
    // A source that fails or works again, a file of the job map that is not used: once each.
    std::function<void(const std::string& source, const std::string& what)> notice = nullptr;
    uid_t own_uid = 0;  // whose sockets are trusted, besides root's
    // NPUs with metrics that are not among the host's devices.
    std::function<std::vector<DeviceInfo>()> more_devices = nullptr;
  };

  Attribution(Deps deps, const DaemonConfig& config);
  ~Attribution();

  // About once a second: takes in what changed and timestamps the series.
  void Tick();
  // No further rounds; before the strand's executor stops.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
