// The daemon's parts in the order they are made; they go in the opposite one. Private to app*.cc. What a part does and
// keeps is in its folder: here the parts are made for each other, run and end.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/strand.h"
#include "daemon/advice/advisor.h"
#include "daemon/app.h"
#include "daemon/archive/archive_queue.h"
#include "daemon/attribution/attribution.h"
#include "daemon/collect/always_on.h"
#include "daemon/collect/collector_stats.h"
#include "daemon/collect/daemon_overhead.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/data/channel_router.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/stream_hub.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/dumps/state_store.h"
#include "daemon/health/npu_health.h"
#include "daemon/jobs/job_service.h"
#include "daemon/memory.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/node/node.h"
#include "daemon/push/push_service.h"
#include "daemon/recorder/flight_recorder.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/session/channel_arbiter.h"
#include "daemon/session/channel_releases.h"
#include "daemon/session/dump_requests.h"
#include "daemon/session/earlier_runs.h"
#include "daemon/session/earlier_sessions.h"
#include "daemon/session/live_sessions.h"
#include "daemon/session/scheduled_recording.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/session_planner.h"
#include "daemon/session/session_records.h"
#include "daemon/session/tuning_leases.h"
#include "daemon/web/metrics_endpoint.h"

namespace profd {

struct App::Impl final : DumpRetention::Watcher, DeviceWatcher {
  explicit Impl(AppOptions o) : options(std::move(o)) {}

  // app_build.cc: makes the parts.
  Status Build();
  void BuildCollecting();
  void BuildJobs();
  void BuildArchive();
  void BuildTuning();
  void BuildSessions();
  void BuildRecorder();
  void BuildReleases();
  void BuildAdvice();
  void Recover();
  // DumpRetention::Watcher, for the sessions and the probes:
  void OnFound(const DumpRetention::RecoveredDump& found) override;
  void OnRemoved(const std::string& name, std::string_view reason) override;
  void OnComplete() override;
  // DeviceWatcher, for the arbiter:
  void OnDeviceStuck(uint32_t device, std::string_view why) override;
  void OnDeviceRecovered(uint32_t device) override;

  // app.cc: serve, tick, end. Serve's answer: whether sessions are to resume at the next start (SIGUSR2).
  Result<bool> Serve();
  Status ListenAttach();
  void Announce();
  Result<bool> WaitForSignals();
  void Reload();
  void Configure(const DaemonConfig& fresh);
  void Tick();
  void CheckDeadlinesSoon();
  void EverySecond();
  void CheckDeadlines(int64_t now_ns);
  // Where there are sessions: ends the process as it is, once everything read so far is in its dump,
  // so that the next daemon resumes them.
  void LeaveSessions();
  void End();

  // app_view.cc: what all parts report.
  void DescribeNode(const Peer& peer, v1::Node* out);
  void UpdateSelfMetrics();
  void ShowPage();

  AppOptions options;
  SystemClock clock;
  int64_t started_ns = 0;
  MetricStore store;
  StreamHub hub;
  CollectorStatsTable stats;
  std::unique_ptr<Node> node;
  std::unique_ptr<Executor> control_executor;
  std::unique_ptr<SamplerPool> samplers;
  std::unique_ptr<Strand> control;
  std::unique_ptr<StateStore> state_store;  // before the writer, whose last tasks use it
  std::unique_ptr<DumpWriter> writer;
  std::unique_ptr<WriterStateSaver> states;
  std::unique_ptr<DumpRetention> retention;
  std::unique_ptr<ArchiveQueue> archive;
  std::unique_ptr<EarlierRuns> earlier;
  std::unique_ptr<ChannelRouter> router;
  std::unique_ptr<ChannelArbiter> arbiter;
  std::unique_ptr<PollEngine> pollers;
  std::unique_ptr<AlwaysOn> always_on;
  std::unique_ptr<DaemonOverhead> overhead;
  std::unique_ptr<TuningLeases> tuning;
  std::unique_ptr<JobService> jobs;
  std::unique_ptr<Attribution> attribution;  // null: off
  std::unique_ptr<SelfMetrics> self;
  std::unique_ptr<FlightRecorder> recorder;  // null: off
  std::unique_ptr<SessionDeps> session_deps;
  std::unique_ptr<SessionRecords> records;
  std::unique_ptr<SessionPlanner> planner;
  std::unique_ptr<LiveSessions> live;
  std::unique_ptr<SessionManager> sessions;
  std::unique_ptr<EarlierSessions> earlier_sessions;
  std::unique_ptr<DumpRequests> dump_requests;
  std::unique_ptr<ChannelReleases> releases;
  std::unique_ptr<ScheduledRecording> sampling;
  std::unique_ptr<Advisor> advisor;  // null: off
  std::unique_ptr<NpuHealth> health;
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<MetricsEndpoint> web;
  std::unique_ptr<PushService> push;
  MemoryTrim memory;
  std::unique_ptr<Timer> tick_timer;
  int64_t next_second_ns = 0;
};

QuotaLimits QuotaOf(const DaemonConfig& config);
DumpWriter::Options WriterOptionsOf(const DaemonConfig& config);

// Compiler and target the daemon was built with: "g++ 12.2.0 aarch64". In app_view.cc.
std::string BuildText();

}  // namespace profd
