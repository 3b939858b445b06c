#include "client/commands/tune_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "client/render.h"

namespace profd::client {
namespace {

constexpr uint64_t kHomeBytes = 20'000'000'000;
constexpr uint32_t kChip910B = 5;  // Atlas A2 training, Atlas 800I A2
constexpr size_t kMostLines = 10;
constexpr std::array<std::string_view, 7> kLaunchers = {"mpirun", "mpiexec", "torchrun", "msrun", "horovodrun", "deepspeed", "srun"};

class Checker {
 public:
  Checker(const TuneRequest& request, const TuneFacts& facts) : request_(request), facts_(facts) {}

  std::vector<TuneCondition> Run() && {
    Mode();
    Devices();
    Lease();
    SingleProcess();
    HomeDisk();
    Memory();
    Cpus();
    DeviceCores();
    StaticShapes();
    Profiling();
    StaticMemory();
    CpuBinding();
    Environment();
    Python();
    Bank();
    WorkPath();
    return std::move(conditions_);
  }

 private:
  void Add(std::string_view name, std::string_view what, std::string figure, TuneVerdict verdict, std::string advice = "") {
    conditions_.push_back({name, what, std::move(figure), verdict, verdict == TuneVerdict::kOk ? "" : std::move(advice)});
  }
  std::string Variable(const char* name) const {
    const auto found = facts_.environment.find(name);
    return found == facts_.environment.end() ? std::string() : found->second;
  }
  static TuneVerdict OkOr(bool ok, TuneVerdict otherwise) { return ok ? TuneVerdict::kOk : otherwise; }

  void Mode() {
    constexpr std::string_view kWhat = "the chip can be tuned in this mode";
    const std::string mode = request_.subgraph ? "subgraph (AOE_MODE=1)" : "operator (AOE_MODE=2)";
    std::string chip = "chip not known";
    bool a2 = false, known = false;
    for (const TuneDevice& device : facts_.devices) {
      if (std::ranges::find(request_.devices, device.id) == request_.devices.end()) continue;
      chip = device.chip;
      known = true;
      a2 = a2 || device.chip_id == kChip910B;
    }
    const std::string figure = mode + ", " + chip;
    if (!request_.subgraph) return Add("mode", kWhat, figure, TuneVerdict::kOk);
    if (!known) return Add("mode", kWhat, figure, TuneVerdict::kUnknown, "subgraph tuning is not there on Atlas A2 training and 800I A2");
    Add("mode", kWhat, figure, OkOr(!a2, TuneVerdict::kImpossible), "Atlas A2 training and 800I A2 have operator tuning only: --mode operator");
  }

  void Devices() {
    constexpr std::string_view kWhat = "one device, which is there";
    const std::string figure = fmt::format("NPU {}{}", fmt::join(request_.devices, ","), request_.devices_given ? "" : " (not given)");
    const bool one = request_.devices.size() == 1;
    constexpr std::string_view kSeveral = "a training on several devices is not tuned; keep one, --devices N";
    if (!facts_.node.ok()) {
      // That they are several does not need the daemon.
      return Add("device", kWhat, figure, one ? TuneVerdict::kUnknown : TuneVerdict::kAdvice, one ? "profd does not answer: " + facts_.node.message() : std::string(kSeveral));
    }
    for (const uint32_t id : request_.devices) {
      const auto found = std::ranges::find(facts_.devices, id, &TuneDevice::id);
      if (found == facts_.devices.end()) return Add("device", kWhat, fmt::format("NPU {} is not there", id), TuneVerdict::kImpossible, "profctl devices lists them");
      // The driver's words name the NPU themselves.
      const std::string npu = fmt::format("NPU {}", id);
      const std::string problem = found->problem.starts_with(npu + " ") ? found->problem : fmt::format("{}: {}", npu, found->problem);
      if (!found->problem.empty()) return Add("device", kWhat, problem, TuneVerdict::kImpossible, "profctl health shows what is wrong with it");
    }
    Add("device", kWhat, figure, OkOr(one, TuneVerdict::kAdvice), std::string(kSeveral));
  }

  void Lease() {
    constexpr std::string_view kWhat = "the devices can be kept: no other user tunes there, nothing profiles inside applications";
    if (!facts_.node.ok() || facts_.lease.code() == StatusCode::kUnavailable || facts_.lease.code() == StatusCode::kUnimplemented) {
      return Add("lease", kWhat, "profd does not answer", TuneVerdict::kAdvice, "without a lease nothing keeps other users and profilers away");
    }
    const bool held = facts_.lease.code() == StatusCode::kResourceExhausted || facts_.lease.code() == StatusCode::kFailedPrecondition;
    Add("lease", kWhat, facts_.lease.ok() ? "free" : facts_.lease.message(), OkOr(facts_.lease.ok(), TuneVerdict::kImpossible),
        held ? "wait until it ends, or end it" : "");
  }

  void SingleProcess() {
    constexpr std::string_view kWhat = "the training has one rank";
    for (const char* name : {"RANK_SIZE", "WORLD_SIZE"}) {
      uint64_t ranks = 0;
      if (ParseNumber(std::string_view(Variable(name)), &ranks) && ranks > 1) {
        return Add("single_rank", kWhat, fmt::format("{}={}", name, ranks), TuneVerdict::kImpossible, "several ranks are not tuned; start the training with one");
      }
    }
    if (facts_.profile && facts_.profile->ranks > 1) {
      return Add("single_rank", kWhat, fmt::format("{} ranks in the profile", facts_.profile->ranks), TuneVerdict::kImpossible, "several ranks are not tuned; start the training with one");
    }
    const std::string program = request_.command.empty() ? "" : request_.command.front().substr(request_.command.front().rfind('/') + 1);
    const bool launcher = std::ranges::find(kLaunchers, program) != kLaunchers.end();
    Add("single_rank", kWhat, launcher ? program + " starts several processes" : "no launcher, RANK_SIZE and WORLD_SIZE at most 1", OkOr(!launcher, TuneVerdict::kAdvice),
        "start the training itself, as one process");
  }

  void HomeDisk() {
    constexpr std::string_view kWhat = "20 GB free on the disk of the home directory";
    if (!facts_.home_free) return Add("home_disk", kWhat, "not known: " + (facts_.home.empty() ? "no HOME" : facts_.home), TuneVerdict::kUnknown);
    Add("home_disk", kWhat, fmt::format("{:.1f} GB in {}", static_cast<double>(*facts_.home_free) / 1e9, facts_.home),
        OkOr(*facts_.home_free >= kHomeBytes, TuneVerdict::kAdvice), "free some, or set HOME to a larger disk");
  }

  std::string Parallel() const { return fmt::format("{}{}", request_.parallel_num, request_.parallel_given ? "" : " (taken; --parallel-num)"); }

  void Memory() {
    constexpr std::string_view kWhat = "memory for the model TUNING_PARALLEL_NUM times";
    if (!facts_.memory_available) return Add("memory", kWhat, "not known", TuneVerdict::kUnknown);
    const std::string available = FormatBytes(*facts_.memory_available);
    if (!request_.model_bytes) return Add("memory", kWhat, available + " available; what the model needs is not known", TuneVerdict::kUnknown, "give it: --model-memory SIZE");
    const auto needed = static_cast<double>(*request_.model_bytes) * static_cast<double>(request_.parallel_num);
    Add("memory", kWhat, fmt::format("{} available, {} x {} needed", available, FormatBytes(*request_.model_bytes), Parallel()),
        OkOr(static_cast<double>(*facts_.memory_available) >= needed, TuneVerdict::kAdvice), "lower TUNING_PARALLEL_NUM in AOE's configuration, or end other programs");
  }

  // Operators: processes x (TE_PARALLEL_COMPILER + TUNING_PARALLEL_NUM + min(cores / 2, 8) + 50); subgraphs:
  // processes x (2 x TUNING_PARALLEL_NUM + TE_PARALLEL_COMPILER).
  void Cpus() {
    constexpr std::string_view kWhat = "CPUs for compiling and tuning beside the training";
    if (facts_.cpus == 0) return Add("cpus", kWhat, "not known", TuneVerdict::kUnknown);
    const double half = std::min(static_cast<double>(facts_.cpus) / 2, 8.0);
    const auto processes = static_cast<double>(request_.processes), te = static_cast<double>(request_.te_parallel), num = static_cast<double>(request_.parallel_num);
    const double needed = request_.subgraph ? processes * (2 * num + te) : processes * (te + num + half + 50);
    const std::string formula = request_.subgraph ? fmt::format("{} x (2 x {} + {})", request_.processes, Parallel(), request_.te_parallel)
                                                : fmt::format("{} x ({} + {} + {} + 50)", request_.processes, request_.te_parallel, Parallel(), half);
    Add("cpus", kWhat, fmt::format("{} CPUs; {} = {}", facts_.cpus, formula, needed), OkOr(static_cast<double>(facts_.cpus) >= needed, TuneVerdict::kAdvice),
        "it takes longer; lower TE_PARALLEL_COMPILER (--te-parallel)");
  }

  void DeviceCores() {
    constexpr std::string_view kWhat = "the device has as many cores as any operator uses";
    const bool known = facts_.profile && facts_.profile->most_blocks > 0 && facts_.profile->cores > 0;
    if (!known) return Add("device_cores", kWhat, "not known", TuneVerdict::kUnknown, "give a profile of the training: --profile RUN");
    Add("device_cores", kWhat, fmt::format("{} cores; operators use up to {}", facts_.profile->cores, facts_.profile->most_blocks),
        OkOr(facts_.profile->cores >= facts_.profile->most_blocks, TuneVerdict::kAdvice), "use a device with more cores");
  }

  void StaticShapes() {
    constexpr std::string_view kWhat = "operators have static shapes";
    if (!facts_.profile || !facts_.profile->dynamic) return Add("static_shapes", kWhat, "not known", TuneVerdict::kUnknown, "give a profile of the training: --profile RUN");
    Add("static_shapes", kWhat, *facts_.profile->dynamic ? "dynamic ones in the profile" : "none of the profile's is dynamic",
        OkOr(!*facts_.profile->dynamic, TuneVerdict::kAdvice), "operators of dynamic shapes are left out of tuning");
  }

  static std::string Where(const std::vector<TuneScriptLine>& lines) {
    return fmt::format("{}:{}: {}", lines.front().file, lines.front().line, lines.front().text);
  }

  void Profiling() {
    constexpr std::string_view kWhat = "the training does not profile itself";
    const std::string mode = Variable("PROFILING_MODE");
    if (!mode.empty() && mode != "false") return Add("profiling_off", kWhat, "PROFILING_MODE=" + mode, TuneVerdict::kAdvice, "unset PROFILING_MODE");
    if (mode.empty() && !Variable("PROFILING_OPTIONS").empty()) return Add("profiling_off", kWhat, "PROFILING_OPTIONS is set", TuneVerdict::kAdvice, "unset PROFILING_OPTIONS");
    if (!facts_.profiling.empty()) return Add("profiling_off", kWhat, Where(facts_.profiling), TuneVerdict::kAdvice, "switch it off for tuning");
    Add("profiling_off", kWhat, mode.empty() ? "PROFILING_MODE and PROFILING_OPTIONS are not set" : "PROFILING_MODE=" + mode, TuneVerdict::kOk);
  }

  void StaticMemory() {
    constexpr std::string_view kWhat = "memory is not allocated statically (static_memory_policy=0)";
    if (!facts_.static_memory.empty()) return Add("static_memory", kWhat, Where(facts_.static_memory), TuneVerdict::kAdvice, "set static_memory_policy to 0");
    if (facts_.script_files == 0) return Add("static_memory", kWhat, "not known: no script among the arguments", TuneVerdict::kUnknown);
    Add("static_memory", kWhat, "not set in " + CountText(facts_.script_files, "file"), TuneVerdict::kOk);
  }

  void CpuBinding() {
    Add("cpu_binding", "processes are not bound to CPUs", fmt::format("{} of {} CPUs may be used", facts_.cpus_allowed, facts_.cpus),
        OkOr(facts_.cpus_allowed >= facts_.cpus, TuneVerdict::kAdvice), "start it without taskset, numactl or a smaller cpuset");
  }

  void Environment() {
    std::string found;
    for (const char* name : {"ASCEND_OPP_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"}) {
      if (found.empty() && !Variable(name).empty()) found = fmt::format("{}={}", name, Variable(name));
    }
    Add("environment", "the toolkit's set_env.sh was read", found.empty() ? "no ASCEND_OPP_PATH" : found, OkOr(!found.empty(), TuneVerdict::kAdvice),
        ". /usr/local/Ascend/ascend-toolkit/set_env.sh");
  }

  void Python() {
    const bool found = !facts_.python_library.empty();
    Add("python", "Python's library is found", found ? facts_.python_library : "no libpython3 in LD_LIBRARY_PATH or the system's folders",
        OkOr(found, TuneVerdict::kAdvice), "export LD_LIBRARY_PATH=/usr/local/python3.x/lib:$LD_LIBRARY_PATH");
  }

  void Bank() {
    const auto given = request_.variables.find("TUNE_BANK_PATH");
    const std::string path = given != request_.variables.end() ? given->second : Variable("TUNE_BANK_PATH");
    if (path.empty()) return Add("bank", "the bank's folder can be written", "AOE's own default", TuneVerdict::kOk);
    Add("bank", "the bank's folder can be written", facts_.bank.ok() ? path : facts_.bank.message(), OkOr(facts_.bank.ok(), TuneVerdict::kImpossible),
        facts_.bank.code() == StatusCode::kNotFound ? "AOE ends where it is not there: mkdir -p " + path : "name a folder of yours: --bank DIR");
  }

  void WorkPath() {
    Add("work_path", "results can be written", facts_.work_path_state.ok() ? facts_.work_path : facts_.work_path_state.message(),
        OkOr(facts_.work_path_state.ok(), TuneVerdict::kAdvice), "set ASCEND_WORK_PATH to a folder of yours");
  }

  const TuneRequest& request_;
  const TuneFacts& facts_;
  std::vector<TuneCondition> conditions_;
};

// What stands behind "=" or ":" of an assignment to `name` in the line; nothing: there is none.
std::optional<std::string_view> ValueOf(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == std::string_view::npos || line.substr(0, at).find('#') != std::string_view::npos) return std::nullopt;
  const size_t sign = line.find_first_of("=:", at + name.size());
  if (sign == std::string_view::npos) return std::nullopt;
  std::string_view value = Trim(line.substr(sign + 1));
  while (!value.empty() && (value.front() == '"' || value.front() == '\'' || value.front() == ' ')) value.remove_prefix(1);
  return value.substr(0, value.find_first_of(" ,;)}\"'#"));
}

}  // namespace

std::string_view WordOf(TuneVerdict verdict) {
  switch (verdict) {
    case TuneVerdict::kOk: return "ok";
    case TuneVerdict::kUnknown: return "unknown";
    case TuneVerdict::kAdvice: return "advice";
    case TuneVerdict::kImpossible: return "impossible";
  }
  return "";
}

std::vector<TuneCondition> CheckConditions(const TuneRequest& request, const TuneFacts& facts) { return Checker(request, facts).Run(); }

bool MayTune(const std::vector<TuneCondition>& conditions, bool force) {
  return std::ranges::none_of(conditions, [force](const TuneCondition& each) {
    return each.verdict == TuneVerdict::kImpossible || (each.verdict == TuneVerdict::kAdvice && !force);
  });
}

Json ToJson(const std::vector<TuneCondition>& conditions) {
  Json list = Json::array();
  for (const TuneCondition& each : conditions) {
    list.push_back({{"name", each.name}, {"what", each.what}, {"figure", each.figure}, {"verdict", WordOf(each.verdict)}, {"advice", each.advice}});
  }
  return list;
}

void LookThroughScript(std::string_view text, const std::string& file, TuneFacts* facts) {
  ++facts->script_files;
  const auto mode = facts->environment.find("PROFILING_MODE");
  const bool options_count = mode == facts->environment.end() || mode->second != "false";
  std::string_view line;
  for (size_t number = 1; NextLine(&text, &line); ++number) {
    const auto note = [&](std::vector<TuneScriptLine>* lines) {
      if (lines->size() < kMostLines) lines->push_back({file, number, std::string(Trim(line).substr(0, 120))});
    };
    const std::optional<std::string_view> policy = ValueOf(line, "static_memory_policy");
    if (policy && !policy->empty() && *policy != "0") note(&facts->static_memory);
    if (options_count && !ValueOf(line, "PROFILING_OPTIONS").value_or("").empty()) note(&facts->profiling);
    for (std::string_view name : {"profiling_mode", "enable_profiling", "PROFILING_MODE"}) {
      std::string_view value = ValueOf(line, name).value_or("");
      if (value.starts_with("True") || value.starts_with("true") || value == "1" || value == "dynamic") note(&facts->profiling);
    }
  }
}

}  // namespace profd::client
