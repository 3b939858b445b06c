// The gRPC edge: identifies the caller, posts to the control strand, translates the answer. No
// decision is taken here and nothing here waits. The only daemon code that sees
// gRPC is in this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/strand.h"
#include "daemon/data/stream_hub.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/session/dump_requests.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/session_records.h"
#include "daemon/session/session_watches.h"

namespace profd {

class Advisor;
class ArchiveQueue;
class ChannelReleases;
class FlightRecorder;
class JobService;
class Node;
class NpuHealth;
class TuningLeases;

// What calls are answered by, on the control strand; all of it outlives the server.
struct RpcDeps {
  Strand& control;
  const DaemonConfig& config;  // as it is now
  std::string dump_root;       // where FetchDump reads
  const Node& node;
  MetricStore& store;
  StreamHub& hub;
  const NpuHealth& health;
  SessionManager& sessions;
  const SessionRecords& records;
  SessionWatches& watches;
  DumpRequests& dumps;
  ChannelReleases& releases;
  TuningLeases& tuning;
  JobService& jobs;
  ArchiveQueue& archive;
  FlightRecorder* recorder_or_null;  // off
  Advisor* advisor_or_null;          // off
  // Fills in the node's description.
  std::function<void(const Peer&, v1::Node*)> describe_node;
};

class RpcServer {
 public:
  explicit RpcServer(const RpcDeps& deps);
  ~RpcServer();

  // Binds the unix socket, and the port for other machines where there is one: connections wait until Start. A warning (no
  // group of that name) goes to `*warning`.
  Status Listen(const DaemonConfig& config, std::string* warning);
  void Start();
  // Limits, groups and users as they are now. Not on the control strand: looking users up may wait for a directory service.
  void Configure(const DaemonConfig& config);
  // About once a second: looks after the unix socket's file.
  void CheckPath();
  // No new connections; who is connected stays known. Idempotent.
  void StopListening();
  // No new calls, and those that run get until the deadline.
  void Shutdown(int64_t patience_ns);

  // Where other machines connect; empty when that is off.
  std::string tls_address() const;
  void UpdateMetrics(SelfMetrics* self) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
