// Jobs and attached processes: wiring of the job service to sessions, RPC and metrics.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/log.h"
#include "base/log_limit.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// How often DCMI is asked who uses a device.
constexpr double kDeviceUsersHz = 0.2;

// Supplementary groups, as /proc has them; of a process that has gone, none.
std::vector<uint32_t> GroupsOf(const Host& host, pid_t pid) {
  std::istringstream words(StatusField(host.proc, pid, "Groups"));
  return {std::istream_iterator<uint32_t>(words), std::istream_iterator<uint32_t>()};
}

}  // namespace

void App::Impl::BuildJobs() {
  JobService::Deps deps{*control, node->host()};
  deps.daemon = "profd " PROFD_VERSION;
  deps.start_ticks_of = [this](pid_t pid) { return node->StartTimeOf(pid); };
  deps.start = [this](const Peer& peer, const v1::SessionSpec& request,
                      AttachService::SessionReply reply) {
    sessions->Start(peer, request, std::move(reply));
  };
  deps.stop = [this](const Peer& peer, const v1::StopSessionRequest& request,
                     AttachService::SessionReply reply) {
    sessions->Stop(peer, request, std::move(reply));
  };
  deps.get = [this](const Peer& peer, const std::string& id) { return sessions->Get(peer, id); };
  deps.active_sessions = [this] {
    Peer everybody;
    everybody.admin = true;
    v1::ListSessionsRequest request;
    request.set_active_only(true);
    std::vector<ActiveSession> active;
    const v1::ListSessionsResponse all = sessions->List(everybody, request);
    for (const v1::Session& session : all.sessions()) {
      active.push_back({session.session_id(), session.spec().target().job_id(), session.owner().uid()});
    }
    return active;
  };
  deps.on_ring_broken = [this, limit = LogLimit()](const TrainingProcess& process, const Status& why) mutable {
    uint64_t left_out = 0;
    if (!limit.Allow(process.uid, clock.SteadyNs(), &left_out)) return;
    log::Warning("ring of a process given up", {{"pid", process.pid},
                                                {"uid", process.uid},
                                                {"why", why.message()},
                                                {"left_out", left_out}});
  };
  deps.collect_permille = [this] { return static_cast<uint32_t>(options.config.overhead_max_process_permille); };
  deps.may_collect = [this](const TrainingProcess& process) {
    Peer owner;
    owner.uid = process.uid;
    return tuning->MayProfile(owner, process.devices);
  };
  jobs = std::make_unique<JobService>(std::move(deps));
}

void App::Impl::BuildSampling() {
  sampling = std::make_unique<ScheduledRecording>(
      ScheduledRecording::Deps{*control, clock, *sessions, jobs->table(),
                               [this](pid_t pid) { return GroupsOf(node->host(), pid); }},
      options.config);
}

void App::Impl::AnswerJobs(RpcDeps* deps) {
  deps->list_jobs = [this](const Peer& peer, const v1::ListJobsRequest& request,
                           v1::ListJobsResponse* out,
                           const std::function<void(const Status&)>& finish) {
    jobs->ListJobs(peer, request, out);
    finish(Status::Ok());
  };
  deps->get_activity = [this](const Peer& peer, const v1::GetActivityRequest& request,
                              v1::GetActivityResponse* out,
                              const std::function<void(const Status&)>& finish) {
    finish(jobs->GetActivity(peer, request, out));
  };
  deps->get_stacks = [this](const Peer& peer, const v1::GetStacksRequest& request, v1::GetStacksResponse* out,
                            const std::function<void(const Status&)>& finish) {
    jobs->stacks().Get(peer, request, out, finish);
  };
}

Status App::Impl::ServeAttach() {
  const DaemonConfig& config = options.config;
  Status users = pollers->StartDcmiTask(kDeviceUsersHz, jobs->DeviceUserTask());
  if (!users.ok()) log::Info("processes on devices are not listed", {{"why", users.message()}});
  attach_socket = AttachSocketOf(config);
  if (attach_socket.empty()) return Status::Ok();
  AttachServerOptions attach;
  attach.path = attach_socket;
  attach.group = config.socket_group;
  attach.admin_group = config.admin_group;
  attach.max_attached = static_cast<size_t>(config.max_attached);
  std::string warning;
  RETURN_IF_ERROR(jobs->Listen(attach, &warning));
  if (!warning.empty()) log::Warning("attach socket", {{"problem", warning}});
  return Status::Ok();
}

void App::Impl::UpdateJobMetrics() {
  auto set = [this](MetricId metric, auto value, std::string_view label = {}) {
    self->Set(metric, static_cast<double>(value), label);
  };
  const JobTable::Counters& table = jobs->table().counters();
  set(MetricByName("profd_attached_processes"), jobs->table().attached());
  set(MetricByName("profd_attaches_total"), table.attaches);
  set(MetricByName("profd_marks_total"), table.marks);
  set(MetricByName("profd_marks_dropped_total"), table.dropped_marks);
  set(MetricByName("profd_marks_clamped_total"), table.clamped_marks);
  set(MetricByName("profd_mark_rings_broken_total"), table.broken_rings);
  set(MetricByName("profd_activity_records_total"), table.activity_records);
  set(MetricByName("profd_activity_dropped_total"), table.dropped_activity);
  set(MetricByName("profd_activity_lost_bytes_total"), table.lost_activity_bytes);
  set(MetricByName("profd_activity_clamped_total"), table.clamped_activity);
  set(MetricByName("profd_activity_rings_broken_total"), table.broken_activity_rings);
  const ScheduledRecording::Counts& recordings = sampling->counts();
  set(MetricByName("profd_scheduled_recordings_total"), recordings.started, "started");
  set(MetricByName("profd_scheduled_recordings_total"), recordings.failed, "failed");
  set(MetricByName("profd_scheduled_recordings_total"), recordings.busy, "busy");
  const AttachCounters* attach = jobs->attach_counters();
  if (attach == nullptr) return;
  set(MetricByName("profd_attach_refused_total"), attach->refused_limit.load(), "limit");
  set(MetricByName("profd_attach_refused_total"), attach->refused_user_limit.load(), "user_limit");
  set(MetricByName("profd_attach_refused_total"), attach->refused_hello.load(), "hello");
  set(MetricByName("profd_attach_protocol_errors_total"), attach->protocol_errors.load());
  set(MetricByName("profd_attach_slow_disconnects_total"), attach->slow_disconnects.load());
}

}  // namespace profd
