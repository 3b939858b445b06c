#include "client/commands/tune_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "analysis/run.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/cli_message.h"
#include "client/parse.h"

namespace profd::client {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostNumber = 4096;
constexpr size_t kScriptBytes = 1 << 20;
constexpr size_t kMostScripts = 8;
constexpr const char* kVariables[] = {"AOE_MODE", "ASCEND_DEVICE_ID", "TUNE_BANK_PATH", "TE_PARALLEL_COMPILER", "TUNING_PARALLEL_NUM", "REPEAT_TUNE",
                                      "PROFILING_MODE", "PROFILING_OPTIONS", "RANK_SIZE", "WORLD_SIZE", "ASCEND_OPP_PATH", "ASCEND_TOOLKIT_HOME",
                                      "ASCEND_HOME_PATH", "LD_LIBRARY_PATH"};

// "12G", "512M", "1.5T", "4096B". Without a unit it is not known what was meant.
bool ParseSize(std::string_view text, uint64_t* bytes) {
  constexpr std::string_view kLetters = "KMGT";
  const std::string_view whole = text;
  if (text.ends_with('B')) text.remove_suffix(1);
  if (text.ends_with('i')) text.remove_suffix(1);
  double factor = 1;
  const bool in_bytes = text.size() < whole.size();
  if (const size_t power = text.empty() ? std::string_view::npos : kLetters.find(text.back()); power != std::string_view::npos) {
    factor = std::pow(1024.0, static_cast<double>(power) + 1);
    text.remove_suffix(1);
  } else if (!in_bytes) {
    return false;
  }
  double number = 0;
  if (!ParseNumber(text, &number) || !(number > 0) || !(number * factor < 1e18)) return false;
  *bytes = static_cast<uint64_t>(number * factor);
  return true;
}

class RequestReader {
 public:
  RequestReader(const TuneCommand& command, std::vector<std::string>* problems) : command_(command), problems_(*problems) {}

  TuneRequest Read() {
    ReadMode();
    ReadDevices();
    if (command_.model_memory) {
      uint64_t bytes = 0;
      if (!ParseSize(*command_.model_memory, &bytes)) Wrong("--model-memory", *command_.model_memory, "a size with its unit, for example 12G");
      request_.model_bytes = bytes;
    }
    request_.parallel_given = Number("--parallel-num", command_.parallel_num, "TUNING_PARALLEL_NUM", &request_.parallel_num);
    Number("--te-parallel", command_.te_parallel, "TE_PARALLEL_COMPILER", &request_.te_parallel);
    Number("--processes", command_.processes, nullptr, &request_.processes);
    if (command_.te_parallel) request_.variables["TE_PARALLEL_COMPILER"] = std::to_string(request_.te_parallel);
    ReadBank();
    if (command_.repeat) {
      const bool yes = *command_.repeat == "true" || *command_.repeat == "True";
      if (!yes && *command_.repeat != "false" && *command_.repeat != "False") Wrong("--repeat", *command_.repeat, "true or false");
      request_.variables["REPEAT_TUNE"] = yes ? "True" : "False";
    }
    request_.job = command_.job.value_or("");
    request_.command = command_.command;
    return std::move(request_);
  }

 private:
  void Wrong(std::string_view flag, std::string_view value, std::string_view what) {
    problems_.push_back(fmt::format("{} \"{}\": {}", flag, value, what));
  }

  void ReadMode() {
    const std::string variable = command_.surroundings.Variable("AOE_MODE");
    if (command_.mode) {
      if (*command_.mode != "operator" && *command_.mode != "subgraph") Wrong("--mode", *command_.mode, "operator or subgraph");
      request_.subgraph = *command_.mode == "subgraph";
    } else if (!variable.empty() && variable != "1" && variable != "2") {
      Wrong("AOE_MODE", variable, "1 (subgraph) or 2 (operator); --mode comes before it");
    } else {
      request_.subgraph = variable == "1";
    }
    request_.variables["AOE_MODE"] = request_.subgraph ? "1" : "2";
  }

  void ReadDevices() {
    const std::string variable = command_.surroundings.Variable("ASCEND_DEVICE_ID");
    request_.devices_given = command_.devices.has_value() || !variable.empty();
    const Result<std::vector<uint32_t>> devices = ParseDevices(command_.devices ? *command_.devices : variable.empty() ? "0" : variable);
    if (!devices.ok()) {
      problems_.push_back(fmt::format("{} {}", command_.devices ? "--devices" : "ASCEND_DEVICE_ID", devices.status().message()));
      return;
    }
    request_.devices = *devices;
    if (request_.devices.size() == 1) request_.variables["ASCEND_DEVICE_ID"] = std::to_string(request_.devices.front());
  }

  void ReadBank() {
    const std::string bank = command_.bank.value_or(command_.surroundings.Variable("TUNE_BANK_PATH"));
    if (!command_.bank && bank.empty()) return;
    std::error_code error;  // an empty name; no working directory any more
    const fs::path path = fs::absolute(bank, error).lexically_normal();
    if (error) return Wrong(command_.bank ? "--bank" : "TUNE_BANK_PATH", bank, "an absolute path of a folder");
    request_.variables["TUNE_BANK_PATH"] = path.string();
  }

  // From the flag, else the variable; whether it was given.
  bool Number(const char* flag, const std::optional<std::string>& text, const char* variable, uint64_t* value) {
    const std::string given = text ? *text : variable != nullptr ? command_.surroundings.Variable(variable) : "";
    if (given.empty() && !text) return false;
    uint64_t number = 0;
    if (!ParseNumber(std::string_view(given), &number) || number == 0 || number > kMostNumber) {
      Wrong(text ? flag : variable, given, fmt::format("a number from 1 to {}", kMostNumber));
      return false;
    }
    *value = number;
    return true;
  }

  const TuneCommand& command_;
  std::vector<std::string>& problems_;
  TuneRequest request_;
};

std::optional<uint64_t> MemoryAvailable() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::string_view rest = line;
    uint64_t kb = 0;
    if (NextToken(&rest) == "MemAvailable:" && ParseNumber(NextToken(&rest), &kb)) return kb * 1024;
  }
  return std::nullopt;
}

bool HasPythonLibrary(const fs::path& folder) {
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && ++seen < 20'000; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("libpython3") && name.find(".so") != std::string::npos) return true;
  }
  return false;
}

std::string PythonLibrary(std::string_view library_path) {
  std::vector<std::string> folders;
  for (std::string_view folder; folders.size() < 64 && NextPart(&library_path, ':', &folder);) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  for (const char* system : {"/usr/local/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"}) folders.emplace_back(system);
  const auto found = std::ranges::find_if(folders, [](const std::string& folder) { return HasPythonLibrary(folder); });
  return found == folders.end() ? "" : *found;
}

Status CanWrite(const std::string& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return Status::FromErrno(errno, folder);
  if (!S_ISDIR(facts.st_mode)) return InvalidArgument(folder + " is not a folder");
  return ::access(folder.c_str(), R_OK | W_OK | X_OK) == 0 ? Status::Ok() : Status::FromErrno(errno, folder);
}

bool IsScript(std::string_view name) {
  for (std::string_view suffix : {".py", ".sh", ".json", ".ini", ".cfg", ".yaml", ".yml"}) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

void ReadScripts(const TuneRequest& request, TuneFacts* facts) {
  for (const std::string& argument : request.command) {
    if (!IsScript(argument) || facts->script_files >= kMostScripts) continue;
    const UniqueFd fd(::open(argument.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about {};
    if (!fd.valid() || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    std::string text(kScriptBytes, '\0');
    const ssize_t got = ::read(fd.get(), text.data(), text.size());
    if (got >= 0) LookThroughScript(std::string_view(text).substr(0, static_cast<size_t>(got)), argument, facts);
  }
}

}  // namespace

TuneRequest ReadTuneRequest(const TuneCommand& command, std::vector<std::string>* problems) { return RequestReader(command, problems).Read(); }

void GatherMachine(const TuneRequest& request, const TuneSurroundings& surroundings, TuneFacts* facts) {
  for (const char* name : kVariables) {
    if (std::string value = surroundings.Variable(name); !value.empty()) facts->environment[name] = std::move(value);
  }
  facts->home = surroundings.home;
  struct statvfs disk {};
  if (!facts->home.empty() && ::statvfs(facts->home.c_str(), &disk) == 0) facts->home_free = uint64_t{disk.f_bavail} * disk.f_frsize;
  facts->memory_available = MemoryAvailable();
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts->cpus = online > 0 ? static_cast<uint64_t>(online) : 0;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  facts->cpus_allowed = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? static_cast<uint64_t>(CPU_COUNT(&allowed)) : facts->cpus;
  ReadScripts(request, facts);
  facts->python_library = PythonLibrary(surroundings.Variable("LD_LIBRARY_PATH"));
  const auto given = request.variables.find("TUNE_BANK_PATH");
  const std::string bank = given != request.variables.end() ? given->second : surroundings.Variable("TUNE_BANK_PATH");
  if (!bank.empty()) facts->bank = CanWrite(bank);
  facts->work_path = surroundings.work_path.empty() ? surroundings.working_directory : surroundings.work_path;
  if (facts->work_path.empty()) facts->work_path = ".";
  facts->work_path_state = CanWrite(facts->work_path);
}

void GatherNode(const Context& context, const TuneRequest& request, TuneFacts* facts) {
  const Result<v1::Node> node = context.api.GetNode();
  facts->node = node.status();
  if (!node.ok()) return;
  facts->caller_pid = node->caller().pid();
  for (const v1::Device& device : node->devices()) facts->devices.push_back({device.id(), device.chip(), device.chip_id(), device.problem()});
  v1::AcquireTuningLeaseRequest lease;
  for (const uint32_t device : request.devices) lease.add_devices(device);
  lease.set_job_id(request.job);
  lease.set_check_only(true);
  facts->lease = context.api.AcquireTuningLease(lease).status();
}

Result<TuneProfile> ReadTuneProfile(const std::string& path) {
  const Result<analysis::Run> run = analysis::LoadRun({path}, {});
  if (!run.ok()) return WithFetchHint(run.status(), {&path, 1}).Annotate("--profile");
  TuneProfile profile;
  profile.ranks = run->ranks.size();
  for (const auto& rank : run->ranks) {
    for (const analysis::Execution& each : rank->executions) {
      if (each.blocks != analysis::kNoBlocks) profile.most_blocks = std::max<uint64_t>(profile.most_blocks, each.blocks);
    }
    profile.cores = std::max<uint64_t>(profile.cores, static_cast<uint64_t>(std::max(rank->cube_cores, rank->vector_cores)));
    if (!rank->op_states.empty()) profile.dynamic = profile.dynamic.value_or(false) || rank->op_states.contains("dynamic");
  }
  return profile;
}

}  // namespace profd::client
