#include "daemon/session/session_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr auto kFrequencyOptions = std::to_array<FrequencyOption>({
    {"sys_hardware_mem_freq", 1, 100},
    {"sys_io_sampling_freq", 1, 100},
    {"sys_interconnection_freq", 1, 50},
    {"dvpp_freq", 1, 100},
    {"host_sys_usage_freq", 1, 50},
});
// What the vendor samples host_sys with: 20 ms, fixed (driver-abi section 6).
constexpr double kHostSysHz = 50;
constexpr int64_t kMinStorageMb = 200;
constexpr int64_t kMaxStorageMb = 4294967295;
constexpr size_t kMaxText = 128;
constexpr int kMaxPids = 1024;
constexpr int kMaxOrders = 128;
// Rates of collectors by name; periods in ns and ms must stay numbers.
constexpr double kMinHz = 0.001;
constexpr double kMaxHz = 1000;
// What is wrong with an order has to fit into the trailer of a gRPC call (8 KiB, escaped).
constexpr size_t kMaxProblems = 32;
constexpr size_t kMaxProblemChars = 160;

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

// One problem per line. However long the order, the list stays short: what is beyond is counted.
class ProblemList {
 public:
  bool empty() const { return lines_.empty(); }
  template <class Make>
  void Add(Make make) {
    if (lines_.size() == kMaxProblems) {
      ++left_out_;
      return;
    }
    std::string line = make();
    if (line.size() > kMaxProblemChars) {
      size_t end = kMaxProblemChars;
      while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
      line.resize(end);
      line += "...";
    }
    lines_.push_back(std::move(line));
  }
  std::string Text() const {
    std::string text = fmt::format("{}", fmt::join(lines_, "\n"));
    if (left_out_ > 0) text += fmt::format("\nand {} more", left_out_);
    return text;
  }

 private:
  std::vector<std::string> lines_;
  size_t left_out_ = 0;
};

struct HostSys {
  bool cpu = false;
  bool mem = false;
  bool any() const { return cpu || mem; }
};

// Builds a plan, gathering problems instead of stopping at the first.
class Planner {
 public:
  Planner(const v1::StartSessionRequest& request, const PlanContext& context)
      : request_(request), context_(context) {}

  Result<SessionPlan> Run() {
    CheckTexts();
    CheckDevices();
    CheckFrequencies();
    CheckProcesses();
    CheckLimits();
    HostSys host_sys = ParseHostSys("host_sys", request_.options().host_sys());
    HostSys usage = ParseHostSys("host_sys_usage", request_.options().host_sys_usage());
    CheckHostOptions(host_sys, usage);
    if (NothingNamed()) {
      AddDefaults();
    } else {
      AddByOptions(host_sys, usage);
      AddByName();
    }
    if (!denied_.empty()) return PermissionDenied(denied_.Text());
    if (!problems_.empty()) return InvalidArgument(problems_.Text());
    return std::move(plan_);
  }

 private:
  template <class... Args>
  void Problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.Add([&] { return fmt::format(format, std::forward<Args>(args)...); });
  }

  uint32_t Frequency(std::string_view key) const {
    if (key == "sys_hardware_mem_freq") return request_.options().sys_hardware_mem_freq();
    if (key == "sys_io_sampling_freq") return request_.options().sys_io_sampling_freq();
    if (key == "sys_interconnection_freq") return request_.options().sys_interconnection_freq();
    if (key == "dvpp_freq") return request_.options().dvpp_freq();
    if (key == "host_sys_usage_freq") return request_.options().host_sys_usage_freq();
    return 0;
  }

  bool NothingNamed() const {
    return request_.collectors().empty() && request_.options().sys_hardware_mem_freq() == 0 &&
           request_.options().sys_io_sampling_freq() == 0 && request_.options().sys_interconnection_freq() == 0 &&
           request_.options().dvpp_freq() == 0 && request_.options().host_sys().empty() &&
           request_.options().host_sys_usage().empty();
  }

  bool AnyDeviceOption() const {
    return request_.options().sys_hardware_mem_freq() != 0 || request_.options().sys_io_sampling_freq() != 0 ||
           request_.options().sys_interconnection_freq() != 0 || request_.options().dvpp_freq() != 0;
  }

  void CheckTexts() {
    plan_.job_id = request_.job_id();
    plan_.label = request_.label();
    if (request_.has_rank()) plan_.rank = request_.rank();
    if (!plan_.job_id.empty() && !IsValidJobId(plan_.job_id)) {
      Problem("job_id = {}: at most {} letters, digits and any of . _ - : /",
              log::Quote(plan_.job_id), kMaxText);
    }
    if (plan_.label.size() > kMaxText || !IsPrintable(plan_.label)) {
      Problem("label: at most {} printable characters", kMaxText);
    }
    if (plan_.rank && *plan_.rank < 0) Problem("rank = {}: must not be negative", *plan_.rank);
  }

  void CheckDevices() {
    std::set<int> wanted;
    for (uint32_t id : request_.devices()) {
      auto found = std::find_if(context_.devices.begin(), context_.devices.end(),
                                [id](const DeviceInfo& d) { return d.id == static_cast<int>(id); });
      if (found == context_.devices.end()) {
        Problem("devices: no device {} on this node (there are {})", id, DeviceList());
      } else {
        wanted.insert(found->id);
      }
    }
    for (const DeviceInfo& device : context_.devices) {
      if (!request_.devices().empty() && !wanted.contains(device.id)) continue;
      if (Status status = context_.may_use(device); !status.ok()) {
        // Without an explicit list "all" means all the caller may use.
        if (!request_.devices().empty()) denied_.Add([&] { return status.message(); });
        continue;
      }
      plan_.devices.push_back(device.id);
    }
  }

  std::string DeviceList() const {
    if (context_.devices.empty()) return "none";
    std::vector<int> ids;
    for (const DeviceInfo& device : context_.devices) ids.push_back(device.id);
    return fmt::format("{}", fmt::join(ids, ", "));
  }

  void CheckFrequencies() {
    for (const FrequencyOption& option : kFrequencyOptions) {
      uint32_t hz = Frequency(option.key);
      if (hz != 0 && (hz < option.min_hz || hz > option.max_hz)) {
        Problem("{} = {}: must be a whole number {}..{} (Hz)", option.key, hz, option.min_hz,
                option.max_hz);
      }
    }
    const std::string& llc = request_.options().llc_profiling();
    if (llc.empty()) return;
    if (llc != "read" && llc != "write") {
      Problem("llc_profiling = {}: must be read or write", log::Quote(llc));
    }
    if (request_.options().sys_hardware_mem_freq() == 0 && !OrdersCollector("llc")) {
      Problem("llc_profiling needs sys_hardware_mem_freq (it would do nothing)");
    }
    plan_.llc_write = llc == "write";
  }

  bool OrdersCollector(std::string_view name) const {
    return std::any_of(request_.collectors().begin(), request_.collectors().end(),
                       [name](const v1::CollectorOrder& order) { return order.name() == name; });
  }

  void CheckPid(std::string_view key, int32_t pid) {
    if (pid <= 0) {
      Problem("{} = {}: must be a process id", key, pid);
      return;
    }
    Result<uint32_t> owner = context_.owner_of(pid);
    if (!owner.ok()) {
      Problem("{} = {}: no such process", key, pid);
    } else if (!context_.peer.Owns(*owner)) {
      denied_.Add([&] {
        return fmt::format("{} = {}: the process belongs to uid {}, you are uid {}", key, pid,
                           *owner, context_.peer.uid);
      });
    }
  }

  void CheckProcesses() {
    if (request_.pids_size() > kMaxPids) {
      Problem("pids: {} given, at most {}", request_.pids_size(), kMaxPids);
      return;
    }
    for (int32_t pid : request_.pids()) {
      CheckPid("pids", pid);
      plan_.pids.push_back(pid);
    }
    plan_.end_with_pid = request_.end_with_pid();
    if (plan_.end_with_pid != 0) CheckPid("end_with_pid", plan_.end_with_pid);
  }

  void CheckLimits() {
    int64_t max_ms = context_.config.max_duration_s * 1000;
    if (request_.duration_ms() > static_cast<uint64_t>(max_ms)) {
      Problem("duration_ms = {}: at most {} ({} s) here", request_.duration_ms(), max_ms,
              context_.config.max_duration_s);
    } else {
      plan_.duration_ms = static_cast<int64_t>(request_.duration_ms());
    }
    plan_.require_all = request_.require_all();
    plan_.no_dump = request_.no_dump();
    plan_.max_bytes = static_cast<uint64_t>(context_.config.max_session_mb) << 20;
    CheckStorageLimit(request_.options().storage_limit());
  }

  void CheckStorageLimit(std::string_view text) {
    if (text.empty()) return;
    std::string_view digits = text;
    if (digits.ends_with("MB")) digits.remove_suffix(2);
    int64_t mb = 0;
    if (!ParseNumber(digits, &mb) || mb < kMinStorageMb || mb > kMaxStorageMb) {
      Problem("storage_limit = {}: must be <n>MB with n in {}..{}", log::Quote(text),
              kMinStorageMb, kMaxStorageMb);
      return;
    }
    uint64_t bytes = static_cast<uint64_t>(mb) << 20;
    plan_.storage_limited = bytes < plan_.max_bytes;
    if (!plan_.storage_limited && bytes > plan_.max_bytes) {
      plan_.warnings.push_back(fmt::format("storage_limit {} lowered to {} MB (dump.max_session_mb)",
                                           text, context_.config.max_session_mb));
    }
    plan_.max_bytes = std::min(plan_.max_bytes, bytes);
  }

  HostSys ParseHostSys(std::string_view key, std::string_view text) {
    HostSys result;
    std::string_view rest = text;
    while (!rest.empty()) {
      size_t comma = rest.find(',');
      std::string_view item = Trim(rest.substr(0, comma));
      if (item == "cpu") {
        result.cpu = true;
      } else if (item == "mem") {
        result.mem = true;
      } else {
        Problem("{} = {}: must be cpu, mem or cpu,mem", key, log::Quote(text));
        return result;
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
      if (rest.empty()) Problem("{} = {}: empty item at the end", key, log::Quote(text));
    }
    return result;
  }

  void CheckHostOptions(const HostSys& host_sys, const HostSys& usage) {
    if (host_sys.any() && plan_.pids.empty() && plan_.job_id.empty()) {
      Problem("host_sys needs a process: name pids or a job_id");
    }
    if (request_.options().host_sys_usage_freq() != 0 && !usage.any()) {
      Problem("host_sys_usage_freq needs host_sys_usage (it would do nothing)");
    }
  }

  ProcessScope JobScope() const {
    ProcessScope scope;
    scope.pids.assign(plan_.pids.begin(), plan_.pids.end());
    scope.job_id = plan_.job_id;
    if (!context_.peer.admin) scope.only_uid = context_.peer.uid;
    return scope;
  }

  // The entry for a collector, made on first use.
  PlannedCollector& Entry(CollectorIndex index) {
    for (PlannedCollector& planned : plan_.collectors) {
      if (planned.index == index) return planned;
    }
    PlannedCollector planned;
    planned.index = index;
    planned.channel.llc_write = plan_.llc_write;
    planned.poll.system = true;
    plan_.collectors.push_back(planned);
    return plan_.collectors.back();
  }

  void SetRate(PlannedCollector& planned, double hz) {
    planned.hz = hz;
    planned.channel.hz = hz;
    planned.poll.hz = hz;
  }

  void AddDefaults() {
    for (size_t i = 0; i < context_.collectors.size(); ++i) {
      const CollectorSpec& spec = *context_.collectors[i].spec;
      PlannedCollector& planned = Entry(static_cast<CollectorIndex>(i));
      SetRate(planned, spec.default_hz);
      planned.channel.soc_memory = planned.channel.soc_interconnect = true;
      planned.channel.soc_memory_hz = planned.channel.soc_interconnect_hz = spec.default_hz;
      planned.poll.processes = JobScope();
    }
  }

  void AddByOptions(const HostSys& host_sys, const HostSys& usage) {
    for (size_t i = 0; i < context_.collectors.size(); ++i) {
      const CollectorSpec& spec = *context_.collectors[i].spec;
      if (spec.source == CollectorSource::kChannel) {
        AddChannelByOptions(static_cast<CollectorIndex>(i), spec);
      } else if (FindOption(spec, "host_sys") != nullptr) {
        AddHostByOptions(static_cast<CollectorIndex>(i), host_sys, usage);
      }
    }
  }

  // A channel collector may hang on several options (soc_profile on two): each turns its part on.
  void AddChannelByOptions(CollectorIndex index, const CollectorSpec& spec) {
    bool event_driven = spec.with_device_options;
    if (event_driven) {
      if (!AnyDeviceOption()) return;
      // Costs nothing while nothing changes, and explains every other number (AI Core frequency).
      SetRate(Entry(index), spec.default_hz);
      return;
    }
    for (const FrequencyOption& option : kFrequencyOptions) {
      uint32_t hz = Frequency(option.key);
      if (hz == 0 || FindOption(spec, option.key) == nullptr) continue;
      PlannedCollector& planned = Entry(index);
      planned.named = planned.by_option = true;
      planned.option_keys.insert(std::string(option.key));
      SetRate(planned, std::max(planned.hz, static_cast<double>(hz)));
      if (option.key == "sys_hardware_mem_freq") {
        planned.channel.soc_memory = true;
        planned.channel.soc_memory_hz = hz;
      } else if (option.key == "sys_interconnection_freq") {
        planned.channel.soc_interconnect = true;
        planned.channel.soc_interconnect_hz = hz;
      }
    }
  }

  void AddHostByOptions(CollectorIndex index, const HostSys& host_sys, const HostSys& usage) {
    bool is_cpu = context_.collectors[index].spec->name.find("cpu") != std::string_view::npos;
    bool job = is_cpu ? host_sys.cpu : host_sys.mem;
    bool all = is_cpu ? usage.cpu : usage.mem;
    if (!job && !all) return;
    PlannedCollector& planned = Entry(index);
    planned.named = true;
    planned.poll.system = all;
    double usage_hz = request_.options().host_sys_usage_freq() != 0
                          ? static_cast<double>(request_.options().host_sys_usage_freq())
                          : kHostSysHz;
    SetRate(planned, all ? (job ? std::max(kHostSysHz, usage_hz) : usage_hz) : kHostSysHz);
    planned.poll.processes = job ? JobScope() : ProcessScope();
    planned.poll.processes.all = all;
    if (all) planned.poll.processes.only_uid = UINT32_MAX;
  }

  void AddByName() {
    if (request_.collectors_size() > kMaxOrders) {
      Problem("collectors: {} given, at most {}", request_.collectors_size(), kMaxOrders);
      return;
    }
    std::set<std::string_view> seen;
    for (const v1::CollectorOrder& order : request_.collectors()) {
      if (!seen.insert(order.name()).second) {
        Problem("collector {} is named twice", log::Quote(order.name()));
        continue;
      }
      AddOrder(order);
    }
  }

  void AddOrder(const v1::CollectorOrder& order) {
    auto found = std::find_if(
        context_.collectors.begin(), context_.collectors.end(),
        [&order](const CollectorEntry& entry) { return entry.spec->name == order.name(); });
    if (found == context_.collectors.end()) {
      Problem("collector {}: no such collector (see `profctl collectors`)",
              log::Quote(order.name()));
      return;
    }
    const CollectorSpec& spec = *found->spec;
    double hz = order.hz() == 0 ? spec.default_hz : order.hz();
    const double max_hz = spec.max_hz > 0 ? spec.max_hz : kMaxHz;
    if (hz != spec.default_hz && !(hz >= kMinHz && hz <= max_hz)) {
      Problem("collector {} = {} Hz: must be at least {} and at most {}", spec.name, order.hz(), kMinHz, max_hz);
      return;
    }
    bool was_planned = OptionsPlanned(spec);
    PlannedCollector& planned =
        Entry(static_cast<CollectorIndex>(found - context_.collectors.begin()));
    planned.named = true;
    planned.by_option = false;
    SetRate(planned, hz);
    planned.channel.soc_memory = planned.channel.soc_interconnect = true;
    planned.channel.soc_memory_hz = planned.channel.soc_interconnect_hz = hz;
    if (!was_planned) planned.poll.processes = JobScope();
  }

  bool OptionsPlanned(const CollectorSpec& spec) const {
    return std::any_of(plan_.collectors.begin(), plan_.collectors.end(),
                       [&](const PlannedCollector& planned) {
                         return context_.collectors[planned.index].spec == &spec;
                       });
  }

  const v1::StartSessionRequest& request_;
  const PlanContext& context_;
  SessionPlan plan_;
  ProblemList problems_;
  ProblemList denied_;
};

}  // namespace

std::span<const FrequencyOption> FrequencyOptions() { return kFrequencyOptions; }

bool IsValidJobId(std::string_view text) {
  if (text.empty() || text.size() > kMaxText) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-' || c == ':' || c == '/';
  });
}

Result<SessionPlan> PlanSession(const v1::StartSessionRequest& request_untrusted,
                                const PlanContext& context) {
  return Planner(request_untrusted, context).Run();
}

}  // namespace profd
