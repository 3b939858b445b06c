#include "daemon/jobs/job_service.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "daemon/metrics/self_metrics.h"
#include "driver/dcmi_service.h"
#include "profd/v1/profd.pb.h"

namespace profd {

struct JobService::UserLook {
  DcmiService* dcmi = nullptr;
  Mutex mutex;
  std::vector<std::vector<pid_t>> pids GUARDED_BY(mutex);  // by device; kept when a call fails
  JobService* service GUARDED_BY(mutex) = nullptr;            // null: no longer needed
};

namespace {

std::vector<DeviceUse> ByProcess(std::span<const DcmiDevice> devices,
                                 const std::vector<std::vector<pid_t>>& pids) {
  std::map<pid_t, std::vector<int>> uses;
  for (size_t i = 0; i < pids.size(); ++i) {
    for (pid_t pid : pids[i]) uses[pid].push_back(devices[i].logical_id);
  }
  std::vector<DeviceUse> result;
  for (auto& [pid, ids] : uses) {
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    result.push_back({pid, std::move(ids)});
  }
  return result;
}

}  // namespace

JobService::JobService(Deps deps)
    : deps_(std::move(deps)),
      probe_(deps_.control, deps_.host.proc, deps_.host.clock),
      copier_(deps_.control, deps_.host.clock),
      look_(std::make_shared<UserLook>()) {
  table_ = std::make_unique<JobTable>(JobTable::Deps{
      deps_.control, deps_.host.clock, deps_.processes, deps_.gate, *this, deps_.collect_permille, &probe_});
  stacks_ = std::make_unique<StacksService>(StacksService::Deps{
      deps_.control, *table_, probe_,
      [this](uint64_t id, uint64_t seq) { return service_->AskStacks(id, seq); }});
  service_ = std::make_unique<AttachService>(AttachService::Deps{
      deps_.host.clock, *table_, probe_, deps_.host.devices, deps_.daemon, deps_.processes, *stacks_});
  look_->service = this;
  look_->dcmi = deps_.host.dcmi_or_null;
}

JobService::~JobService() {
  Stop();
  MutexLock lock(look_->mutex);
  look_->service = nullptr;
}

Status JobService::Listen(const AttachServerOptions& options, SessionCalls* sessions, std::string* warning) {
  attach_socket_ = options.path;
  auto server = AttachServer::Listen(options, deps_.control, deps_.host.clock, *service_,
                                     warning);
  if (!server.ok()) return server.status();
  server_ = std::move(server).value();
  server_->SetDisposer([this](UniqueFd fd) { probe_.Dispose(std::move(fd)); });
  service_->Serve(server_.get(), sessions);
  return Status::Ok();
}

void JobService::Start() {
  if (server_ != nullptr) server_->Start();
}

void JobService::Stop() {
  if (server_ != nullptr) server_->Stop();
}

void JobService::Configure(const std::string& admin_group, size_t max_attached, uint32_t collect_permille) {
  DCHECK_ON(deps_.control);
  table_->SetCollectLimit(collect_permille);
  if (server_ != nullptr) server_->Configure(admin_group, max_attached);
}

std::function<void()> JobService::DeviceUserTask() {
  // A thread that was left behind in a call may come back while its successor is at work.
  return [look = look_] {
    const std::span<const DcmiDevice> devices = look->dcmi->devices();
    for (size_t i = 0; i < devices.size(); ++i) {
      auto answer = look->dcmi->Processes(devices[i]);
      if (!answer.ok()) continue;
      MutexLock lock(look->mutex);
      if (look->pids.size() < devices.size()) look->pids.resize(devices.size());
      look->pids[i].clear();
      for (uint32_t n = 0; n < answer.value.count; ++n) {
        int pid = answer.value.processes[n].proc_id;
        if (pid > 0) look->pids[i].push_back(pid);
      }
    }
    MutexLock lock(look->mutex);
    std::vector<DeviceUse> uses = ByProcess(look->dcmi->devices(), look->pids);
    if (JobService* service = look->service; service != nullptr) {
      service->deps_.control.Post([service, uses = std::move(uses)] { service->OnUses(uses); });
    }
  };
}

void JobService::Send(uint64_t attach_id, const attach::ToProcess& message) {
  if (server_ != nullptr) server_->Send(attach_id, message);
}

void JobService::OnRingBroken(const TrainingProcess& process, const Status& why) {
  Send(process.attach_id, attach::Reply{0, static_cast<int>(why.code()), why.message() + "; it is not read any more", {}});
  uint64_t left_out = 0;
  if (!broken_logged_.Allow(process.uid, deps_.host.clock.SteadyNs(), &left_out)) return;
  log::Warning("ring of a process given up",
               {{"pid", process.pid}, {"uid", process.uid}, {"why", why.message()}, {"left_out", left_out}});
}

void JobService::OnUses(std::vector<DeviceUse> uses) {
  DCHECK_ON(deps_.control);
  if (looking_) return;
  looking_ = true;
  probe_.LookupUsers(std::move(uses), [this](Result<std::vector<TrainingProcess>> users) {
    looking_ = false;
    if (users.ok()) table_->SetDeviceUsers(std::move(users).value());
  });
}

void JobService::ListJobs(const Peer& peer, const v1::ListJobsRequest& request_untrusted,
                          std::span<const ActiveSession> sessions, v1::ListJobsResponse* out) const {
  DCHECK_ON(deps_.control);
  DescribeJobs(peer, request_untrusted, table_->Processes(), sessions, deps_.host.clock.MonotonicRawNs(), out);
}

Status JobService::GetActivity(const Peer& peer, const v1::GetActivityRequest& request_untrusted,
                               v1::GetActivityResponse* out) const {
  DCHECK_ON(deps_.control);
  const Clock& clock = deps_.host.clock;
  out->set_wall_offset_ns(clock.WallNs() - clock.MonotonicRawNs());
  return DescribeActivity(
      peer, request_untrusted, table_->Processes(),
      [this](uint64_t attach_id) { return table_->FindActivity(attach_id); }, out);
}

void JobService::UpdateMetrics(SelfMetrics* self) const {
  const JobTable::Counters& table = table_->counters();
  self->Set(MetricByName("profd_attached_processes"), table_->attached());
  self->Set(MetricByName("profd_attaches_total"), table.attaches);
  self->Set(MetricByName("profd_marks_total"), table.marks);
  self->Set(MetricByName("profd_marks_dropped_total"), table.dropped_marks);
  self->Set(MetricByName("profd_marks_clamped_total"), table.clamped_marks);
  self->Set(MetricByName("profd_mark_rings_broken_total"), table.broken_rings);
  self->Set(MetricByName("profd_activity_records_total"), table.activity_records);
  self->Set(MetricByName("profd_activity_dropped_total"), table.dropped_activity);
  self->Set(MetricByName("profd_activity_lost_bytes_total"), table.lost_activity_bytes);
  self->Set(MetricByName("profd_activity_clamped_total"), table.clamped_activity);
  self->Set(MetricByName("profd_activity_rings_broken_total"), table.broken_activity_rings);
  if (server_ == nullptr) return;
  const AttachCounters& attach = server_->counters();
  constexpr MetricId kRefused = MetricByName("profd_attach_refused_total");
  self->Set(kRefused, attach.refused_limit.load(), "limit");
  self->Set(kRefused, attach.refused_user_limit.load(), "user_limit");
  self->Set(kRefused, attach.refused_hello.load(), "hello");
  self->Set(MetricByName("profd_attach_protocol_errors_total"), attach.protocol_errors.load());
  self->Set(MetricByName("profd_attach_slow_disconnects_total"), attach.slow_disconnects.load());
}

}  // namespace profd
