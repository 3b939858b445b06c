// What a process's environment and cgroup say about the job it belongs to. Both are written by the
// process or its launcher: hints, never proof. docs/jobs.md has the order of precedence.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd {

class RootedFs;

struct EnvironmentFacts {
  std::string job_id;       // PROFD_JOB_ID or a batch system's
  std::string slurm_job;
  std::string launcher_id;  // of the launcher's run; names a job when nothing better does
  std::optional<int> rank;
  std::optional<int> local_rank;
  int world_size = 0;
  std::vector<int> visible;     // physical ids; empty = not set
  std::optional<int> device;    // among `visible` if there are any, else physical
  std::string framework;
  // Whose environment it is: "slurm", "pbs", "lsf", "sge", "modelarts", "volcano"; empty = of none.
  std::string scheduler;
};
// `text` as in /proc/PID/environ. Never fails: what makes no sense is left out.
EnvironmentFacts ParseEnvironment(std::string_view text_untrusted);

struct CgroupFacts {
  std::string pod_uid;    // with dashes, as Kubernetes writes it
  std::string slurm_job;  // digits
  std::string container_id = {};
};
// `text` as in /proc/PID/cgroup, v1 or v2.
CgroupFacts ParseCgroup(std::string_view text_untrusted);

struct ProcessFacts {
  uint64_t start_ticks = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string command;
  EnvironmentFacts environment;
  CgroupFacts cgroup;
};
// Reads bounded amounts below `proc`. kNotFound when there is no such process (or it is a zombie); an
// environment that may not be read is an empty one. Reading an environment can wait for the process's
// own memory map: not for the control strand.
Result<ProcessFacts> ReadProcessFacts(const RootedFs& proc, pid_t pid);
// Only the start time, which never waits.
Result<uint64_t> ReadStartTicks(const RootedFs& proc, pid_t pid);

// The begin of a file, empty when it cannot be read.
std::string ReadUpTo(const RootedFs& proc, const std::string& path, size_t max_bytes);
// The value of a line in a text like /proc/PID/status; empty: there is none.
std::string_view FieldOf(std::string_view status, std::string_view name);
// The value of the line of /proc/PID/status, "Groups" for example; empty: there is none, or the process has gone.
std::string StatusField(const RootedFs& proc, pid_t pid, std::string_view name);
// Supplementary groups; of a process that has gone, none.
std::vector<uint32_t> ReadGroups(const RootedFs& proc, pid_t pid);
// As the kernel has it ('S', 'T', ...), which never waits; 0: not known.
char ReadState(const RootedFs& proc, pid_t pid);

// The job of a process that named none itself: empty if it is unknown.
std::string JobOf(const EnvironmentFacts& environment, const CgroupFacts& cgroup);
// What gave it its place: EnvironmentFacts::scheduler, "slurm" or "kubernetes" by its cgroup, "none".
std::string SchedulerOf(const EnvironmentFacts& environment, const CgroupFacts& cgroup);
// Physical ids of the devices the process was given; empty if it is unknown.
std::vector<int> DevicesOf(const EnvironmentFacts& environment);

// Letters, digits and . _ - : /, 1..128 of them: what requests take for a job id.
bool IsJobId(std::string_view text);

// "0,1,4-7" as the ASCEND_*VISIBLE_DEVICES variables take it; false when it is something else.
bool ParseDeviceList(std::string_view text, std::vector<int>* out);

}  // namespace profd
