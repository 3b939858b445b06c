#include "daemon/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/app_impl.h"
#include "daemon/node/node_view.h"
#include "daemon/node/rights.h"

namespace profd {
namespace {

constexpr int64_t kTickNs = kNsPerSecond;
constexpr int64_t kDeadlineCheckNs = 200 * kNsPerMs;
// Added to the sessions' own deadline when the daemon ends.
constexpr int64_t kEndGraceNs = 5 * kNsPerSecond;
// How long the dumps of sessions that are left to the next daemon may take to be flushed.
constexpr auto kFlushPatience = std::chrono::seconds(10);
// How often users of a device are read through DCMI.
constexpr double kDeviceUsersHz = 0.2;

}  // namespace

App::App(AppOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
App::~App() = default;

Status App::Run() {
  if (Status built = impl_->Build(); !built.ok()) {
    log::Error("cannot serve", {{"why", built.ToString()}});
    return built;
  }
  Result<bool> resume = impl_->Serve();
  // Logged before the end.
  if (!resume.ok()) log::Error("cannot serve", {{"why", resume.status().ToString()}});
  if (resume.ok() && *resume) impl_->LeaveSessions();
  impl_->End();
  return resume.status();
}

Result<bool> App::Impl::Serve() {
  const DaemonConfig& config = options.config;
  RETURN_IF_ERROR(web->Listen(config));
  rpc = std::make_unique<RpcServer>(RpcDeps{
      *control, config, config.dump_root, *node, store, hub, *health, *sessions, *records, live->watches(), *dump_requests,
      *releases, *tuning, *jobs, *archive, recorder.get(), advisor.get(), [this](const Peer& peer, v1::Node* out) { DescribeNode(peer, out); }});
  std::string warning;
  RETURN_IF_ERROR(rpc->Listen(config, &warning));
  if (!warning.empty()) log::Warning("socket", {{"problem", warning}});
  RETURN_IF_ERROR(ListenAttach());
  RETURN_IF_ERROR(push->Start(config));
  // Only a daemon that can serve: one that ends at once would end them.
  earlier->Resume(*control, *earlier_sessions);
  rpc->Start();
  jobs->Start();
  Announce();
  return WaitForSignals();
}

Status App::Impl::ListenAttach() {
  const DaemonConfig& config = options.config;
  Status users = pollers->StartDcmiTask(kDeviceUsersHz, jobs->DeviceUserTask());
  if (!users.ok()) log::Info("processes on devices are not listed", {{"why", users.message()}});
  AttachServerOptions attach;
  attach.path = AttachSocketOf(config);
  if (attach.path.empty()) return Status::Ok();
  attach.group = config.socket_group;
  attach.admin_group = config.admin_group;
  attach.max_attached = static_cast<size_t>(config.max_attached);
  std::string warning;
  RETURN_IF_ERROR(jobs->Listen(attach, sessions.get(), &warning));
  if (!warning.empty()) log::Warning("attach socket", {{"problem", warning}});
  return Status::Ok();
}

// Everything listens: start what runs always, notify systemd, log it.
void App::Impl::Announce() {
  const DaemonConfig& config = options.config;
  web->SetListening();
  control->Post([this] {
    always_on->Start(options.config.metrics_disable);
    if (recorder != nullptr) recorder->Begin(*records, *dump_requests, &jobs->table());
    if (advisor != nullptr) advisor->Begin();
    tick_timer = std::make_unique<Timer>(*control);
    Tick();
  });
  const v1::DriverInfo& report = node->report();
  log::Info("serving", {{"socket", config.socket},
                        {"metrics", web->address()},
                        {"tls", rpc->tls_address()},
                        {"dumps", config.dump_root},
                        {"devices", node->host().devices.size()},
                        {"hal", report.hal_path().empty() ? report.hal_error() : report.hal_path()},
                        {"dcmi", report.dcmi_path().empty() ? report.dcmi_error() : report.dcmi_path()},
                        {"simulated", options.simulated}});
  // The line above has the path where there is one.
  if (!report.dcmi_path().empty() && !report.dcmi_error().empty()) {
    log::Warning("libdcmi does not answer", {{"why", report.dcmi_error()}});
  }
  std::string state = fmt::format("{} devices", node->host().devices.size());
  if (node->host().devices.empty()) {
    state = "host-only mode: no usable NPU";
    log::Warning("no usable NPU: host-only mode; metrics and sessions cover the host",
                 {{"hal", report.hal_error().empty() ? "no devices" : report.hal_error()}});
  }
  for (const DeviceInfo& device : node->host().devices) {
    if (const std::string why = node->DcmiProblemOf(device); !why.empty()) {
      log::Warning("npu cannot be asked", {{"why", why}});
    }
  }
  if (const std::string tls = rpc->tls_address(); !tls.empty()) state += ", TLS on " + tls;
  for (const RightLoss& right : Rights::OfThisProcess().Losses()) {
    state += fmt::format(", without {}", right.capability);
    log::Warning("a right is missing", {{"capability", right.capability}, {"loss", right.loss}});
  }
  ::sd_notifyf(0, "READY=1\nSTATUS=%s", state.c_str());
}

Result<bool> App::Impl::WaitForSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) ::sigaddset(&signals, number);
  for (;;) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) return Internal("sigwait failed");
    if (number != SIGHUP) {
      const bool resume = number == SIGUSR2 && options.config.resume;
      log::Info("stopping", {{"signal", fmt::format("SIG{}", ::sigabbrev_np(number))},
                             {"restarting", resume}});
      return resume;
    }
    Reload();
  }
}

void App::Impl::Reload() {
  ::sd_notify(0, "RELOADING=1");
  Result<DaemonConfig> fresh = options.reload();
  if (!fresh.ok()) {
    const Status status = fresh.status();
    std::string_view problems = status.message();
    for (std::string_view problem; NextLine(&problems, &problem);) {
      log::Error("configuration not reloaded", {{"problem", problem}});
    }
  } else {
    std::vector<std::string> restart;
    if (!OnlyReloadableDiffers(options.config, *fresh, &restart)) {
      log::Warning("some changed keys need a restart",
                   {{"keys", fmt::format("{}", fmt::join(restart, ", "))}});
    }
    control->RunAndWait([this, &fresh] { Configure(*fresh); });
    rpc->Configure(options.config);
    log::Info("configuration reloaded");
  }
  ::sd_notify(0, "READY=1");
}

void App::Impl::Configure(const DaemonConfig& fresh) {
  DCHECK_ON(*control);
  options.config = WithReloadableOf(options.config, fresh);
  const DaemonConfig& config = options.config;
  node->Configure(config);
  session_deps->stop_deadline_ns = config.stop_deadline_s * kNsPerSecond;
  retention->SetLimits(QuotaOf(config));
  if (recorder != nullptr) recorder->Configure(config);
  sampling->Configure(config);
  Result<analysis::Limits> limits = ParseAdviceLimits(config.advice_limits);
  if (advisor != nullptr && limits.ok()) advisor->SetLimits(std::move(limits).value());
  archive->Configure(config);
  jobs->Configure(config.admin_group, static_cast<size_t>(config.max_attached), static_cast<uint32_t>(config.overhead_max_process_permille));
  writer->SetOptions(WriterOptionsOf(config));
}

// The control strand's only timer. Deadlines are checked every 200 ms while there are sessions,
// and every second otherwise: a node without sessions wakes up once a second.
void App::Impl::Tick() {
  const int64_t now = clock.SteadyNs();
  CheckDeadlines(now);
  if (now >= next_second_ns) {
    EverySecond();
    // On a grid of its own; after a stall from here on.
    next_second_ns = std::max(next_second_ns + kTickNs, now + kTickNs / 2);
  }
  const bool busy = records->active() > 0 || recorder != nullptr;
  tick_timer->At(busy ? std::min(next_second_ns, now + kDeadlineCheckNs) : next_second_ns, [this] { Tick(); });
}

// The first session of an idle node: what it writes is not limited before the next check.
void App::Impl::CheckDeadlinesSoon() {
  if (tick_timer == nullptr) return;
  tick_timer->At(std::min(next_second_ns, clock.SteadyNs() + kDeadlineCheckNs), [this] { Tick(); });
}

// A control strand that is stuck does not feed the watchdog.
void App::Impl::EverySecond() {
  DCHECK_ON(*control);
  arbiter->Tick();
  live->Tick();
  releases->Tick();
  sampling->Tick();
  tuning->Tick();
  retention->Tick();
  archive->Tick();
  jobs->Tick();
  rpc->CheckPath();
  if (attribution != nullptr) attribution->Tick();
  if (recorder != nullptr) recorder->Tick();
  if (advisor != nullptr) advisor->Tick();
  overhead->Tick(options.config.overhead_max_daemon_permille);
  const std::vector<std::string>& off = options.config.metrics_disable;
  if (health->Update(DriverFacts(*node, *arbiter, off), DcmiOnlyFacts(*node, off))) web->Outdate();
  UpdateSelfMetrics();
  ShowPage();
  memory.Tick(live->ended_total() + jobs->table().detached_total(), clock.SteadyNs(), &node->pool());
  if (::sd_watchdog_enabled(0, nullptr) > 0) ::sd_notify(0, "WATCHDOG=1");
}

void App::Impl::CheckDeadlines(int64_t now_ns) {
  node->CheckDeadlines(now_ns);
  for (const DcmiDevice* device : node->LateDcmiDevices(now_ns)) {
    store.SetDeviceLabels(device->logical_id, std::to_string(device->physical_id), device->uuid);
    log::Info("npu answers DCMI calls now", {{"npu", device->physical_id}});
  }
  if (DcmiService* dcmi = node->dcmi_or_null(); dcmi != nullptr) {
    for (const DcmiDenial& denial : dcmi->TakeDenials()) {
      log::Info("libdcmi does not permit a query; it is not repeated",
                {{"call", NameOf(denial.call)}, {"npu", denial.physical_id}, {"uid", ::geteuid()}});
    }
  }
  jobs->CheckDeadlines(now_ns);
  live->CheckDiskSpace();
  for (const std::string& text :
       pollers->CheckStuck(options.config.stuck_after_ms * kNsPerMs)) {
    log::Warning("libdcmi stuck", {{"call", text}});
  }
}

void App::Impl::LeaveSessions() {
  size_t active = 0;
  control->RunAndWait([this, &active] {
    live->SaveStates();
    active = records->active();
  });
  if (active == 0) return;
  ::sd_notify(0, "STOPPING=1");
  rpc->StopListening();
  auto flushed = std::make_shared<std::promise<void>>();
  writer->Flush([flushed] { flushed->set_value(); });
  bool clean = flushed->get_future().wait_for(kFlushPatience) == std::future_status::ready;
  log::Info("stopped; sessions resume at the next start", {{"flushed", clean}});
  std::_Exit(0);
}

// Sessions end cleanly within their deadline; then everything goes in the opposite order.
void App::Impl::End() {
  const int64_t patience = options.config.stop_deadline_s * kNsPerSecond + kEndGraceNs;
  // Also where TimeoutStopSec of the unit is shorter.
  ::sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld", static_cast<long long>(patience + 2 * kEndGraceNs) / 1000);
  // No new connections; calls on those there are are still answered.
  if (rpc != nullptr) rpc->StopListening();
  auto ended = std::make_shared<std::promise<void>>();
  control->Post([this, ended] {
    live->Shutdown("profd is stopping", [this, ended] {
      auto done = [ended] { ended->set_value(); };
      recorder != nullptr ? recorder->End(done) : done();
    });
  });
  bool clean = ended->get_future().wait_for(std::chrono::nanoseconds(patience)) ==
               std::future_status::ready;
  if (!clean) log::Error("sessions did not end in time");
  jobs->Stop();
  if (rpc != nullptr) rpc->Shutdown(kNsPerSecond);
  web->Stop();
  auto quiet = std::make_shared<std::promise<void>>();
  control->Post([this, quiet] {
    tick_timer.reset();
    if (attribution != nullptr) attribution->Stop();
    always_on->Stop([quiet] { quiet->set_value(); });
  });
  quiet->get_future().wait_for(std::chrono::nanoseconds(kEndGraceNs));
  log::Info("stopped", {{"clean", clean}});
  if (!clean || node->HasAbandonedThreads() || jobs->stuck()) {
    // A thread that hangs in the driver still refers to these objects: leave them to the kernel.
    std::_Exit(clean ? 0 : 1);
  }
  push->Stop();
  samplers->Stop();
  retention->Stop();
  pollers.reset();
  control_executor->Stop();
  writer->Stop();  // its last tasks use what is freed before it
  rpc.reset();
  node->StopChannels();
}

}  // namespace profd
