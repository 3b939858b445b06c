// The methods of profd's services: which object answers each of them.
#include <functional>
#include <string>
#include <vector>

#include "daemon/advice/advisor.h"
#include "daemon/archive/archive_queue.h"
#include "daemon/jobs/job_service.h"
#include "daemon/node/node.h"
#include "daemon/node/rights.h"
#include "daemon/node/topology.h"
#include "daemon/recorder/flight_recorder.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/session/channel_releases.h"
#include "daemon/session/option_calls.h"
#include "daemon/session/tuning_leases.h"
#include "profd/v1/profd.grpc.pb.h"

namespace profd {
namespace {

using Call = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;
template <class Message>
using StreamReactor = grpc::ServerWriteReactor<Message>;

const google::protobuf::ServiceDescriptor& ServiceOf(const char* name) {
  return *v1::Node::descriptor()->file()->FindServiceByName(name);
}

class NodeMethods final : public v1::NodeService::CallbackService, private rpc::ServiceCalls {
 public:
  explicit NodeMethods(rpc::Context& context)
      : ServiceCalls(context, ServiceOf("NodeService")), deps_(context.deps), context_(context) {}

  Reactor* GetNode(Call* call, const v1::GetNodeRequest* request, v1::Node* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto&, auto* out) {
      deps_.describe_node(peer, out);
      return Status::Ok();
    });
  }

  Reactor* GetTopology(Call* call, const v1::GetTopologyRequest* request, v1::Topology* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer&, const auto&, auto* out) {
      DescribeTopology(deps_.node.host(), deps_.store, deps_.health, out);
      return Status::Ok();
    });
  }

  Reactor* ReleaseChannels(Call* call, const v1::ReleaseChannelsRequest* request, v1::ChannelReleases* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      deps_.releases.Release(peer, asked, reply, finish);
    });
  }

  Reactor* AcquireChannels(Call* call, const v1::AcquireChannelsRequest* request, v1::ChannelReleases* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, std::bind_front(&ChannelReleases::Acquire, &deps_.releases));
  }

  Reactor* GetTime(Call* call, const v1::GetTimeRequest* request, v1::GetTimeResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer&, const auto&, auto* out) {
      const Clock& clock = deps_.node.host().clock;
      out->set_wall_ns(clock.WallNs());
      out->set_raw_ns(clock.MonotonicRawNs());
      return Status::Ok();
    });
  }

  Reactor* ListOptions(Call* call, const v1::ListOptionsRequest* request, v1::ListOptionsResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer&, const auto&, auto* out) {
      profd::ListOptions(deps_.node.host(), out);
      return Status::Ok();
    });
  }

  Reactor* CheckOptions(Call* call, const v1::CheckOptionsRequest* request, v1::CheckOptionsResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto& asked, auto* out) {
      profd::CheckOptions(deps_.node.host(), peer.admin ? 0 : static_cast<double>(deps_.config.max_user_hz), asked, out);
      return Status::Ok();
    });
  }

  Reactor* ListJobs(Call* call, const v1::ListJobsRequest* request, v1::ListJobsResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto& asked, auto* out) {
      deps_.jobs.ListJobs(peer, asked, deps_.records.ActiveSessions(), out);
      return Status::Ok();
    });
  }

  Reactor* GetActivity(Call* call, const v1::GetActivityRequest* request, v1::GetActivityResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, std::bind_front(&JobService::GetActivity, &deps_.jobs));
  }

  Reactor* GetStacks(Call* call, const v1::GetStacksRequest* request, v1::GetStacksResponse* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      deps_.jobs.stacks().Get(peer, asked, reply, finish);
    });
  }

  StreamReactor<v1::SampleChunk>* StreamSamples(Call* call, const v1::StreamSamplesRequest* request) override {
    return Stream<v1::SampleChunk>(__func__, call, rpc::CallKind::kStream, *request,
                                   std::bind_front(rpc::NewSampleStream, std::ref(context_)));
  }

  Reactor* GetAdvice(Call* call, const v1::GetAdviceRequest* request, v1::GetAdviceResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, std::bind_front(rpc::GetAdvice, std::ref(deps_)));
  }

  StreamReactor<v1::GetAdviceResponse>* WatchAdvice(Call* call, const v1::WatchAdviceRequest* request) override {
    return Stream<v1::GetAdviceResponse>(__func__, call, rpc::CallKind::kWatch, *request,
                                         std::bind_front(rpc::NewAdviceWatch, std::ref(context_)));
  }

 private:
  RpcDeps& deps_;
  rpc::Context& context_;
};

class SessionMethods final : public v1::SessionService::CallbackService, private rpc::ServiceCalls {
 public:
  explicit SessionMethods(rpc::Context& context)
      : ServiceCalls(context, ServiceOf("SessionService")), deps_(context.deps), context_(context) {}

  Reactor* StartSession(Call* call, const v1::StartSessionRequest* request, v1::Session* reply) override {
    return Answer(__func__, call, *request, reply, [this, call, reply](const Peer& peer, const auto& asked, auto finish) {
      const Status late(StatusCode::kCancelled, "the call has ended before its answer");
      if (call->IsCancelled()) {
        finish(late);
        return;
      }
      // This service may go with its last call: not `this` after finish.
      deps_.sessions.Start(peer, asked.spec(), [&sessions = deps_.sessions, call, late, finish, reply](const Result<v1::Session>& session) {
        const bool is_late = session.ok() && call->IsCancelled();
        if (session.ok() && !is_late) *reply = *session;
        const bool has_answer = finish(is_late ? late : session.status());
        // Its caller has no id to stop it by.
        if (session.ok() && (is_late || !has_answer)) sessions.Withdraw(session->session_id());
      });
    });
  }

  Reactor* StopSession(Call* call, const v1::StopSessionRequest* request, v1::Session* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      deps_.sessions.Stop(peer, asked, Into(reply, finish));
    });
  }

  Reactor* GetSession(Call* call, const v1::GetSessionRequest* request, v1::Session* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      Into(reply, finish)(deps_.records.Get(peer, asked.session_id()));
    });
  }

  Reactor* ListSessions(Call* call, const v1::ListSessionsRequest* request, v1::ListSessionsResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto& asked, auto* out) {
      *out = deps_.records.List(peer, asked);
      return Status::Ok();
    });
  }

  StreamReactor<v1::Session>* WatchSession(Call* call, const v1::WatchSessionRequest* request) override {
    return Stream<v1::Session>(__func__, call, rpc::CallKind::kWatch, *request,
                               std::bind_front(rpc::NewWatch, std::ref(context_)));
  }

  Reactor* RenewLease(Call* call, const v1::RenewLeaseRequest* request, v1::RenewLeaseResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto& asked, auto* out) {
      Result<std::optional<uint64_t>> left = deps_.sessions.RenewLease(peer, asked.session_id());
      if (left.ok() && *left) out->set_left_ms(**left);
      return left.status();
    });
  }

  Reactor* DumpRecorder(Call* call, const v1::DumpRecorderRequest* request, v1::Session* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      Status may = deps_.recorder_or_null == nullptr
                       ? FailedPrecondition("the flight recorder is off here (recorder.enabled)")
                       : Rights::OfThisProcess().MayGiveDump(peer.uid);
      if (!may.ok()) {
        finish(may);
        return;
      }
      deps_.recorder_or_null->Dump(peer, asked, Into(reply, finish));
    });
  }

  Reactor* AcquireTuningLease(Call* call, const v1::AcquireTuningLeaseRequest* request, v1::TuningLease* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      deps_.tuning.Acquire(peer, asked, reply, finish);
    });
  }

  Reactor* ReleaseTuningLease(Call* call, const v1::ReleaseTuningLeaseRequest* request, v1::ReleaseTuningLeaseResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto& asked, auto*) {
      return deps_.tuning.Release(peer, asked.lease_id());
    });
  }

  Reactor* ListTuningLeases(Call* call, const v1::ListTuningLeasesRequest* request, v1::ListTuningLeasesResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto&, auto* out) {
      deps_.tuning.List(peer, out->mutable_leases());
      return Status::Ok();
    });
  }

 private:
  template <class Finish>
  static SessionCalls::Reply Into(v1::Session* reply, Finish finish) {
    return [reply, finish](const Result<v1::Session>& session) {
      if (session.ok()) *reply = *session;
      finish(session.status());
    };
  }

  RpcDeps& deps_;
  rpc::Context& context_;
};

class DumpMethods final : public v1::DumpService::CallbackService, private rpc::ServiceCalls {
 public:
  explicit DumpMethods(rpc::Context& context)
      : ServiceCalls(context, ServiceOf("DumpService")), deps_(context.deps), context_(context) {}

  StreamReactor<v1::DumpChunk>* FetchDump(Call* call, const v1::FetchDumpRequest* request) override {
    return Stream<v1::DumpChunk>(__func__, call, rpc::CallKind::kFetch, *request,
                                 std::bind_front(rpc::NewFetch, std::ref(context_)));
  }

  Reactor* DeleteDump(Call* call, const v1::DeleteDumpRequest* request, v1::DeleteDumpResponse* reply) override {
    return Answer(__func__, call, *request, reply, [this, reply](const Peer& peer, const auto& asked, auto finish) {
      const std::vector<std::string> waited =
          deps_.archive.WaitingOf(deps_.dumps.DumpsOf(peer, asked.session_id(), asked.dump()).value_or({}));
      deps_.dumps.Delete(peer, asked.session_id(), asked.dump(), [reply, finish, waited](const Result<uint64_t>& freed) {
        if (freed.ok()) {
          reply->set_freed_bytes(*freed);
          reply->mutable_not_archived()->Assign(waited.begin(), waited.end());
        }
        finish(freed.status());
      });
    });
  }

  Reactor* ListDumps(Call* call, const v1::ListDumpsRequest* request, v1::ListDumpsResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto&, auto* out) {
      *out = deps_.dumps.List(peer);
      for (v1::Dump& dump : *out->mutable_dumps()) deps_.archive.Describe(&dump);
      return Status::Ok();
    });
  }

  Reactor* PinDump(Call* call, const v1::PinDumpRequest* request, v1::PinDumpResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, std::bind_front(&DumpRequests::Pin, &deps_.dumps));
  }

  Reactor* UnpinDump(Call* call, const v1::UnpinDumpRequest* request, v1::UnpinDumpResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, std::bind_front(&DumpRequests::Unpin, &deps_.dumps));
  }

  Reactor* ArchiveDumps(Call* call, const v1::ArchiveDumpsRequest* request, v1::ArchiveDumpsResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, std::bind_front(&ArchiveQueue::Request, &deps_.archive));
  }

  Reactor* ClaimArchiveUpload(Call* call, const v1::ClaimArchiveUploadRequest* request, v1::ClaimArchiveUploadResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer& peer, const auto&, auto* out) {
      return deps_.archive.Take(peer, out);
    });
  }

  Reactor* ReportArchive(Call* call, const v1::ReportArchiveRequest* request, v1::ReportArchiveResponse* reply) override {
    return AnswerAtOnce(__func__, call, *request, reply, [this](const Peer&, const auto& asked, auto*) {
      return deps_.archive.Report(asked);
    });
  }

 private:
  RpcDeps& deps_;
  rpc::Context& context_;
};

}  // namespace

rpc::Services rpc::AddServices(Context& context, grpc::ServerBuilder& builder) {
  Services services;
  services.push_back(std::make_unique<NodeMethods>(context));
  services.push_back(std::make_unique<SessionMethods>(context));
  services.push_back(std::make_unique<DumpMethods>(context));
  for (const auto& service : services) builder.RegisterService(service.get());
  return services;
}

}  // namespace profd
