#include "daemon/jobs/process_probe.h"

#include "driver/rooted_fs.h"

namespace profd {
namespace {

constexpr int64_t kDeadlineNs = 2 * kNsPerSecond;
constexpr size_t kQueue = 4096;

}  // namespace

TrainingProcess FromFacts(pid_t pid, const ProcessFacts& facts) {
  return {.pid = pid, .start_ticks = facts.start_ticks, .uid = facts.uid, .gid = facts.gid,
          .job_id = JobOf(facts.environment, facts.cgroup), .rank = facts.environment.rank,
          .local_rank = facts.environment.local_rank, .world_size = facts.environment.world_size,
          .framework = facts.environment.framework, .command = facts.command, .pod_uid = facts.cgroup.pod_uid,
          .slurm_job = facts.cgroup.slurm_job, .container_id = facts.cgroup.container_id,
          .scheduler = SchedulerOf(facts.environment, facts.cgroup)};
}

ProcessProbe::ProcessProbe(Strand& control, const RootedFs& proc, const Clock& clock)
    : control_(control),
      proc_(proc),
      clock_(clock),
      thread_("profd-proc", clock, {kQueue, 2 * kNsPerSecond}) {}

ProcessProbe::~ProcessProbe() = default;

template <class Found>
void ProcessProbe::Submit(const char* what, std::function<Result<Found>()> look, std::function<void(Result<Found>)> done) {
  auto answered = [&control = control_, done = std::move(done)](const Result<Found>& answer) {
    control.Post([done, answer] { done(answer); });
  };
  GuardedJob job = AskingJob<Found>(what, std::move(look), std::move(answered));
  job.deadline_steady_ns = clock_.SteadyNs() + kDeadlineNs;
  thread_.Submit(std::move(job)).Ignore();  // `done` gets the error
}

void ProcessProbe::Lookup(pid_t pid, std::function<void(Result<ProcessFacts>)> done) {
  Submit<ProcessFacts>("a look into /proc", [&proc = proc_, pid] { return ReadProcessFacts(proc, pid); }, std::move(done));
}

void ProcessProbe::LookupThreads(pid_t pid, uint64_t start_ticks, std::function<void(Result<ProcessThreads>)> done) {
  Submit<ProcessThreads>("a look at the threads of a process",
                         [&proc = proc_, pid, start_ticks] { return ReadThreads(proc, pid, start_ticks); }, std::move(done));
}

void ProcessProbe::LookupUsers(std::vector<DeviceUse> uses,
                               std::function<void(Result<std::vector<TrainingProcess>>)> done) {
  const auto look = [&proc = proc_, known = known_, uses = std::move(uses)]() -> Result<std::vector<TrainingProcess>> {
    std::vector<TrainingProcess> found;
    FactsByPid still;
    for (const DeviceUse& use : uses) {
      auto before = known->find(use.pid);
      Result<uint64_t> ticks = ReadStartTicks(proc, use.pid);
      if (!ticks.ok()) continue;
      bool same = before != known->end() && before->second.start_ticks == *ticks;
      Result<ProcessFacts> facts = same ? before->second : ReadProcessFacts(proc, use.pid);
      if (!facts.ok()) continue;
      TrainingProcess process = FromFacts(use.pid, *facts);
      process.devices = use.devices;
      process.found_by = "device process list";
      found.push_back(std::move(process));
      still.emplace(use.pid, std::move(facts).value());
    }
    *known = std::move(still);
    return found;
  };
  Submit<std::vector<TrainingProcess>>("a look at the processes that use a device", look, std::move(done));
}

void ProcessProbe::Dispose(UniqueFd descriptor) {
  auto held = std::make_shared<UniqueFd>(std::move(descriptor));
  GuardedJob job;
  job.what = "closing a descriptor that a process sent";
  job.run = [held] { held->Reset(); };
  job.deadline_steady_ns = clock_.SteadyNs() + kDeadlineNs;
  job.done = [](const Status&) {};
  thread_.Submit(std::move(job)).Ignore();
}

}  // namespace profd
