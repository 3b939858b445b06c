// Attached processes and what they ask for: completes a hello with what the node knows of the process,
// enters it into the job table, carries its calls to the session manager and the answers back. Lives on
// the control strand.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/clock.h"
#include "collectors/collector.h"
#include "daemon/jobs/attach_server.h"
#include "daemon/jobs/job_table.h"
#include "daemon/jobs/process_probe.h"
#include "daemon/jobs/session_calls.h"
#include "daemon/jobs/stacks_service.h"
#include "daemon/node/node_access.h"

namespace profd {

class AttachService final : public AttachServer::Handler {
 public:
  struct Deps {
    const Clock& clock;
    JobTable& table;
    ProcessProbe& probe;
    std::span<const DeviceInfo> devices;
    std::string daemon;  // "profd 0.1.0"
    const NodeProcesses& processes;
    StacksService& stacks;  // AskStacks is for it
  };

  explicit AttachService(Deps deps);

  void OnHello(AttachArrival arrival) override;
  void OnPacket(uint64_t id, attach::ToDaemon message, CarriedByReport carried) override;
  void OnClosed(uint64_t id) override;
  // Requests the stacks of a process's threads; false when it cannot be requested.
  bool AskStacks(uint64_t id, uint64_t seq);
  // Before the server's first event.
  void Serve(AttachServer* server, SessionCalls* sessions) {
    server_ = server;
    sessions_ = sessions;
  }

 private:
  struct Client {
    Peer peer;
    std::string last_session;
    std::map<std::string, std::string> metadata;
    bool answers_stacks = false;
    size_t calls = 0;  // not yet answered
  };

  void Complete(uint64_t id, const Result<ProcessFacts>& facts);
  TrainingProcess Describe(const AttachArrival& arrival, const Result<ProcessFacts>& facts,
                           bool* devices_named) const;
  void Welcome(const TrainingProcess& process);
  void Forget(uint64_t id, bool in_good_order);
  void OnStart(uint64_t id, const attach::StartCall& call);
  void OnStop(uint64_t id, const attach::StopCall& call);
  void OnStatus(uint64_t id, const attach::StatusCall& call);
  void OnMetadata(uint64_t id, const attach::MetadataCall& call);
  // False (and answered) when it has too many calls open.
  bool BeginCall(uint64_t id, uint64_t seq);
  void Answer(uint64_t id, uint64_t seq, const Result<v1::Session>& session);
  std::vector<int> LogicalIds(const std::vector<int>& physical) const;

  Deps deps_;
  AttachServer* server_ = nullptr;
  SessionCalls* sessions_ = nullptr;
  std::map<uint64_t, AttachArrival> arriving_;
  std::map<uint64_t, Client> clients_;
};

}  // namespace profd
