#include "daemon/jobs/process_facts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"
#include "daemon/jobs/cgroup_container.h"
#include "driver/rooted_fs.h"
#include "proto/attach/device_environment.h"

namespace profd {
namespace {

constexpr size_t kMaxEnvironment = 256 << 10;
constexpr size_t kMaxCgroup = 16 << 10;
constexpr size_t kMaxStat = 4096;
constexpr size_t kMaxCommand = 64;
constexpr size_t kMaxArguments = 4096;  // a script's name is among the first
constexpr size_t kMaxId = 128;
constexpr int kMaxRank = 1 << 24;
constexpr int kMaxDevice = 1023;
constexpr size_t kMaxVisible = 64;

// In order: the first that is set and makes sense counts.
constexpr std::array kJobNames = {"PROFD_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID",
                                  "LSB_JOBID",    "JOB_ID",       "MA_JOB_ID"};
constexpr std::array kLauncherNames = {"TORCHELASTIC_RUN_ID", "OMPI_MCA_ess_base_jobid",
                                       "PMIX_NAMESPACE", "PMI_JOBID", "RANK_TABLE_FILE"};
// A launcher that starts workers of its own below srun numbers them itself: its word goes first.
constexpr std::array kRankNames = {"RANK",      "RANK_ID",  "OMPI_COMM_WORLD_RANK",
                                   "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
constexpr std::array kWorldNames = {"WORLD_SIZE", "RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                    "SLURM_NTASKS"};

bool IsIdChar(char c) {
  return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-' || c == ':' || c == '/';
}

bool IsNumber(std::string_view text) { return text.size() <= 20 && IsDigits(text); }

// The entries of an environment block, by name.
class Variables {
 public:
  explicit Variables(std::string_view text) {
    for (std::string_view entry; NextPart(&text, '\0', &entry);) {
      size_t equals = entry.find('=');
      if (equals != std::string_view::npos && equals > 0) entries_.push_back(entry);
    }
  }
  // Empty when it is not set.
  std::string_view Get(std::string_view name) const {
    for (std::string_view entry : entries_) {
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
        return Trim(entry.substr(name.size() + 1));
      }
    }
    return {};
  }
  bool Has(std::string_view name) const { return !Get(name).empty(); }
  template <size_t n>
  std::optional<int> Number(const std::array<const char*, n>& names, int most) const {
    for (const char* name : names) {
      int value = -1;
      if (ParseNumber(Get(name), &value) && value >= 0 && value <= most) return value;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string_view> entries_;
};

// Launchers write what they like ("prterun-host-12@1"): what no job id may hold becomes '-'.
std::string LauncherId(const Variables& variables) {
  for (const char* name : kLauncherNames) {
    std::string_view value = variables.Get(name);
    if (std::string_view(name) == "RANK_TABLE_FILE") {
      // Its name alone: a path from a process' environment is never opened.
      value = BaseName(value);
      value = value.substr(0, value.rfind('.'));
    }
    if (value.empty() || value == "none" || value.size() > kMaxId) continue;
    std::string id(value);
    std::replace_if(id.begin(), id.end(), [](char c) { return !IsIdChar(c); }, '-');
    return id;
  }
  return {};
}

std::string FrameworkOf(const Variables& variables) {
  for (const char* name : {"MS_ROLE", "MS_SCHED_HOST", "MS_WORKER_NUM"}) {
    if (variables.Has(name)) return "mindspore";
  }
  for (const char* name : {"TORCHELASTIC_RUN_ID", "TORCH_DEVICE_BACKEND_AUTOLOAD"}) {
    if (variables.Has(name)) return "pytorch";
  }
  return {};
}

std::string SchedulerIn(const Variables& variables) {
  struct SchedulerVariable {
    const char* name;
    const char* scheduler;
  };
  constexpr std::array kSchedulerVariables = {SchedulerVariable{"SLURM_JOB_ID", "slurm"},    SchedulerVariable{"PBS_JOBID", "pbs"},
                                 SchedulerVariable{"LSB_JOBID", "lsf"},         SchedulerVariable{"SGE_TASK_ID", "sge"},
                                 SchedulerVariable{"MA_JOB_ID", "modelarts"},   SchedulerVariable{"VC_TASK_INDEX", "volcano"},
                                 SchedulerVariable{"VK_TASK_INDEX", "volcano"}};
  for (const SchedulerVariable& sign : kSchedulerVariables) {
    if (variables.Has(sign.name)) return sign.scheduler;
  }
  return {};
}

void ReadCgroupPath(std::string_view path, CgroupFacts* facts) {
  bool slurm = false;
  bool kubernetes = false;
  for (std::string_view component; NextPart(&path, '/', &component);) {
    kubernetes = kubernetes || IsAbovePods(component);
    if (kubernetes && facts->pod_uid.empty()) facts->pod_uid = PodUidOf(component);
    if (slurm && component.starts_with("job_") && facts->slurm_job.empty() &&
        IsNumber(component.substr(4))) {
      facts->slurm_job = component.substr(4);
    }
    // "slurm", "slurm_<node>", "slurmstepd.scope", "<node>_slurmstepd.scope".
    slurm = slurm || component.starts_with("slurm") || component.ends_with("_slurmstepd.scope");
  }
}

// Of /proc/PID/stat, from field 3 on: the name in parentheses may hold anything; what follows the last one is plain. Empty:
// there is no name.
std::string_view BehindName(std::string_view stat) {
  const size_t end = stat.rfind(')');
  return end == std::string_view::npos ? std::string_view() : stat.substr(end + 1);
}

// Field 22.
Result<uint64_t> StartTicks(std::string_view stat) {
  std::string_view rest = BehindName(stat);
  if (rest.empty()) return Internal("stat of a process without its name");
  std::string_view state = NextToken(&rest);
  if (state == "Z" || state == "X") return NotFound("the process has ended");
  std::string_view token;
  for (int field = 4; field <= 22; ++field) token = NextToken(&rest);
  uint64_t ticks = 0;
  if (!ParseNumber(token, &ticks)) return Internal("stat of a process without its start time");
  return ticks;
}

std::string CommandOf(std::string_view stat) {
  size_t begin = stat.find('(');
  size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end <= begin) return {};
  return AsciiOnly(stat.substr(begin + 1, end - begin - 1), kMaxCommand);
}

// The script an interpreter runs is more useful than the interpreter's name. Empty: it runs none.
std::string ScriptOf(std::string_view arguments) {
  bool first = true;
  for (std::string_view argument; NextPart(&arguments, '\0', &argument);) {
    if (std::exchange(first, false)) continue;
    if (argument == "-c" || argument.empty()) return {};
    if (argument == "-X" || argument == "-W") {
      NextPart(&arguments, '\0', &argument);
    } else if (argument == "-m" || !argument.starts_with('-')) {
      if (argument == "-m") argument = arguments.substr(0, arguments.find('\0'));
      return AsciiOnly(BaseName(argument), kMaxCommand);
    }
  }
  return {};
}

// As much as there is, up to `max_bytes`: an environment may be longer than we care for.
}  // namespace

bool IsJobId(std::string_view text) {
  return !text.empty() && text.size() <= kMaxId && std::ranges::all_of(text, IsIdChar);
}

bool ParseDeviceList(std::string_view text, std::vector<int>* out) {
  out->clear();
  for (std::string_view item; NextPart(&text, ',', &item);) {
    item = Trim(item);
    size_t dash = item.find('-');
    int first = -1;
    int last = -1;
    if (!ParseNumber(item.substr(0, dash), &first)) return false;
    last = first;
    if (dash != std::string_view::npos && !ParseNumber(item.substr(dash + 1), &last)) return false;
    if (first < 0 || last < first || last > kMaxDevice) return false;
    for (int id = first; id <= last; ++id) {
      if (out->size() == kMaxVisible) return false;
      if (std::ranges::find(*out, id) == out->end()) out->push_back(id);
    }
  }
  return !out->empty();
}

EnvironmentFacts ParseEnvironment(std::string_view text_untrusted) {
  Variables variables(text_untrusted);
  EnvironmentFacts facts;
  for (const char* name : kJobNames) {
    if (facts.job_id.empty() && IsJobId(variables.Get(name))) facts.job_id = variables.Get(name);
  }
  if (IsNumber(variables.Get("SLURM_JOB_ID"))) facts.slurm_job = variables.Get("SLURM_JOB_ID");
  facts.launcher_id = LauncherId(variables);
  facts.rank = variables.Number(kRankNames, kMaxRank);
  facts.local_rank = variables.Number(attach::kLocalRankVariables, kMaxRank);
  facts.world_size = variables.Number(kWorldNames, kMaxRank).value_or(0);
  facts.device = variables.Number(attach::kDeviceVariables, kMaxDevice);
  for (const char* name : attach::kVisibleDevicesVariables) {
    if (facts.visible.empty() && !ParseDeviceList(variables.Get(name), &facts.visible)) {
      facts.visible.clear();
    }
  }
  facts.framework = FrameworkOf(variables);
  facts.scheduler = SchedulerIn(variables);
  return facts;
}

CgroupFacts ParseCgroup(std::string_view text_untrusted) {
  CgroupFacts facts;
  std::string_view line;
  while (NextLine(&text_untrusted, &line)) {
    // hierarchy-ID:controller-list:path
    size_t colon = line.find(':');
    colon = colon == std::string_view::npos ? colon : line.find(':', colon + 1);
    if (colon == std::string_view::npos) continue;
    ReadCgroupPath(line.substr(colon + 1), &facts);
    if (facts.container_id.empty()) facts.container_id = ContainerOfPath(line.substr(colon + 1)).id;
  }
  return facts;
}

std::string JobOf(const EnvironmentFacts& environment, const CgroupFacts& cgroup) {
  for (const std::string* id : {&environment.job_id, &cgroup.slurm_job, &cgroup.pod_uid}) {
    if (!id->empty()) return *id;
  }
  return environment.launcher_id;
}

std::string SchedulerOf(const EnvironmentFacts& environment, const CgroupFacts& cgroup) {
  if (!environment.scheduler.empty()) return environment.scheduler;
  if (!cgroup.slurm_job.empty()) return "slurm";
  return cgroup.pod_uid.empty() ? "none" : "kubernetes";
}

std::vector<int> DevicesOf(const EnvironmentFacts& e) {
  const std::optional<int>& which = e.device ? e.device : e.local_rank;
  if (e.visible.empty()) return which ? std::vector<int>{*which} : std::vector<int>{};
  // A process that sees several and numbers itself among them uses one; otherwise it may use all.
  if (which && static_cast<size_t>(*which) < e.visible.size()) {
    return {e.visible[static_cast<size_t>(*which)]};
  }
  return e.visible;
}

Result<uint64_t> ReadStartTicks(const RootedFs& proc, pid_t pid) {
  std::array<char, kMaxStat> buffer{};
  Result<size_t> size = proc.ReadInto(fmt::format("{}/stat", pid), buffer);
  if (!size.ok()) return size.status();
  return StartTicks({buffer.data(), *size});
}

Result<ProcessFacts> ReadProcessFacts(const RootedFs& proc, pid_t pid) {
  std::string base = std::to_string(pid);
  // Everything below is of the process that had the pid when its directory was opened, or fails.
  Result<UniqueFd> directory = proc.Open(base);
  if (!directory.ok()) return directory.status();
  struct stat info {};
  if (::fstat(directory->get(), &info) != 0) return Status::FromErrno(errno, "stat of a process");
  std::string stat = ReadUpTo(proc, base + "/stat", kMaxStat);
  Result<uint64_t> ticks = StartTicks(stat);
  if (!ticks.ok()) return ticks.status();
  ProcessFacts facts;
  facts.start_ticks = *ticks;
  facts.uid = info.st_uid;
  facts.gid = info.st_gid;
  facts.command = CommandOf(stat);
  if (facts.command.starts_with("python")) {
    std::string script = ScriptOf(ReadUpTo(proc, base + "/cmdline", kMaxArguments));
    if (!script.empty()) facts.command = std::move(script);
  }
  facts.cgroup = ParseCgroup(ReadUpTo(proc, base + "/cgroup", kMaxCgroup));
  facts.environment = ParseEnvironment(ReadUpTo(proc, base + "/environ", kMaxEnvironment));
  if (facts.cgroup.slurm_job.empty()) facts.cgroup.slurm_job = facts.environment.slurm_job;
  // The pid may have changed hands meanwhile: then this was of two processes.
  Result<uint64_t> after = ReadStartTicks(proc, pid);
  if (!after.ok()) return after.status();
  if (*after != facts.start_ticks) return NotFound("the process has ended");
  return facts;
}

std::string ReadUpTo(const RootedFs& proc, const std::string& path, size_t max_bytes) {
  std::string text(max_bytes, '\0');
  Result<size_t> size = proc.ReadInto(path, {text.data(), text.size()});
  text.resize(size.ok() ? *size : 0);
  return text;
}

std::string_view FieldOf(std::string_view status, std::string_view name) {
  for (std::string_view line; NextLine(&status, &line);) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) return Trim(line.substr(name.size() + 1));
  }
  return {};
}

std::string StatusField(const RootedFs& proc, pid_t pid, std::string_view name) {
  constexpr size_t kMaxStatus = 16 * 1024;
  return std::string(FieldOf(ReadUpTo(proc, std::to_string(pid) + "/status", kMaxStatus), name));
}

std::vector<uint32_t> ReadGroups(const RootedFs& proc, pid_t pid) {
  std::istringstream words(StatusField(proc, pid, "Groups"));
  return {std::istream_iterator<uint32_t>(words), std::istream_iterator<uint32_t>()};
}

char ReadState(const RootedFs& proc, pid_t pid) {
  const std::string stat = ReadUpTo(proc, fmt::format("{}/stat", pid), kMaxStat);
  std::string_view rest = BehindName(stat);
  const std::string_view state = NextToken(&rest);
  return state.size() == 1 ? state.front() : '\0';
}

}  // namespace profd
