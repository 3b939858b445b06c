// Makes the daemon's parts and gives each what it needs of the others.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <span>
#include <utility>
#include <vector>

#include "base/log.h"
#include "collectors/channel_options.h"
#include "daemon/app_impl.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/last_words.h"
#include "daemon/node/rights.h"
#include "daemon/session/session_plan.h"

namespace profd {
namespace {

// Descriptors are cheap and host_cpu keeps one per process; systemd gives the hard limit.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kWanted = 65536;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kWanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Every channel that some collector could ask for on some device gets its route now, so that the
// router's table is fixed before the pump runs.
void DeclareRoutes(std::span<const DeviceInfo> devices, ChannelRouter* router) {
  std::span<const CollectorEntry> collectors = Collectors();
  for (const DeviceInfo& device : devices) {
    for (size_t i = 0; i < collectors.size(); ++i) {
      if (collectors[i].plan == nullptr) continue;
      ChannelOptions everything;
      SetEverything(*collectors[i].spec, collectors[i].spec->default_hz, &everything);
      for (const ChannelRequest& request : collectors[i].plan(device, everything)) {
        router->Declare(static_cast<uint32_t>(device.id), request.channel, static_cast<CollectorIndex>(i));
      }
    }
  }
}

std::unique_ptr<Attribution> NewAttribution(Attribution::Deps deps, const Node& node, const DaemonConfig& config) {
  if (!config.attribution_enabled || !config.metrics_enabled) return nullptr;
  deps.notice = [](const std::string& source, const std::string& what) {
    log::Warning("attribution", {{"source", source}, {"what", what}});
  };
  deps.own_uid = ::geteuid();
  deps.more_devices = [&node] {
    std::vector<DeviceInfo> more;
    for (const DcmiDevice* device : node.DcmiOnlyDevices()) {
      more.push_back({.id = device->logical_id, .physical_id = device->physical_id, .uuid = device->uuid});
    }
    return more;
  };
  return std::make_unique<Attribution>(std::move(deps), config);
}

}  // namespace

QuotaLimits QuotaOf(const DaemonConfig& config) {
  return {.total = static_cast<uint64_t>(config.max_total_mb) << 20,
          .per_uid = static_cast<uint64_t>(config.max_kept_mb_per_uid) << 20,
          .pinned_per_uid = static_cast<uint64_t>(config.max_pinned_mb_per_uid) << 20};
}

DumpWriter::Options WriterOptionsOf(const DaemonConfig& config) {
  return {.queue_bytes = static_cast<uint64_t>(config.queue_mb) << 20,
          .flush_interval_ns = config.flush_interval_ms * kNsPerMs,
          .min_free_bytes = static_cast<uint64_t>(config.min_free_mb) << 20,
          .sync_interval_ns = config.sync_interval_ms * kNsPerMs};
}

Status App::Impl::Build() {
  EndCleanlyWithoutMemory();
  LimitMemory();
  RaiseFileLimit();
  started_ns = clock.SteadyNs();
  const DaemonConfig& config = options.config;
  Result<std::unique_ptr<Node>> found = Node::Discover(config, clock);
  if (!found.ok()) return found.status();
  node = std::move(found).value();
  if (options.simulator_only && node->host().devices.empty()) {
    return FailedPrecondition("the simulated node has no devices (see the simulator's message above)");
  }
  for (const DeviceInfo& device : node->host().devices) {
    store.SetDeviceLabels(device.id, std::to_string(device.physical_id), device.uuid);
  }
  // NPUs that the HAL does not list, or there is no HAL.
  for (const DcmiDevice* device : node->DcmiOnlyDevices()) {
    store.SetDeviceLabels(device->logical_id, std::to_string(device->physical_id), device->uuid);
  }
  Result<DumpRoot> root = DumpRoot::Open(config.dump_root);
  if (!root.ok()) return root.status().Annotate("dump.root");
  state_store = std::make_unique<StateStore>(StateDirOf(config));
  if (Status locked = state_store->Lock(); !locked.ok()) return locked.Annotate("dump.state_dir");
  Result<std::unique_ptr<EarlierRuns>> runs = EarlierRuns::Find(*root, *state_store);
  if (!runs.ok()) return runs.status();
  earlier = std::move(runs).value();
  control_executor = std::make_unique<Executor>("profd-control", 1);
  samplers = std::make_unique<SamplerPool>("profd-sample", 2);
  control = std::make_unique<Strand>(*control_executor);
  health = std::make_unique<NpuHealth>(*control, store, clock);
  writer = std::make_unique<DumpWriter>(std::move(root).value(), clock, node->pool(), WriterOptionsOf(config));
  states = std::make_unique<WriterStateSaver>(*control, *writer, *state_store);
  BuildCollecting();
  BuildTuning();
  BuildJobs();
  attribution = NewAttribution({*control, clock, node->host(), jobs->table(), store, &node->process_names()}, *node,
                               config);
  retention = std::make_unique<DumpRetention>(
      DumpRetention::Deps{*control, clock, *state_store, *states, config.dump_root}, QuotaOf(config));
  BuildArchive();
  self = std::make_unique<SelfMetrics>(node->host());
  BuildSessions();
  BuildReleases();
  sampling = std::make_unique<ScheduledRecording>(
      ScheduledRecording::Deps{*control, clock, *sessions, *records, *dump_requests, jobs->table(),
                               [this](pid_t pid) { return ReadGroups(node->host().proc, pid); }},
      config);
  BuildAdvice();
  web = std::make_unique<MetricsEndpoint>(store, *self, clock);
  push = std::make_unique<PushService>(store, *self);
  Recover();
  return Status::Ok();
}

void App::Impl::BuildCollecting() {
  router = std::make_unique<ChannelRouter>(store, hub, stats, this);
  DeclareRoutes(node->host().devices, router.get());
  node->StartChannels(*router, options.config);
  arbiter = std::make_unique<ChannelArbiter>(
      ChannelArbiter::Deps{*control, node->host(), store, *router, *node->pump_or_null()}, node->ArbiterDevices());
  pollers = std::make_unique<PollEngine>(PollEngine::Deps{node->host(), store, hub, *samplers, stats});
  always_on = std::make_unique<AlwaysOn>(*control, node->host(), *pollers);
  overhead = std::make_unique<DaemonOverhead>(*pollers, clock);
}

void App::Impl::BuildJobs() {
  jobs = std::make_unique<JobService>(JobService::Deps{*control, node->host(), *node, *tuning, "profd " PROFD_VERSION,
                                                       static_cast<uint32_t>(options.config.overhead_max_process_permille)});
}

void App::Impl::BuildArchive() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  const Result<std::string> saved = state_store->Load(kArchiveFile);
  if (!saved.ok()) log::Error("what waits for the database cannot be read", {{"why", saved.status().ToString()}});
  archive = std::make_unique<ArchiveQueue>(ArchiveQueue::Deps{*control, clock, *retention, host.data(), *states, *node}, options.config,
                                           saved.value_or(""));
}

void App::Impl::BuildTuning() {
  // Both are made later, and for leases.
  auto profiled_by = [this](const Peer& peer, std::span<const uint32_t> devices) {
    std::string session = records->ProfilingOn(peer, devices);
    return session.empty() ? jobs->table().CollectingOn(devices) : session;
  };
  tuning = std::make_unique<TuningLeases>(
      TuningLeases::Deps{*control, clock, node->host().devices, *node, *node, *states, std::move(profiled_by), node->BootId()});
  const Result<std::string> saved = state_store->Load(kTuningFile);
  if (saved.ok()) {
    control->RunAndWait([&] { tuning->Load(*saved); });
  } else {
    log::Warning("saved tuning leases cannot be read", {{"why", saved.status().ToString()}});
  }
}

void App::Impl::BuildSessions() {
  const DaemonConfig& config = options.config;
  session_deps = std::make_unique<SessionDeps>(SessionDeps{*control, node->host(), store, *arbiter, *pollers, *writer, node->facts(), *node,
                                                           *node, Manifest{}, config.stop_deadline_s * kNsPerSecond});
  session_deps->jobs_or_null = &jobs->table();
  session_deps->copier_or_null = &jobs->copier();
  Manifest& base = session_deps->manifest_base;
  base.profd_version = PROFD_VERSION;
  base.build = BuildText();
  base.hal_api_version = node->report().hal_api_version();
  base.driver_version = node->report().driver_version();
  base.dcmi_version = node->report().dcmi_version();
  BuildRecorder();
  records = std::make_unique<SessionRecords>(*control, clock, config, retention.get());
  planner = std::make_unique<SessionPlanner>(*session_deps, config);
  const SessionKeeping keeping{*session_deps, config, *records, *retention, *states, node->BootId(), retention.get()};
  live = std::make_unique<LiveSessions>(keeping, [this] { CheckDeadlinesSoon(); });
  sessions = std::make_unique<SessionManager>(keeping, *live, *planner, *tuning, Rights::OfThisProcess());
  earlier_sessions = std::make_unique<EarlierSessions>(keeping, *live, *planner);
  dump_requests = std::make_unique<DumpRequests>(*control, *records, *retention, retention.get());
}

void App::Impl::BuildRecorder() {
  if (!options.config.recorder_enabled) return;
  Result<std::unique_ptr<FlightRecorder>> made = FlightRecorder::Create(
      FlightRecorder::Deps{*session_deps, *router, *self, *retention}, options.config);
  if (!made.ok()) {
    log::Error("no flight recorder", {{"why", made.status().ToString()}});
    return;
  }
  recorder = std::move(made).value();
  session_deps->history_or_null = recorder.get();
}

// Before the first session starts: an earlier run of the daemon may have released channels.
void App::Impl::BuildReleases() {
  releases = std::make_unique<ChannelReleases>(
      ChannelReleases::Deps{*control, clock, *arbiter, node->host().devices, *node, *states,
                            [this](const std::string& session) { return records->UidOf(session); }});
  Result<std::string> saved = state_store->Load(kReleasesFile);
  if (!saved.ok()) {
    log::Warning("released channels of an earlier run cannot be read", {{"why", saved.status().ToString()}});
    return;
  }
  if (saved->empty()) return;
  control->RunAndWait([this, &saved] { releases->Restore(*saved); });
}

void App::Impl::BuildAdvice() {
  if (!options.config.advice_enabled) return;
  Result<analysis::Limits> limits = ParseAdviceLimits(options.config.advice_limits);
  advisor = std::make_unique<Advisor>(
      Advisor::Deps{*control, jobs->table(), store, clock,
                    [this](pid_t pid) { return ReadState(node->host().proc, pid); },
                    [this](const AdviceChange& change) {
                      web->Outdate();
                      if (!change.raised || recorder == nullptr) return;
                      const LiveAdvice& advice = change.advice;
                      recorder->OnAdvice(advice.check, WhereOf(advice) + ": " + advice.what, advice.job_id);
                    }},
      limits.ok() ? std::move(limits).value() : analysis::Limits());
}

void App::Impl::Recover() {
  retention->Watch(archive.get());
  retention->Watch(this);
  earlier->Begin(*control, retention.get(), node->BootId());
}

void App::Impl::OnFound(const DumpRetention::RecoveredDump& found) {
  if (!found.dump.session_id.empty()) earlier_sessions->AddFound(SessionOf(found, options.config.dump_root));
}

void App::Impl::OnRemoved(const std::string& name, std::string_view reason) { records->OnDumpRemoved(name, reason); }

void App::Impl::OnComplete() { web->SetDumpsSeen(); }

void App::Impl::OnDeviceStuck(uint32_t device, std::string_view why) {
  control->Post([this, device, why = std::string(why)] { arbiter->OnDeviceStuck(device, why); });
}

void App::Impl::OnDeviceRecovered(uint32_t device) {
  control->Post([this, device] { arbiter->OnDeviceRecovered(device); });
}

}  // namespace profd
