// The daemon's objects in the order they are made; they go in the opposite one. Private to app*.cc.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "daemon/advice/advisor.h"
#include "daemon/app.h"
#include "daemon/archive/archive_queue.h"
#include "daemon/attribution/attribution.h"
#include "daemon/collect/collector_stats.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/data/channel_router.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/stream_hub.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/dumps/state_store.h"
#include "daemon/health/health_board.h"
#include "daemon/jobs/job_service.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/node/node.h"
#include "daemon/push/push_sink.h"
#include "daemon/recorder/flight_recorder.h"
#include "daemon/rpc/acceptor.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/session/channel_arbiter.h"
#include "base/overhead_budget.h"
#include "daemon/session/channel_releases.h"
#include "daemon/session/scheduled_recording.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/tuning_leases.h"
#include "daemon/web/web_server.h"

namespace profd {

struct NodeView;

// In app_web.cc: the HTTP endpoint and what it answers from.
struct MetricsEndpoint;
struct MetricsEndpointDeleter {
  void operator()(MetricsEndpoint* endpoint) const;
};

struct App::Impl {
  explicit Impl(AppOptions o) : options(std::move(o)) {}

  // app.cc: start, serve, end.
  Status Build();
  Status Serve();
  void Announce();
  Status WaitForSignals();
  void Reload();
  void End();
  // Where there are sessions: ends the process as it is, once everything read so far is in its dump,
  // so that the next daemon goes on with them.
  void LeaveSessions();
  void StartAlwaysOn();
  void Tick();
  void EverySecond();
  void CheckDeadlines(int64_t now_ns);
  void CheckDeadlinesSoon();
  void BuildSessions();
  void DeclareRoutes();
  // app_dumps.cc: dumps and sessions of earlier runs, room for them, calls about them.
  Status OpenState(const DumpRoot& root);
  void KeepSessions(SessionManager::Deps* deps);
  void RecoverDumps();
  void ContinueSessions();
  void AnswerDumps(RpcDeps* deps);
  // app_channels.cc: channels that are released to other tools.
  void BuildReleases();
  void AnswerReleases(RpcDeps* deps);
  void AnswerJobs(RpcDeps* deps);
  void UpdateDumpMetrics();
  DumpWriter::Options WriterOptions() const;
  // node_view.cc: what GetNode answers and the self metrics of the channels.
  void DescribeNode(const Peer& peer, v1::Node* out);
  void DescribeDevice(const DeviceInfo& device, v1::Node* out);
  void DescribeCollectors(v1::Node* out);
  void AnswerOptions(RpcDeps* deps);
  void UpdateSelfMetrics();
  void UpdateChannelMetrics();
  void UpdateWriterMetrics();
  // app_health.cc: how the NPUs are.
  DeviceReadings ReadingsOf(const DeviceInfo& device);
  void UpdateHealth();
  void DescribeHealth(int device, v1::Device* out) const;
  void DescribeNodeHealth(v1::Node* out) const;
  // app_topology.cc: how they are connected.
  void DescribeTopology(v1::Topology* out);
  // app_memory.cc
  static void LimitMemory();
  void TrimMemory(int64_t now_ns);
  // app_ages.cc
  void UpdateSampleAges();
  // app_jobs.cc: jobs and attached processes.
  void BuildJobs();
  Status ServeAttach();
  void UpdateJobMetrics();
  void BuildSampling();
  // app_tuning.cc: devices that are kept for tuning.
  void BuildTuning();
  void AnswerTuning(RpcDeps* deps);
  void UpdateTuningMetrics();
  // app_overhead.cc: what profd itself may cost.
  void TickOverhead();
  int pace() const;  // of so many readings of polled collectors one takes place
  void DescribeOverhead(v1::Node* out) const;
  void UpdateOverheadMetrics();
  // app_archive.cc: finished dumps on their way into a database.
  void BuildArchive();
  void AnswerArchive(RpcDeps* deps);
  Result<std::vector<std::string>> MayArchive(const v1::FetchDumpRequest& request_untrusted) const;
  void DescribeArchive(v1::Node* out) const;
  void UpdateArchiveMetrics();
  AcceptorOptions AcceptorOptionsNow() const;
  // app_attribution.cc: whose work the NPUs do, in metrics.
  void BuildAttribution();
  void UpdateTlsMetrics();
  void UpdateCallMetrics();
  // app_recorder.cc: the flight recorder, where it is on.
  void BuildRecorder(SessionManager::Deps* deps);
  void AnswerRecorder(RpcDeps* deps);
  void DescribeRecorder(v1::Node* out);
  void UpdateRecorderMetrics();
  // app_advice.cc: what is wrong with jobs now, where that is on.
  void BuildAdvice();
  void OnAdvice(const AdviceChange& change);
  void TickAdvice();
  void AnswerAdvice(RpcDeps* deps);
  void UpdateAdviceMetrics();
  void ShowAdvice(NodeView* view) const;
  // app_web.cc: /metrics and the other paths.
  void BuildWeb();
  Status ServeWeb();
  void EndWeb();
  void WebListens();
  void WebSawDumps();
  WebResponse AnswerMetrics(const WebRequest& request);
  WebResponse AnswerPage();
  void UpdateWeb();
  void UpdateWebMetrics();
  // app_push.cc: metrics for receivers that are pushed to.
  Status ServePush();
  void UpdatePushMetrics();
  // Where other machines connect; empty when that is off.
  std::string TlsAddress() const;

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
  std::unique_ptr<DumpRetention> retention;
  std::unique_ptr<ArchiveQueue> archive;
  std::vector<std::string> old_dumps;                // of earlier runs
  std::map<std::string, std::string> old_sessions;   // that had not ended: id, state file
  std::shared_ptr<std::promise<void>> found_sessions;  // their dumps have been looked at
  std::shared_ptr<std::promise<void>> found_all;       // all old dumps have
  bool dumps_unknown = false;  // a session's state was saved before its dump was made: it is known when all have been
  std::unique_ptr<ChannelRouter> router;
  std::unique_ptr<ChannelArbiter> arbiter;
  std::unique_ptr<PollEngine> pollers;
  std::unique_ptr<JobService> jobs;
  std::unique_ptr<Attribution> attribution;  // null: off
  std::unique_ptr<SelfMetrics> self;
  std::unique_ptr<FlightRecorder> recorder;  // null: off
  std::unique_ptr<TuningLeases> tuning;
  std::unique_ptr<SessionManager> sessions;
  std::unique_ptr<ChannelReleases> releases;
  std::unique_ptr<ScheduledRecording> sampling;
  std::unique_ptr<Advisor> advisor;  // null: off
  int64_t advice_ns = 0;             // that its last look took
  HealthBoard health;
  std::map<int, SeriesId> verdict_series;  // of atlas_npu_verdict, by device
  bool web_outdated = false;               // the health has changed since the last picture
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<MetricsEndpoint, MetricsEndpointDeleter> web;
  std::vector<std::pair<std::string_view, std::unique_ptr<PushSink>>> pushes;  // they read the store
  bool restarting = false;  // ended by SIGUSR2: sessions are not to be stopped
  std::string metrics_address;
  bool metrics_tls = false;
  std::string attach_socket;  // empty = processes cannot attach
  std::vector<PollEngine::Handle> always_on;
  std::vector<CollectorIndex> always_on_collectors;  // of these
  OverheadBudget budget;
  std::unique_ptr<Timer> tick_timer;
  int64_t next_second_ns = 0;
  // Device, collector, when its newest block came: kept for its memory.
  std::vector<std::tuple<uint32_t, CollectorIndex, int64_t>> newest_blocks;
  int64_t next_trim_ns = 0;
  uint64_t trimmed_at_session = 0;
  int64_t watchdog_ns = 0;
};

QuotaLimits QuotaOf(const DaemonConfig& config);

// Of the machine's present run; empty if it is not known. In app_dumps.cc.
std::string BootId(const Node& node);

// Compiler and target the daemon was built with: "g++ 12.2.0 aarch64". In node_view.cc.
std::string BuildText();

}  // namespace profd
