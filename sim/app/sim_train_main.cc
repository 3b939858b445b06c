// sim_train JOB.toml FOLDER [RANK]: runs a simulated training job, one process per rank, in real
// time. With RANK this process is that rank, for launchers that start the ranks themselves.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include "base/text.h"
#include "sim/app/job.h"
#include "sim/app/machine.h"
#include "sim/app/trainer.h"
#include "sim/app/tuner.h"
#include "sim/settings.h"

namespace profd::sim::app {
namespace {

constexpr int kUsage = 2;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// As the launcher names it (docs/jobs.md), else as the file does.
std::string JobId(const Job& job) {
  for (const char* const name : {"PROFD_JOB_ID", "SLURM_JOB_ID"}) {
    std::string id = Variable(name);
    if (!id.empty()) return id;
  }
  return job.name;
}

int RunRank(const Job& job, uint32_t rank, const std::string& folder) {
  const Result<Machine> machine = Machine::FromEnvironment();
  Status status = machine.ok() ? machine->Check(job.ranks()) : machine.status();
  if (!status.ok()) {
    std::fprintf(stderr, "sim_train: %s\n", status.message().c_str());
    return kUsage;
  }
  Trainer trainer(job, *machine, {rank, static_cast<int32_t>(rank), folder, JobId(job)});
  status = trainer.Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "sim_train: rank %u: %s\n", rank, status.message().c_str());
  return 1;
}

// Each rank is the program once more: a fork of a process that has loaded the libraries would not
// do.
pid_t StartRank(const char* program, const char* job, const std::string& folder, uint32_t rank) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const std::string number = std::to_string(rank);
  ::execlp(program, program, job, folder.c_str(), number.c_str(), nullptr);
  std::perror("sim_train: exec");
  ::_exit(127);
}

// Of an earlier run: the ranks would meet its operations there.
void RemoveGroups(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("group_")) std::filesystem::remove(entry.path(), ignored);
  }
}

int RunAll(const Job& job, const char* program, const char* job_path, const std::string& folder) {
  RemoveGroups(folder);
  std::map<pid_t, uint32_t> running;
  for (uint32_t rank = 0; rank < job.ranks(); ++rank) {
    const pid_t pid = StartRank(program, job_path, folder, rank);
    if (pid < 0) {
      std::perror("sim_train: fork");
      break;
    }
    running[pid] = rank;
  }
  int result = running.size() == job.ranks() ? 0 : 1;
  bool ending = result != 0;
  for (;;) {
    // Ranks wait for each other: when one is gone, the others are of no use.
    if (ending) {
      for (const auto& [pid, rank] : running) ::kill(pid, SIGTERM);
    }
    if (running.empty()) return result;
    int status = 0;
    const pid_t ended = ::wait(&status);
    if (ended < 0) return 1;
    ending = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (ending && result == 0) {
      std::fprintf(stderr, "sim_train: rank %u ended early\n", running[ended]);
      result = 1;
    }
    running.erase(ended);
  }
}

// Under the tuning tool; -1: it is off, and the bank that it left is applied.
int TuneOrApplyBank(Job* job) {
  const std::string mode = Variable("AOE_MODE"), bank = Variable("TUNE_BANK_PATH");
  Status status;
  if (mode.empty()) {
    if (bank.empty()) return -1;
    const Result<TunedShares> shares = ReadBank(bank);
    if (shares.ok()) {
      ApplyBank(*shares, job);
      return -1;
    }
    status = shares.status();
  } else if (mode != "1" && mode != "2") {
    status = InvalidArgument("AOE_MODE must be 1 or 2");
  } else {
    TunerOptions options{mode == "1", Variable("ASCEND_WORK_PATH"), bank, Variable("REPEAT_TUNE") == "True"};
    // Not from a literal: GCC 12 warns of it without reason where it optimizes (-Wrestrict).
    if (options.work_path.empty()) options.work_path = std::string(1, '.');
    ApplySettingsOfEnvironment("tune", [&options](std::string_view key, std::string_view value) {
      return key == "operator_ms" && ParseSetting(value, 0, 3'600'000, &options.operator_ms);
    });
    status = Tune(*job, options);
    if (status.ok()) return 0;
  }
  std::fprintf(stderr, "sim_train: %s\n", status.message().c_str());
  return 1;
}

int Main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fputs("usage: sim_train JOB.toml FOLDER [RANK]\n", stderr);
    return kUsage;
  }
  Result<Job> job = LoadJob(argv[1]);
  if (!job.ok()) {
    std::fprintf(stderr, "sim_train: %s\n", job.status().message().c_str());
    return kUsage;
  }
  if (const int tuned = TuneOrApplyBank(&*job); tuned >= 0) return tuned;
  const std::string folder = argv[2];
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    std::fprintf(stderr, "sim_train: %s: %s\n", folder.c_str(), failed.message().c_str());
    return kUsage;
  }
  if (argc == 3) return RunAll(*job, argv[0], argv[1], folder);
  int64_t rank = 0;
  if (!ParseNumber(std::string_view(argv[3]), &rank) || rank < 0 || rank >= job->ranks()) {
    std::fprintf(stderr, "sim_train: RANK must be 0..%u\n", job->ranks() - 1);
    return kUsage;
  }
  return RunRank(*job, static_cast<uint32_t>(rank), folder);
}

}  // namespace
}  // namespace profd::sim::app

int main(int argc, char** argv) { return profd::sim::app::Main(argc, argv); }
