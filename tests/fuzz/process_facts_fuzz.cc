// Input: an environment block, a 0xFF, a cgroup file. Whatever a process has in them, the job id is one
// that requests take, and numbers stay in their ranges.
#include <algorithm>

#include "daemon/jobs/process_facts.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {

void fuzz::Run(Input input) {
  const std::string_view text = input.rest();
  size_t end = std::min(text.find('\xff'), text.size());
  EnvironmentFacts environment = ParseEnvironment(text.substr(0, end));
  CgroupFacts cgroup = ParseCgroup(text.substr(std::min(end + 1, text.size())));
  std::string job = JobOf(environment, cgroup);
  FUZZ_EXPECT(job.empty() || IsJobId(job));
  FUZZ_EXPECT(environment.world_size >= 0);
  FUZZ_EXPECT(!environment.rank || *environment.rank >= 0);
  FUZZ_EXPECT(cgroup.pod_uid.size() <= 36);
  FUZZ_EXPECT(cgroup.container_id.size() <= 64);
  FUZZ_EXPECT(cgroup.container_id.empty() || IsJobId(cgroup.container_id));
  FUZZ_EXPECT(!SchedulerOf(environment, cgroup).empty());
  FUZZ_EXPECT(cgroup.slurm_job.empty() || IsJobId(cgroup.slurm_job));
  FUZZ_EXPECT(environment.slurm_job.empty() || IsJobId(environment.slurm_job));
  std::vector<int> devices = DevicesOf(environment);
  FUZZ_EXPECT(devices.size() <= 64);
  for (int device : devices) FUZZ_EXPECT(device >= 0);
}

}  // namespace profd
