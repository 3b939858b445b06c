#include "daemon/node/node.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <utility>

#include "base/text.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/node/rights.h"
#include "driver/chips.h"
#include "driver/guarded_thread.h"

namespace profd {
namespace {

// The driver's first answers may take a while (it wakes devices up), but not for ever.
constexpr int64_t kDiscoverDeadlineNs = 20 * kNsPerSecond;

// Runs `task` on a thread that is given up if it does not come back in time.
bool RunGuarded(const Clock& clock, const std::string& what, std::function<void()> task) {
  auto answered = std::make_shared<std::promise<bool>>();
  std::future<bool> in_time = answered->get_future();
  GuardedThread thread("profd-discover", clock);
  GuardedJob job;
  job.what = what;
  job.run = std::move(task);
  job.deadline_steady_ns = clock.SteadyNs() + kDiscoverDeadlineNs;
  job.done = [answered](const Status& status) { answered->set_value(status.ok()); };
  if (!thread.Submit(std::move(job)).ok()) return false;
  constexpr std::chrono::milliseconds kStep{50};
  while (in_time.wait_for(kStep) != std::future_status::ready) thread.CheckDeadlines(clock.SteadyNs());
  return in_time.get();
}

// Who has rights of root's must not run what others wrote; who runs profd as themselves loads what
// they name.
bool MustBeSafe(const DaemonConfig& config) {
  return config.require_safe_library && Rights::OfThisProcess().privileged();
}

}  // namespace

Node::Node(const Clock& clock, RootedFs proc, RootedFs sys)
    : clock_(clock), proc_(std::move(proc)), sys_(std::move(sys)) {}

Node::~Node() { StopChannels(); }

void Node::StopChannels() {
  controls_.clear();
  pump_.reset();
}

Result<std::unique_ptr<Node>> Node::Discover(const DaemonConfig& config, const Clock& clock) {
  Result<RootedFs> proc = RootedFs::OpenRoot("/proc");
  if (!proc.ok()) return proc.status();
  Result<RootedFs> sys = RootedFs::OpenRoot("/sys");
  if (!sys.ok()) return sys.status();
  auto node = std::unique_ptr<Node>(
      new Node(clock, std::move(proc).value(), std::move(sys).value()));
  node->LoadHal(config);
  node->LoadDcmi(config);
  node->Describe(config);
  node->pool_ = std::make_unique<BlockPool>(static_cast<size_t>(config.buffer_mb) << 20);
  return node;
}

void Node::LoadHal(const DaemonConfig& config) {
  Result<std::unique_ptr<HalLibrary>> hal = HalLibrary::Load(config.hal_library, !MustBeSafe(config));
  if (!hal.ok()) {
    report_.set_hal_error(hal.status().message());
    return;
  }
  hal_ = std::move(hal).value();
  report_.set_hal_path(hal_->path());
  report_.mutable_missing_symbols()->Assign(hal_->missing_symbols().begin(), hal_->missing_symbols().end());
  auto found = std::make_shared<HalInventory>();
  bool answered = RunGuarded(clock_, "device discovery",
                             [hal = hal_, found] { *found = DiscoverDevices(hal); });
  if (!answered) {
    start_hung_ = true;
    report_.set_hal_error("the driver did not answer while devices were being listed");
    return;
  }
  inventory_ = std::move(*found);
  start_hung_ = inventory_.threads_left;
  if (inventory_.api_version != 0) report_.set_hal_api_version(static_cast<uint32_t>(inventory_.api_version));
  if (!inventory_.status.ok()) report_.set_hal_error(inventory_.status.message());
}

void Node::LoadDcmi(const DaemonConfig& config) {
  Result<DcmiLibrary> library = LoadDcmiLibrary(config.dcmi_library, !MustBeSafe(config));
  if (!library.ok()) {
    report_.set_dcmi_error(library.status().message());
    return;
  }
  report_.set_dcmi_path(library->path);
  auto service = std::make_unique<DcmiService>(std::move(library).value(), clock_);
  const Status status = service->Start();
  if (!status.ok()) report_.set_dcmi_error(status.message());
  if (status.ok() || service->IsPending()) dcmi_ = std::move(service);
  if (dcmi_ != nullptr) ReportDcmi();
}

void Node::ReportDcmi() {
  if (dcmi_->IsPending()) {
    report_.set_dcmi_error(dcmi_->SilenceOf(-1, -1));
    return;
  }
  report_.clear_dcmi_error();
  report_.set_dcmi_version(dcmi_->dcmi_version());
  report_.set_driver_version(dcmi_->driver_version());
}

void Node::Describe(const DaemonConfig& config) {
  for (const HalDevice& hal : inventory_.devices) {
    DeviceInfo info;
    info.id = static_cast<int>(hal.id);
    info.physical_id = static_cast<int>(hal.physical_id);
    info.chip_id = hal.chip_id;
    info.chip_name = hal.chip_name;
    if (hal.usable.ok()) info.channels = hal.channels;
    info.usable = hal.usable;
    info.counter_hz = hal.counter_hz;
    info.aicore_mhz = hal.aicore_mhz;
    info.mpam_ids = hal.qos_streams;
    info.mpam_names = hal.qos_names;
    if (dcmi_ != nullptr) {
      const DcmiDevice* dcmi = dcmi_->FindByLogicalId(info.id);
      if (dcmi != nullptr) info.uuid = dcmi->uuid;
    }
    devices_.push_back(std::move(info));
  }
  double host_hz = static_cast<double>(inventory_.host_osc_khz) * 1000;
  MakeHccnReader(config);
  host_ = std::make_unique<Host>(Host{clock_, proc_, sys_, dcmi_.get(),
                                      std::span<const DeviceInfo>(devices_), host_hz, hccn_.get()});
  host_->process_names_or_null = &process_names_;
  host_->dcmi_error = report_.dcmi_error();
  host_->settings = SettingsOf(config);  // checked with the rest
  facts_ = CollectHostFacts(SystemFactSources("/proc", "/sys"));
  facts_.host_counter_hz = host_hz;
  facts_.hal_api_version = static_cast<uint32_t>(inventory_.api_version);
  facts_.profd_version = PROFD_VERSION;
  const auto known = std::ranges::find_if(devices_, [](const DeviceInfo& one) { return FindChip(static_cast<uint32_t>(one.chip_id)) != nullptr; });
  if (known != devices_.end()) facts_.chip_id = known->chip_id;
  if (const ChipFacts* chip = FindChip(static_cast<uint32_t>(facts_.chip_id)); chip != nullptr) {
    facts_.counter_hz = chip->counter_mhz * 1e6;
    facts_.aicore_mhz = chip->aicore_mhz;
  }
}

// Made even where the tool is not to be run, so that it can report the reason.
void Node::MakeHccnReader(const DaemonConfig& config) {
  const std::string& where = config.metrics_hccn_tool;
  HccnReader::Options options;
  options.tool.path = where == "auto" ? std::string(kHccnToolPath) : where;
  options.tool.require_safe = MustBeSafe(config);
  if (!config.simulator_scenario.empty()) {
    options.tool.environment.push_back("PROFD_SIM_SCENARIO=" + config.simulator_scenario);
  }
  // Which NPUs have ports is known from the HAL.
  if (devices_.empty() && !report_.hal_error().empty()) options.usable = Unimplemented(report_.hal_error());
  if (where == "off") options.usable = FailedPrecondition("metrics.hccn_tool is \"off\"");
  for (const DeviceInfo& device : devices_) {
    const ChipFacts* chip = FindChip(static_cast<uint32_t>(device.chip_id));
    const DcmiDevice* dcmi = dcmi_ != nullptr ? dcmi_->FindByLogicalId(device.id) : nullptr;
    if (chip == nullptr || !HasHccnPorts(*chip, dcmi != nullptr ? dcmi->board_id : "")) continue;
    options.targets.push_back({device.id, device.physical_id, chip->Has(kChipHccnByPort)});
  }
  hccn_ = std::make_unique<HccnReader>(std::move(options), clock_);
}

// A dump need not notice that rounds are further apart, in time nor in what arrives at once.
int64_t RelaxedPollIntervalNs(const DaemonConfig& config) {
  constexpr int64_t kMsPerMegabyte = 10;
  return std::min({config.relaxed_poll_interval_ms, config.flush_interval_ms / 4,
                   config.queue_mb * kMsPerMegabyte, config.buffer_mb * kMsPerMegabyte}) *
         kNsPerMs;
}

void Node::Configure(const DaemonConfig& config) { pump_->SetRelaxedPollInterval(RelaxedPollIntervalNs(config)); }

void Node::StartChannels(ChannelRouter& router, const DaemonConfig& config) {
  if (hal_ == nullptr || devices_.empty()) {
    // The arbiter reads counters of the pump even on a node without devices.
    if (hal_ == nullptr) hal_ = std::make_shared<HalLibrary>(HalSymbols{});
  }
  PumpOptions options;
  options.min_poll_interval_ns = config.poll_interval_ms * kNsPerMs;
  options.relaxed_poll_interval_ns = RelaxedPollIntervalNs(config);
  options.stuck_after_ns = config.stuck_after_ms * kNsPerMs;
  pump_ = std::make_unique<ChannelPump>(hal_, clock_, *pool_, router, options);
  for (const DeviceInfo& device : devices_) {
    controls_.push_back(std::make_unique<DeviceControl>(static_cast<uint32_t>(device.id), hal_,
                                                        *pump_, clock_));
  }
}

DeviceControl* Node::ControlOf(int device) const {
  for (const auto& control : controls_) {
    if (control->device() == static_cast<uint32_t>(device)) return control.get();
  }
  return nullptr;
}

std::vector<ChannelArbiter::Device> Node::ArbiterDevices() const {
  std::vector<ChannelArbiter::Device> devices;
  for (const DeviceInfo& device : devices_) devices.push_back({&device, ControlOf(device.id)});
  return devices;
}

DeviceFacts Node::FactsOf(int device) const {
  DeviceFacts facts;
  facts.id = device;
  const auto hal = std::ranges::find(inventory_.devices, static_cast<uint32_t>(device), &HalDevice::id);
  if (hal == inventory_.devices.end()) return facts;
  facts.chip_id = hal->chip_id;
  facts.counter_hz = hal->counter_hz;
  facts.aicore_mhz = hal->aicore_mhz;
  facts.aivector_mhz = hal->aiv_mhz;
  facts.ai_core_num = static_cast<int>(hal->ai_core_num);
  facts.ai_vector_num = static_cast<int>(hal->aiv_num);
  facts.env_type = static_cast<int>(hal->env_type);
  facts.ctrl_cpus = hal->ctrl_cpus;
  facts.ai_cpus = hal->ai_cpus;
  facts.ts_cpu_num = static_cast<int>(hal->ts_cpu_core_num);
  facts.ai_cpu_bitmap = static_cast<uint64_t>(hal->aicpu_occupy_bitmap);
  return facts;
}

Status Node::MayUse(const Peer& peer, const DeviceInfo& device) const {
  if (peer.admin) return Status::Ok();
  std::string path = fmt::format("/dev/davinci{}", device.physical_id);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Status::Ok();  // no node, nothing to follow
  mode_t wanted = S_IROTH | S_IWOTH;
  if (info.st_uid == peer.uid) {
    wanted = S_IRUSR | S_IWUSR;
  } else if (peer.InGroup(info.st_gid)) {
    wanted = S_IRGRP | S_IWGRP;
  }
  if ((info.st_mode & wanted) == wanted) return Status::Ok();
  return PermissionDenied(
      fmt::format("device {}: uid {} may not open {}", device.id, peer.uid, path));
}

Result<uint32_t> Node::OwnerOf(pid_t pid) const {
  Result<UniqueFd> dir = proc_.Open(fmt::format("{}", pid));
  if (!dir.ok()) {
    // A process that may not be signalled exists, and its existence is not a secret.
    if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return dir.status();
    return PermissionDenied("the process is hidden from profd: /proc is mounted with hidepid; profd "
                            "needs CAP_SYS_PTRACE, or the group that /proc's gid= names");
  }
  struct stat info {};
  if (::fstat(dir->get(), &info) != 0) return Status::FromErrno(errno, "stat of the process");
  return static_cast<uint32_t>(info.st_uid);
}

std::optional<uint64_t> Node::StartTimeOf(pid_t pid) const {
  const Result<uint64_t> ticks = ReadStartTicks(proc_, pid);
  return ticks.ok() ? std::optional(*ticks) : std::nullopt;
}

std::string Node::BootId() const {
  const Result<std::string> text = proc_.ReadFile("sys/kernel/random/boot_id", 64);
  return text.ok() ? std::string(Trim(*text)) : std::string();
}

std::string Node::UuidOf(const DeviceInfo& device) const {
  const DcmiDevice* known = dcmi_ != nullptr ? dcmi_->FindByLogicalId(device.id) : nullptr;
  return known != nullptr ? known->uuid : std::string();
}

std::string Node::DcmiProblemOf(const DeviceInfo& device) const {
  if (dcmi_ == nullptr) return {};
  const DcmiDevice* known = dcmi_->FindByLogicalId(device.id);
  return known != nullptr ? dcmi_->ProblemOf(*known, clock_.SteadyNs())
                          : dcmi_->SilenceOf(device.id, device.physical_id);
}

std::vector<const DcmiDevice*> Node::DcmiOnlyDevices() const {
  std::vector<const DcmiDevice*> found;
  if (dcmi_ == nullptr) return found;
  for (const DcmiDevice& device : dcmi_->devices()) {
    if (std::ranges::find(devices_, device.logical_id, &DeviceInfo::id) == devices_.end()) found.push_back(&device);
  }
  return found;
}

std::vector<const DcmiDevice*> Node::LateDcmiDevices(int64_t now_steady_ns) {
  if (dcmi_ == nullptr || !dcmi_->HasSilentCards()) return {};
  std::vector<const DcmiDevice*> found = dcmi_->CheckCards(now_steady_ns);
  if (!report_.dcmi_error().empty()) ReportDcmi();
  return found;
}

void Node::CheckDeadlines(int64_t now_steady_ns) {
  for (const auto& control : controls_) control->CheckDeadlines(now_steady_ns);
  if (pump_ != nullptr) pump_->CheckStuck(now_steady_ns);
}

bool Node::HasAbandonedThreads() const {
  if (start_hung_) return true;
  if (pump_ != nullptr && pump_->stats().threads_abandoned > 0) return true;
  if (dcmi_ != nullptr &&
      (dcmi_->HasCallInFlight() || !dcmi_->StuckCalls(clock_.SteadyNs()).empty())) {
    return true;
  }
  return std::ranges::any_of(controls_, [](const auto& control) { return !control->Health().ok(); });
}

}  // namespace profd
