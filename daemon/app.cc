#include "daemon/app.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <utility>

#include "base/log.h"
#include "collectors/channel_options.h"
#include "daemon/app_impl.h"
#include "daemon/last_words.h"
#include "daemon/node/rights.h"
#include "daemon/rpc/tls_server.h"

namespace profd {
namespace {

constexpr int64_t kTickNs = kNsPerSecond;
constexpr int64_t kDeadlineCheckNs = 200 * kNsPerMs;
// Added to the sessions' own deadline when the daemon ends.
constexpr int64_t kEndGraceNs = 5 * kNsPerSecond;

// Descriptors are cheap and host_cpu keeps one per process; systemd gives the hard limit.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kWanted = 65536;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kWanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

App::App(AppOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
App::~App() = default;

Status App::Run() {
  if (Status built = impl_->Build(); !built.ok()) {
    log::Error("cannot serve", {{"why", built.ToString()}});
    return built;
  }
  Status status = impl_->Serve();
  // Before what is said of the end.
  if (!status.ok()) log::Error("cannot serve", {{"why", status.ToString()}});
  if (impl_->restarting) impl_->LeaveSessions();
  impl_->End();
  return status;
}

DumpWriter::Options App::Impl::WriterOptions() const {
  DumpWriter::Options result;
  result.queue_bytes = static_cast<uint64_t>(options.config.queue_mb) << 20;
  result.flush_interval_ns = options.config.flush_interval_ms * kNsPerMs;
  result.min_free_bytes = static_cast<uint64_t>(options.config.min_free_mb) << 20;
  result.sync_interval_ns = options.config.sync_interval_ms * kNsPerMs;
  return result;
}

Status App::Impl::Build() {
  EndCleanlyWithoutMemory();
  LimitMemory();
  RaiseFileLimit();
  started_ns = clock.SteadyNs();
  BuildWeb();
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
  Result<DumpRoot> root = DumpRoot::Open(config.dump_root);
  if (!root.ok()) return root.status().Annotate("dump.root");
  RETURN_IF_ERROR(OpenState(*root));
  control_executor = std::make_unique<Executor>("profd-control", 1);
  samplers = std::make_unique<SamplerPool>("profd-sample", 2);
  control = std::make_unique<Strand>(*control_executor);
  writer = std::make_unique<DumpWriter>(std::move(root).value(), clock, node->pool(),
                                        WriterOptions());
  router = std::make_unique<ChannelRouter>(
      store, hub, stats,
      ChannelRouter::Events{
          [this](uint32_t device, std::string why) {
            control->Post([this, device, why] {
              arbiter->OnDeviceStuck(device, why);
            });
          },
          [this](uint32_t device) {
            control->Post([this, device] { arbiter->OnDeviceRecovered(device); });
          }});
  DeclareRoutes();
  node->StartChannels(*router, config);
  arbiter = std::make_unique<ChannelArbiter>(
      ChannelArbiter::Deps{*control, node->host(), store, *router, *node->pump_or_null()},
      node->ArbiterDevices());
  pollers = std::make_unique<PollEngine>(
      PollEngine::Deps{node->host(), store, hub, *samplers, stats});
  BuildJobs();
  BuildAttribution();
  retention = std::make_unique<DumpRetention>(
      DumpRetention::Deps{*control, clock, *state_store, config.dump_root}, QuotaOf(config));
  BuildArchive();
  self = std::make_unique<SelfMetrics>(node->host());
  BuildTuning();
  BuildSessions();
  BuildReleases();
  BuildSampling();
  RecoverDumps();
  return Status::Ok();
}

void App::Impl::BuildSessions() {
  const DaemonConfig& config = options.config;
  SessionManager::Deps deps{
      SessionDeps{*control, node->host(), store, *arbiter, *pollers, *writer, node->facts(),
                  [this](int device) { return node->FactsOf(device); },
                  [this](int device) { return node->ControlOf(device); },
                  [this](pid_t pid) { return node->StartTimeOf(pid); }, Manifest{},
                  config.stop_deadline_s * kNsPerSecond},
      [this](pid_t pid) { return node->OwnerOf(pid); },
      [](const Peer& peer, const DeviceInfo& device) { return Node::MayUse(peer, device); },
      [this](const std::string& name, std::function<void(Result<uint64_t>)> done) {
        retention->Remove(name, "request", std::move(done));
      }};
  KeepSessions(&deps);
  deps.may_profile = [this](const Peer& peer, std::span<const int> devices) { return tuning->MayProfile(peer, devices); };
  deps.may_give_dump = [](uint32_t uid) { return Rights::OfThisProcess().MayGiveDump(uid); };
  deps.session.jobs_or_null = &jobs->table();
  deps.session.copier_or_null = &jobs->copier();
  Manifest& base = deps.session.manifest_base;
  base.profd_version = PROFD_VERSION;
  base.build = BuildText();
  base.hal_api_version = static_cast<uint32_t>(node->report().hal_api_version);
  base.driver_version = node->report().driver_version;
  base.dcmi_version = node->report().dcmi_version;
  BuildRecorder(&deps);
  sessions = std::make_unique<SessionManager>(std::move(deps), config);
}

// Every channel that some collector could ask for on some device gets its route now, so that the
// router's table is fixed before the pump runs.
void App::Impl::DeclareRoutes() {
  std::span<const CollectorEntry> collectors = Collectors();
  for (const DeviceInfo& device : node->host().devices) {
    for (size_t i = 0; i < collectors.size(); ++i) {
      if (collectors[i].plan == nullptr) continue;
      ChannelOptions everything;
      SetEverything(*collectors[i].spec, collectors[i].spec->default_hz, &everything);
      for (const ChannelRequest& request : collectors[i].plan(device, everything)) {
        router->Declare(static_cast<uint32_t>(device.id), request.channel,
                        static_cast<CollectorIndex>(i));
      }
    }
  }
}

void App::Impl::StartAlwaysOn() {
  std::span<const CollectorEntry> collectors = Collectors();
  for (size_t i = 0; i < collectors.size(); ++i) {
    const CollectorSpec& spec = *collectors[i].spec;
    const auto& off = options.config.metrics_disable;
    if (spec.always_on_hz <= 0 || collectors[i].make_poller == nullptr) continue;
    if (std::find(off.begin(), off.end(), spec.name) != off.end()) continue;
    if (Status probe = collectors[i].probe_host(node->host()); !probe.ok()) {
      log::Info("collector off", {{"collector", spec.name}, {"why", probe.message()}});
      continue;
    }
    PollOptions poll;
    poll.hz = spec.always_on_hz;
    Result<PollEngine::Handle> handle =
        pollers->Start(static_cast<CollectorIndex>(i), poll, nullptr);
    if (handle.ok()) {
      always_on.push_back(*handle);
      always_on_collectors.push_back(static_cast<CollectorIndex>(i));
    } else {
      log::Warning("collector failed to start",
                   {{"collector", spec.name}, {"why", handle.status().ToString()}});
    }
  }
}

Status App::Impl::Serve() {
  const DaemonConfig& config = options.config;
  RETURN_IF_ERROR(ServeWeb());
  RpcDeps deps{*control, *sessions, store, hub, config.dump_root,
               [this](const Peer& peer, v1::Node* out) { DescribeNode(peer, out); }};
  deps.may_see_process = [this](const Peer& peer, pid_t pid) {
    Result<uint32_t> owner = node->OwnerOf(pid);
    return owner.ok() ? peer.Sees(*owner) : peer.admin || peer.viewer;
  };
  AnswerOptions(&deps);
  AnswerRecorder(&deps);
  deps.get_time = [this](const Peer&, const v1::GetTimeRequest&, v1::GetTimeResponse* out,
                         const std::function<void(const Status&)>& finish) {
    out->set_wall_ns(clock.WallNs());
    out->set_raw_ns(clock.MonotonicRawNs());
    finish(Status::Ok());
  };
  deps.get_topology = [this](const Peer&, const v1::GetTopologyRequest&, v1::Topology* out,
                             const std::function<void(const Status&)>& finish) {
    DescribeTopology(out);
    finish(Status::Ok());
  };
  deps.renew_lease = [this](const Peer& peer, const v1::RenewLeaseRequest& request,
                            v1::RenewLeaseResponse* out,
                            const std::function<void(const Status&)>& finish) {
    Result<std::optional<uint64_t>> left = sessions->RenewLease(peer, request.session_id());
    if (left.ok() && *left) out->set_left_ms(**left);
    finish(left.status());
  };
  AnswerDumps(&deps);
  AnswerReleases(&deps);
  AnswerJobs(&deps);
  AnswerTuning(&deps);
  AnswerAdvice(&deps);
  AnswerArchive(&deps);
  rpc = std::make_unique<RpcServer>(deps);
  std::string warning;
  Result<std::unique_ptr<Acceptor>> listening =
      Acceptor::Listen(AcceptorOptionsNow(), [this](int fd) { rpc->Adopt(fd); }, &warning);
  if (!listening.ok()) return listening.status();
  acceptor = std::move(listening).value();
  rpc->SetAcceptor(acceptor.get());
  acceptor->OnQuiet([this] { return rpc->Rest(); });
  // Before a client can ask for its address.
  if (!config.tls_listen.empty()) RETURN_IF_ERROR(rpc->ListenTls(TlsOptionsOf(config)));
  ContinueSessions();
  acceptor->Start();
  if (!warning.empty()) log::Warning("socket", {{"problem", warning}});

  RETURN_IF_ERROR(ServeAttach());
  RETURN_IF_ERROR(ServePush());
  Announce();
  return WaitForSignals();
}

// Everything listens: start what runs always, notify systemd, log it.
void App::Impl::Announce() {
  const DaemonConfig& config = options.config;
  uint64_t watchdog_us = 0;
  if (::sd_watchdog_enabled(0, &watchdog_us) > 0) {
    watchdog_ns = static_cast<int64_t>(watchdog_us) * 1000;
  }
  WebListens();
  control->Post([this] {
    StartAlwaysOn();
    if (recorder != nullptr) recorder->Begin(*sessions, &jobs->table());
    BuildAdvice();
    tick_timer = std::make_unique<Timer>(*control);
    Tick();
  });
  const DriverReport& report = node->report();
  log::Info("serving", {{"socket", config.socket},
                        {"metrics", metrics_address},
                        {"tls", TlsAddress()},
                        {"dumps", config.dump_root},
                        {"devices", node->host().devices.size()},
                        {"hal", report.hal_path.empty() ? report.hal_error : report.hal_path},
                        {"dcmi", report.dcmi_path.empty() ? report.dcmi_error : report.dcmi_path},
                        {"simulated", options.simulated}});
  std::string state = fmt::format("{} devices", node->host().devices.size());
  if (node->host().devices.empty()) {
    state = "host-only mode: no usable NPU";
    log::Warning("no usable NPU: host-only mode; metrics and sessions cover the host",
                 {{"hal", report.hal_error.empty() ? "no devices" : report.hal_error}});
  }
  for (const DeviceInfo& device : node->host().devices) {
    if (const std::string why = node->DcmiProblemOf(device); !why.empty()) {
      log::Warning("npu cannot be asked", {{"why", why}});
    }
  }
  if (!TlsAddress().empty()) state += ", TLS on " + TlsAddress();
  for (const RightLoss& right : Rights::OfThisProcess().Losses()) {
    state += fmt::format(", without {}", right.capability);
    log::Warning("a right is missing", {{"capability", right.capability}, {"loss", right.loss}});
  }
  ::sd_notifyf(0, "READY=1\nSTATUS=%s", state.c_str());
}

Status App::Impl::WaitForSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) ::sigaddset(&signals, number);
  for (;;) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) return Internal("sigwait failed");
    if (number != SIGHUP) {
      restarting = number == SIGUSR2 && options.config.resume;
      log::Info("stopping", {{"signal", fmt::format("SIG{}", ::sigabbrev_np(number))},
                             {"restarting", restarting}});
      return Status::Ok();
    }
    Reload();
  }
}

void App::Impl::Reload() {
  ::sd_notify(0, "RELOADING=1");
  Result<DaemonConfig> fresh = options.reload();
  if (!fresh.ok()) {
    log::Error("configuration not reloaded", {{"problems", fresh.status().message()}});
  } else {
    std::vector<std::string> restart;
    if (!OnlyReloadableDiffers(options.config, *fresh, &restart)) {
      log::Warning("some changed keys need a restart",
                   {{"keys", fmt::format("{}", fmt::join(restart, ", "))}});
    }
    std::promise<void> done;
    control->Post([this, &fresh, &done] {
      options.config = WithReloadableOf(options.config, *fresh);
      sessions->Configure(options.config);
      retention->SetLimits(QuotaOf(options.config));
      if (recorder != nullptr) recorder->Configure(options.config);
      sampling->Configure(options.config);
      Result<analysis::Limits> limits = ParseAdviceLimits(options.config.advice_limits);
      if (advisor != nullptr && limits.ok()) advisor->SetLimits(std::move(limits).value());
      archive->Configure(options.config);
      jobs->Configure(options.config.admin_group,
                      static_cast<size_t>(options.config.max_attached));
      writer->SetOptions(WriterOptions());
      done.set_value();
    });
    done.get_future().wait();
    // Not on the strand: looking users up may wait for a directory service.
    acceptor->Configure(AcceptorOptionsNow());
    if (TlsServer* tls = rpc->tls(); tls != nullptr) {
      if (Status users = tls->Configure(TlsOptionsOf(options.config)); !users.ok()) {
        log::Error("tls.users not reloaded", {{"problems", users.message()}});
      }
    }
    log::Info("configuration reloaded");
  }
  ::sd_notify(0, "READY=1");
}

// The control strand's only timer. What guards what is going on comes every 200 ms while anything is,
// and every second otherwise: a node without sessions wakes up once a second.
void App::Impl::Tick() {
  const int64_t now = clock.SteadyNs();
  CheckDeadlines(now);
  if (now >= next_second_ns) {
    EverySecond();
    // On a grid of its own; after a stall from here on.
    next_second_ns = std::max(next_second_ns + kTickNs, now + kTickNs / 2);
  }
  const bool busy = sessions->active() > 0 || recorder != nullptr;
  tick_timer->At(busy ? std::min(next_second_ns, now + kDeadlineCheckNs) : next_second_ns, [this] { Tick(); });
}

// The first session of an idle node: what it writes is not limited before the next check.
void App::Impl::CheckDeadlinesSoon() {
  if (tick_timer == nullptr) return;
  tick_timer->At(std::min(next_second_ns, clock.SteadyNs() + kDeadlineCheckNs), [this] { Tick(); });
}

// A control strand that is stuck does not feed the watchdog.
void App::Impl::EverySecond() {
  arbiter->Tick();
  sessions->Tick();
  releases->Tick();
  sampling->Tick();
  tuning->Tick();
  retention->Tick();
  archive->Tick();
  jobs->Tick();
  if (attribution != nullptr) attribution->Tick();
  if (recorder != nullptr) recorder->Tick();
  TickAdvice();
  TickOverhead();
  UpdateHealth();
  UpdateSelfMetrics();
  UpdateWeb();
  TrimMemory(clock.SteadyNs());
  if (watchdog_ns > 0) ::sd_notify(0, "WATCHDOG=1");
}

void App::Impl::CheckDeadlines(int64_t now_ns) {
  node->CheckDeadlines(now_ns);
  for (const DcmiDevice* device : node->LateDcmiDevices(now_ns)) {
    store.SetDeviceLabels(device->logical_id, std::to_string(device->physical_id), device->uuid);
    log::Info("npu answers DCMI calls now", {{"npu", device->physical_id}});
  }
  jobs->CheckDeadlines(now_ns);
  sessions->CheckDiskSpace();
  for (const std::string& text :
       pollers->CheckStuck(options.config.stuck_after_ms * kNsPerMs)) {
    log::Warning("libdcmi stuck", {{"call", text}});
  }
}

// Sessions end cleanly within their deadline; then everything goes in the opposite order.
void App::Impl::End() {
  ::sd_notify(0, "STOPPING=1");
  // No new connections. Calls on those there are still have to be identified: it goes after rpc.
  if (acceptor != nullptr) acceptor->Stop();
  if (rpc != nullptr && rpc->tls() != nullptr) rpc->tls()->Stop();
  auto ended = std::make_shared<std::promise<void>>();
  control->Post([this, ended] {
    sessions->Shutdown("profd is stopping", [this, ended] {
      auto done = [ended] { ended->set_value(); };
      recorder != nullptr ? recorder->End(done) : done();
    });
  });
  int64_t patience = options.config.stop_deadline_s * kNsPerSecond + kEndGraceNs;
  bool clean = ended->get_future().wait_for(std::chrono::nanoseconds(patience)) ==
               std::future_status::ready;
  if (!clean) log::Error("sessions did not end in time");
  jobs->Stop();
  if (rpc != nullptr) rpc->Shutdown(kNsPerSecond);
  EndWeb();
  auto quiet = std::make_shared<std::promise<void>>();
  control->Post([this, quiet] {
    tick_timer.reset();
    if (attribution != nullptr) attribution->Stop();
    auto left = std::make_shared<size_t>(always_on.size() + 1);
    auto gone = [this, left, quiet] {
      control->Post([left, quiet] {
        if (--*left == 0) quiet->set_value();
      });
    };
    for (PollEngine::Handle handle : always_on) pollers->Stop(handle, gone);
    gone();
  });
  quiet->get_future().wait_for(std::chrono::nanoseconds(kEndGraceNs));
  log::Info("stopped", {{"clean", clean}});
  if (!clean || node->HasAbandonedThreads() || jobs->stuck()) {
    // A thread that hangs in the driver still refers to these objects: leave them to the kernel.
    std::_Exit(clean ? 0 : 1);
  }
  pushes.clear();
  samplers->Stop();
  retention->Stop();
  pollers.reset();
  control_executor->Stop();
  rpc.reset();
  node->StopChannels();
}

}  // namespace profd
