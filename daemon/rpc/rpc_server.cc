#include "daemon/rpc/rpc_server.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>

#include "base/log.h"
#include "daemon/rpc/rpc_internal.h"
#include "profd/v1/profd.grpc.pb.h"

namespace profd {
namespace {

constexpr int kQuotaThreads = 16;

const google::protobuf::ServiceDescriptor& ServiceOf(const char* name) {
  return *v1::Node::descriptor()->file()->FindServiceByName(name);
}

class NodeCalls final : public v1::NodeService::CallbackService, private rpc::ServiceCalls {
 public:
  explicit NodeCalls(rpc::Context& context) : ServiceCalls(context, ServiceOf("NodeService")), context_(context) {}

  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* call,
                                    const v1::GetNodeRequest* request, v1::Node* reply) override {
    return Answer(__func__, call, *request, reply,
                  [this, reply](const Peer& peer, const v1::GetNodeRequest&, auto finish) {
                    context_.deps.describe_node(peer, reply);
                    finish(Status::Ok());
                  });
  }

  grpc::ServerUnaryReactor* GetTopology(grpc::CallbackServerContext* call,
                                        const v1::GetTopologyRequest* request,
                                        v1::Topology* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.get_topology);
  }

  grpc::ServerUnaryReactor* ReleaseChannels(grpc::CallbackServerContext* call,
                                            const v1::ReleaseChannelsRequest* request,
                                            v1::ChannelReleases* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.release_channels);
  }

  grpc::ServerUnaryReactor* AcquireChannels(grpc::CallbackServerContext* call,
                                            const v1::AcquireChannelsRequest* request,
                                            v1::ChannelReleases* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.acquire_channels);
  }

  grpc::ServerUnaryReactor* GetTime(grpc::CallbackServerContext* call,
                                    const v1::GetTimeRequest* request,
                                    v1::GetTimeResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.get_time);
  }

  grpc::ServerUnaryReactor* ListOptions(grpc::CallbackServerContext* call,
                                        const v1::ListOptionsRequest* request,
                                        v1::ListOptionsResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.list_options);
  }

  grpc::ServerUnaryReactor* CheckOptions(grpc::CallbackServerContext* call,
                                         const v1::CheckOptionsRequest* request,
                                         v1::CheckOptionsResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.check_options);
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* call,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.list_jobs);
  }

  grpc::ServerUnaryReactor* GetActivity(grpc::CallbackServerContext* call,
                                        const v1::GetActivityRequest* request,
                                        v1::GetActivityResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.get_activity);
  }

  grpc::ServerUnaryReactor* GetStacks(grpc::CallbackServerContext* call, const v1::GetStacksRequest* request,
                                      v1::GetStacksResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.get_stacks);
  }

  grpc::ServerWriteReactor<v1::SampleChunk>* StreamSamples(
      grpc::CallbackServerContext* call, const v1::StreamSamplesRequest* request) override {
    return Stream<v1::SampleChunk>(__func__, call, rpc::CallKind::kStream, *request,
                                   std::bind_front(rpc::NewSampleStream, std::ref(context_)));
  }

  grpc::ServerUnaryReactor* GetAdvice(grpc::CallbackServerContext* call,
                                      const v1::GetAdviceRequest* request,
                                      v1::GetAdviceResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.get_advice);
  }

  grpc::ServerWriteReactor<v1::GetAdviceResponse>* WatchAdvice(
      grpc::CallbackServerContext* call, const v1::WatchAdviceRequest* request) override {
    return Stream<v1::GetAdviceResponse>(__func__, call, rpc::CallKind::kWatch, *request,
                                         std::bind_front(rpc::NewAdviceWatch, std::ref(context_)));
  }

 private:
  rpc::Context& context_;
};

class SessionCalls final : public v1::SessionService::CallbackService, private rpc::ServiceCalls {
 public:
  explicit SessionCalls(rpc::Context& context) : ServiceCalls(context, ServiceOf("SessionService")), context_(context) {}

  grpc::ServerUnaryReactor* StartSession(grpc::CallbackServerContext* call,
                                         const v1::StartSessionRequest* request,
                                         v1::Session* reply) override {
    return Answer(__func__, call, *request, reply,
                  [this, reply](const Peer& peer, const auto& request, auto finish) {
                    context_.deps.sessions.Start(peer, request.spec(), Into(reply, finish));
                  });
  }

  grpc::ServerUnaryReactor* StopSession(grpc::CallbackServerContext* call,
                                        const v1::StopSessionRequest* request,
                                        v1::Session* reply) override {
    return Answer(__func__, call, *request, reply,
                  [this, reply](const Peer& peer, const auto& request, auto finish) {
                    context_.deps.sessions.Stop(peer, request, Into(reply, finish));
                  });
  }

  grpc::ServerUnaryReactor* GetSession(grpc::CallbackServerContext* call,
                                       const v1::GetSessionRequest* request,
                                       v1::Session* reply) override {
    return Answer(__func__, call, *request, reply,
                  [this, reply](const Peer& peer, const auto& request, auto finish) {
                    Into(reply, finish)(context_.deps.sessions.Get(peer, request.session_id()));
                  });
  }

  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* call,
                                         const v1::ListSessionsRequest* request,
                                         v1::ListSessionsResponse* reply) override {
    return Answer(__func__, call, *request, reply,
                  [this, reply](const Peer& peer, const auto& request, auto finish) {
                    *reply = context_.deps.sessions.List(peer, request);
                    finish(Status::Ok());
                  });
  }

  grpc::ServerWriteReactor<v1::Session>* WatchSession(
      grpc::CallbackServerContext* call, const v1::WatchSessionRequest* request) override {
    return Stream<v1::Session>(__func__, call, rpc::CallKind::kWatch, *request,
                               std::bind_front(rpc::NewWatch, std::ref(context_)));
  }

  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext* call,
                                       const v1::RenewLeaseRequest* request,
                                       v1::RenewLeaseResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.renew_lease);
  }

  grpc::ServerUnaryReactor* DumpRecorder(grpc::CallbackServerContext* call,
                                         const v1::DumpRecorderRequest* request,
                                         v1::Session* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.dump_recorder);
  }

  grpc::ServerUnaryReactor* AcquireTuningLease(grpc::CallbackServerContext* call,
                                               const v1::AcquireTuningLeaseRequest* request,
                                               v1::TuningLease* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.acquire_tuning);
  }

  grpc::ServerUnaryReactor* ReleaseTuningLease(grpc::CallbackServerContext* call,
                                               const v1::ReleaseTuningLeaseRequest* request,
                                               v1::ReleaseTuningLeaseResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.release_tuning);
  }

  grpc::ServerUnaryReactor* ListTuningLeases(grpc::CallbackServerContext* call,
                                             const v1::ListTuningLeasesRequest* request,
                                             v1::ListTuningLeasesResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.list_tuning);
  }

 private:
  template <class Finish>
  static SessionManager::SessionReply Into(v1::Session* reply, Finish finish) {
    return [reply, finish](const Result<v1::Session>& session) {
      if (session.ok()) *reply = *session;
      finish(session.status());
    };
  }

  rpc::Context& context_;
};

class DumpCalls final : public v1::DumpService::CallbackService, private rpc::ServiceCalls {
 public:
  explicit DumpCalls(rpc::Context& context) : ServiceCalls(context, ServiceOf("DumpService")), context_(context) {}

  grpc::ServerWriteReactor<v1::DumpChunk>* FetchDump(grpc::CallbackServerContext* call,
                                                     const v1::FetchDumpRequest* request) override {
    return Stream<v1::DumpChunk>(__func__, call, rpc::CallKind::kFetch, *request,
                                 std::bind_front(rpc::NewFetch, std::ref(context_)));
  }

  grpc::ServerUnaryReactor* DeleteDump(grpc::CallbackServerContext* call,
                                       const v1::DeleteDumpRequest* request,
                                       v1::DeleteDumpResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.delete_dump);
  }

  grpc::ServerUnaryReactor* ListDumps(grpc::CallbackServerContext* call,
                                      const v1::ListDumpsRequest* request,
                                      v1::ListDumpsResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.list_dumps);
  }

  grpc::ServerUnaryReactor* PinDump(grpc::CallbackServerContext* call,
                                    const v1::PinDumpRequest* request,
                                    v1::PinDumpResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.pin_dump);
  }

  grpc::ServerUnaryReactor* UnpinDump(grpc::CallbackServerContext* call,
                                      const v1::UnpinDumpRequest* request,
                                      v1::UnpinDumpResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.unpin_dump);
  }

  grpc::ServerUnaryReactor* ArchiveDumps(grpc::CallbackServerContext* call,
                                         const v1::ArchiveDumpsRequest* request,
                                         v1::ArchiveDumpsResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.archive_dumps);
  }

  grpc::ServerUnaryReactor* ClaimArchiveUpload(grpc::CallbackServerContext* call,
                                             const v1::ClaimArchiveUploadRequest* request,
                                             v1::ClaimArchiveUploadResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.take_archive);
  }

  grpc::ServerUnaryReactor* ReportArchive(grpc::CallbackServerContext* call,
                                          const v1::ReportArchiveRequest* request,
                                          v1::ReportArchiveResponse* reply) override {
    return Delegate(__func__, call, *request, reply, context_.deps.report_archive);
  }

 private:
  rpc::Context& context_;
};

// The services of one gRPC server.
struct AllCalls final : rpc::Services {
  explicit AllCalls(rpc::Context& context) : node(context), session(context), dump(context) {}
  void Register(grpc::ServerBuilder& builder) override {
    builder.RegisterService(&node);
    builder.RegisterService(&session);
    builder.RegisterService(&dump);
  }
  NodeCalls node;
  SessionCalls session;
  DumpCalls dump;
};

}  // namespace

void rpc::LimitMessages(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
}

void rpc::SetHealthy(grpc::Server& server) {
  for (const char* service : {v1::NodeService::service_full_name(), v1::SessionService::service_full_name(),
                              v1::DumpService::service_full_name()}) {
    server.GetHealthCheckService()->SetServingStatus(service, true);
  }
}

std::unique_ptr<rpc::Services> rpc::NewServices(Context& context) {
  return std::make_unique<AllCalls>(context);
}

struct RpcServer::Impl {
  explicit Impl(const RpcDeps& deps) : context(deps) {}

  void StartGrpc();
  void StartServer();

  rpc::Context context;
  std::unique_ptr<TlsServer> tls;
  bool grpc_runs = false;
  // The acceptor's thread, then (it has ended) who shuts down. Both are null while there is no connection:
  // gRPC wakes up its threads twice a second each, one for every two cores, whether it has anything to
  // do or not.
  std::unique_ptr<rpc::Services> services;
  std::unique_ptr<grpc::Server> server;
};

void RpcServer::Impl::StartGrpc() {
  if (std::exchange(grpc_runs, true)) return;
  // One more than is taken back: gRPC's own end waits up to 10 s for a poller that a long reply has
  // left behind, and systemd waits with it. What it would free goes with the process.
  ::grpc_init();
  // Strangers must not fill the log with failed handshakes.
  gpr_set_log_function([](gpr_log_func_args* message) {
    log::Debug("grpc", {{"text", message->message}});
  });
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

void RpcServer::Impl::StartServer() {
  StartGrpc();
  grpc::ResourceQuota quota("profd");
  quota.Resize(rpc::kGrpcQuotaBytes).SetMaxThreads(kQuotaThreads);
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(quota);
  rpc::LimitMessages(builder);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, rpc::kMaxStreamsPerConnection);
  services = rpc::NewServices(context);
  services->Register(builder);
  server = builder.BuildAndStart();
  if (server != nullptr) rpc::SetHealthy(*server);
}

RpcServer::RpcServer(const RpcDeps& deps) : impl_(std::make_unique<Impl>(deps)) {}

RpcServer::~RpcServer() { Shutdown(0); }

void RpcServer::Adopt(int fd) {
  if (impl_->server == nullptr) impl_->StartServer();
  if (impl_->server != nullptr) {
    grpc::AddInsecureChannelFromFd(impl_->server.get(), fd);
  } else {
    log::Error("a client was turned away: gRPC did not start (limits on threads or memory?)");
    ::close(fd);
  }
}

bool RpcServer::Rest() {
  // A call can outlive its connection, and the end of the server would wait for it.
  if (impl_->server == nullptr) return true;
  if (impl_->context.calls.load() > 0) return false;
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server.reset();
  impl_->services.reset();
  return true;
}

void RpcServer::SetAcceptor(const Acceptor* acceptor) { impl_->context.acceptor = acceptor; }

Status RpcServer::ListenTls(const TlsOptions& options) {
  impl_->StartGrpc();
  Result<std::unique_ptr<TlsServer>> tls = TlsServer::Listen(impl_->context, options);
  if (!tls.ok()) return tls.status();
  impl_->tls = std::move(tls).value();
  impl_->context.tls = impl_->tls.get();
  impl_->tls->Start();
  return Status::Ok();
}

TlsServer* RpcServer::tls() const { return impl_->tls.get(); }

void RpcServer::Shutdown(int64_t patience_ns) {
  if (impl_->context.stopping.exchange(true)) return;
  if (impl_->tls != nullptr) impl_->tls->Shutdown(patience_ns);
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::nanoseconds(patience_ns));
}

uint64_t RpcServer::unidentified() const { return impl_->context.unidentified.load(); }

uint64_t RpcServer::role_denied() const { return impl_->context.role_denied.load(); }

std::vector<RpcServer::CallUsage> RpcServer::usage() const {
  std::vector<CallUsage> all;
  for (const rpc::CallLimit& limit : rpc::CallLimits()) {
    const rpc::CallLedger::Usage now = impl_->context.ledger.usage(limit.kind);
    all.push_back({limit.label, now.calls, now.bytes, now.refused_user, now.refused_node});
  }
  return all;
}

}  // namespace profd
