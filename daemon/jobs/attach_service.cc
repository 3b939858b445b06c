#include "daemon/jobs/attach_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.h"
#include "daemon/jobs/attach_calls.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr size_t kMaxOpenCalls = 64;
constexpr size_t kMaxMetadata = 64;

}  // namespace

AttachService::AttachService(Deps deps) : deps_(std::move(deps)) {}

void AttachService::OnHello(AttachArrival arrival) {
  uint64_t id = arrival.id;
  pid_t pid = arrival.peer.pid;
  arriving_.emplace(id, std::move(arrival));
  deps_.probe.Lookup(pid, [this, id](const Result<ProcessFacts>& facts) { Complete(id, facts); });
}

std::vector<int> AttachService::LogicalIds(const std::vector<int>& physical) const {
  std::vector<int> logical;
  for (const DeviceInfo& device : deps_.devices) {
    if (std::ranges::find(physical, device.physical_id) != physical.end()) {
      logical.push_back(device.id);
    }
  }
  std::ranges::sort(logical);
  return logical;
}

// The process's own word first; what it leaves out is taken from its environment and cgroup.
TrainingProcess AttachService::Describe(const AttachArrival& arrival,
                                        const Result<ProcessFacts>& facts,
                                        bool* devices_named) const {
  const attach::Hello& hello = arrival.hello;
  TrainingProcess process;
  std::vector<int> physical = hello.devices;
  if (facts.ok()) {
    process = FromFacts(arrival.peer.pid, *facts);
    if (physical.empty()) physical = DevicesOf(facts->environment);
  }
  if (process.start_ticks == 0) {
    process.start_ticks = deps_.processes.StartTimeOf(arrival.peer.pid).value_or(0);
  }
  process.pid = arrival.peer.pid;
  process.uid = arrival.peer.uid;
  process.gid = arrival.peer.gid;
  if (!hello.job_id.empty()) process.job_id = hello.job_id;
  if (hello.rank) process.rank = hello.rank;
  if (hello.local_rank) process.local_rank = hello.local_rank;
  if (hello.world_size) process.world_size = *hello.world_size;
  if (!hello.framework.empty()) {
    process.framework = hello.framework;
    MakePrintable(process.framework);
  }
  process.devices = LogicalIds(physical);
  process.found_by = "attached";
  process.attach_id = arrival.id;
  process.attached_wall_ns = deps_.clock.WallNs();
  process.attached_raw_ns = deps_.clock.MonotonicRawNs();
  *devices_named = !hello.devices.empty();
  return process;
}

void AttachService::Complete(uint64_t id, const Result<ProcessFacts>& facts) {
  auto found = arriving_.find(id);
  if (found == arriving_.end()) return;  // gone meanwhile
  AttachArrival arrival = std::move(found->second);
  arriving_.erase(found);
  if (!facts.ok() && facts.status().code() == StatusCode::kNotFound) {
    server_->Refuse(id, NotFound("the process that connected has ended"));
    return;
  }
  const std::string& job = arrival.hello.job_id;
  if (!job.empty() && !IsJobId(job)) {
    server_->Refuse(id, InvalidArgument(fmt::format(
                            "job_id = {}: letters, digits and any of . _ - : /", log::Quote(job))));
    return;
  }
  bool devices_named = false;
  TrainingProcess process = Describe(arrival, facts, &devices_named);
  Client& client = clients_[id];
  client.peer = arrival.peer;
  client.metadata = std::move(arrival.hello.metadata);
  client.answers_stacks = arrival.hello.answers_stacks;
  deps_.table.Enter(std::move(process), devices_named, std::move(arrival.ring));
  if (const TrainingProcess* entered = deps_.table.Find(id)) Welcome(*entered);
  deps_.table.Announce(id);
  server_->Ready(id);
  if (!arrival.hello.options_json.empty()) {
    attach::StartCall call;
    call.options_json = std::move(arrival.hello.options_json);
    OnStart(id, call);
  }
}

void AttachService::Welcome(const TrainingProcess& process) {
  attach::Welcome welcome{.daemon = deps_.daemon, .attach_id = process.attach_id, .job_id = process.job_id,
                          .rank = process.rank, .devices = process.devices, .takes_collector = true};
  server_->Send(process.attach_id, welcome);
}

void AttachService::OnPacket(uint64_t id, attach::ToDaemon message, CarriedByReport carried) {
  if (!clients_.contains(id)) return;
  if (auto* start = std::get_if<attach::StartCall>(&message)) {
    OnStart(id, *start);
  } else if (auto* stop = std::get_if<attach::StopCall>(&message)) {
    OnStop(id, *stop);
  } else if (auto* status = std::get_if<attach::StatusCall>(&message)) {
    OnStatus(id, *status);
  } else if (auto* metadata = std::get_if<attach::MetadataCall>(&message)) {
    OnMetadata(id, *metadata);
  } else if (auto* step = std::get_if<attach::StepReport>(&message)) {
    deps_.table.OnStep(id, *step);
  } else if (auto* report = std::get_if<attach::CollectorReport>(&message)) {
    if (carried.files != nullptr) {
      deps_.table.OnFiles(id, *report, std::move(carried.files));
    } else {
      deps_.table.OnCollector(id, *report, std::move(carried.activity));
    }
  } else if (auto* stacks = std::get_if<attach::StacksReport>(&message)) {
    deps_.stacks.OnReport(id, *stacks);
  } else if (std::holds_alternative<attach::Bye>(message)) {
    Forget(id, true);
    server_->Close(id);
  }
}

void AttachService::OnClosed(uint64_t id) {
  arriving_.erase(id);
  Forget(id, false);
}

void AttachService::Forget(uint64_t id, bool in_good_order) {
  deps_.table.Detach(id, in_good_order);
  clients_.erase(id);
  deps_.stacks.OnClosed(id);
}

bool AttachService::AskStacks(uint64_t id, uint64_t seq) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || !found->second.answers_stacks) return false;
  server_->Send(id, attach::StacksCall{seq});
  return true;
}

bool AttachService::BeginCall(uint64_t id, uint64_t seq) {
  Client& client = clients_.at(id);
  if (client.calls == kMaxOpenCalls) {
    server_->Send(id, ToReply(seq, ResourceExhausted(fmt::format(
                                       "{} calls are waiting for their answer", client.calls))));
    return false;
  }
  ++client.calls;
  return true;
}

void AttachService::Answer(uint64_t id, uint64_t seq, const Result<v1::Session>& session) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  --found->second.calls;
  server_->Send(id, ToReply(seq, session));
}

void AttachService::OnStart(uint64_t id, const attach::StartCall& call) {
  const TrainingProcess* process = deps_.table.Find(id);
  if (process == nullptr || !BeginCall(id, call.seq)) return;
  const Client& client = clients_.at(id);
  const Peer peer = client.peer;
  sessions_->Start(peer, ToRequest(call, *process, client.metadata),
              [this, id, seq = call.seq, peer](const Result<v1::Session>& session) {
                auto found = clients_.find(id);
                if (found != clients_.end() && session.ok()) {
                  found->second.last_session = session->session_id();
                } else if (session.ok()) {
                  // Its process has detached, or lost the connection, and knows nothing of it.
                  v1::StopSessionRequest request;
                  request.set_session_id(session->session_id());
                  sessions_->Stop(peer, request, [](const Result<v1::Session>&) {});
                }
                Answer(id, seq, session);
              });
}

void AttachService::OnStop(uint64_t id, const attach::StopCall& call) {
  if (!BeginCall(id, call.seq)) return;
  const Client& client = clients_.at(id);
  v1::StopSessionRequest request;
  request.set_session_id(call.session_id.empty() ? client.last_session : call.session_id);
  if (request.session_id().empty()) {
    Answer(id, call.seq, NotFound("this process has started no session"));
    return;
  }
  const Peer peer = client.peer;
  sessions_->Stop(peer, request, [this, id, seq = call.seq](const Result<v1::Session>& session) {
    Answer(id, seq, session);
  });
}

void AttachService::OnStatus(uint64_t id, const attach::StatusCall& call) {
  if (!BeginCall(id, call.seq)) return;
  const Client& client = clients_.at(id);
  const std::string& wanted = call.session_id.empty() ? client.last_session : call.session_id;
  if (wanted.empty()) {
    Answer(id, call.seq, NotFound("this process has started no session"));
    return;
  }
  Answer(id, call.seq, sessions_->Get(client.peer, wanted));
}

void AttachService::OnMetadata(uint64_t id, const attach::MetadataCall& call) {
  auto& metadata = clients_.at(id).metadata;
  if (metadata.size() < kMaxMetadata || metadata.contains(call.key)) {
    metadata[call.key] = call.value;
  }
}

}  // namespace profd
