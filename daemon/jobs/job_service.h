// Everything about jobs in one place: the table, the attach socket, the look at who uses a device.
// Composition only. Lives on the control strand unless stated otherwise.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log_limit.h"
#include "daemon/jobs/activity_view.h"
#include "daemon/jobs/attach_service.h"
#include "daemon/jobs/collected_files.h"
#include "daemon/jobs/job_view.h"
#include "daemon/jobs/stacks_service.h"

namespace profd {

class SelfMetrics;

class JobService final : private JobTable::Handler {
 public:
  struct Deps {
    Strand& control;
    const Host& host;
    const NodeProcesses& processes;
    const ProfilingGate& gate;
    std::string daemon;             // "profd 0.1.0"
    uint32_t collect_permille = 0;  // as JobTable has it
  };

  explicit JobService(Deps deps);
  ~JobService();

  JobTable& table() { return *table_; }
  // For what a watcher takes with OnFiles.
  FileCopier& copier() { return copier_; }
  // Any thread. Without it processes cannot attach.
  Status Listen(const AttachServerOptions& options, SessionCalls* sessions, std::string* warning);
  // Any thread, after Listen: those that wait come in.
  void Start();
  // Empty: processes cannot attach.
  const std::string& attach_socket() const { return attach_socket_; }
  // Any thread: no process attaches any more, attached ones are disconnected.
  void Stop();
  void Configure(const std::string& admin_group, size_t max_attached, uint32_t collect_permille);

  // For the DCMI thread, every few seconds: who uses a device now. Captures what may be left behind.
  std::function<void()> DeviceUserTask();

  void ListJobs(const Peer& peer, const v1::ListJobsRequest& request_untrusted,
                std::span<const ActiveSession> sessions, v1::ListJobsResponse* out) const;
  Status GetActivity(const Peer& peer, const v1::GetActivityRequest& request_untrusted,
                     v1::GetActivityResponse* out) const;
  StacksService& stacks() { return *stacks_; }
  // About once a second.
  void Tick() {
    table_->Tick();
    if (server_ != nullptr) server_->CheckPath();
  }
  void CheckDeadlines(int64_t now_steady_ns) {
    probe_.CheckDeadlines(now_steady_ns);
    copier_.CheckDeadlines(now_steady_ns);
  }
  // A thread of ours sits in the kernel and will be left behind.
  bool stuck() const { return probe_.stuck() || copier_.stuck(); }
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  // Shared with the DCMI thread, which may outlive everything else.
  struct UserLook;
  void OnUses(std::vector<DeviceUse> uses);
  // JobTable::Handler:
  void Send(uint64_t attach_id, const attach::ToProcess& message) override;
  void OnRingBroken(const TrainingProcess& process, const Status& why) override;

  Deps deps_;
  ProcessProbe probe_;
  FileCopier copier_;
  std::unique_ptr<JobTable> table_;
  std::unique_ptr<StacksService> stacks_;
  std::unique_ptr<AttachService> service_;
  std::unique_ptr<AttachServer> server_;
  std::string attach_socket_;
  std::shared_ptr<UserLook> look_;
  LogLimit broken_logged_;  // rings, by user
  bool looking_ = false;  // a lookup of users is under way
};

}  // namespace profd
