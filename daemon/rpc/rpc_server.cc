#include "daemon/rpc/rpc_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/log.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/rpc/rpc_internal.h"
#include "profd/v1/profd.grpc.pb.h"

namespace profd {
namespace {

constexpr int kQuotaThreads = 16;

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

struct RpcServer::Impl final : Acceptor::Handler {
  explicit Impl(const RpcDeps& deps) : context(deps) {}

  void StartGrpc();
  void StartServer();
  // Acceptor::Handler. gRPC runs from then on.
  void Adopt(int fd) override;
  // The last connection has ended: gRPC's threads end until the next one. False when a call is still being answered.
  bool Rest() override;
  Status ListenTls(const TlsOptions& options);

  rpc::Context context;
  // Calls have to be identified until the last one has ended: it goes after what serves them.
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<TlsServer> tls;
  bool grpc_runs = false;
  // The acceptor's thread, then (it has ended) who shuts down. Both are null while there is no connection:
  // gRPC wakes up its threads twice a second each, one for every two cores, whether it has anything to
  // do or not.
  rpc::Services services;
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
  // Nor with requests whose texts are not UTF-8.
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel, const char*, int, const std::string& text) {
    log::Debug("protobuf", {{"text", text}});
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
  services = rpc::AddServices(context, builder);
  server = builder.BuildAndStart();
  if (server != nullptr) rpc::SetHealthy(*server);
}

RpcServer::RpcServer(const RpcDeps& deps) : impl_(std::make_unique<Impl>(deps)) {}

RpcServer::~RpcServer() {
  StopListening();
  Shutdown(0);
}

void RpcServer::Impl::Adopt(int fd) {
  if (server == nullptr) StartServer();
  if (server != nullptr) {
    grpc::AddInsecureChannelFromFd(server.get(), fd);
  } else {
    log::Error("a client was turned away: gRPC did not start (limits on threads or memory?)");
    ::close(fd);
  }
}

bool RpcServer::Impl::Rest() {
  // A call can outlive its connection, and the end of the server would wait for it.
  if (server == nullptr) return true;
  if (context.calls.load() > 0) return false;
  server->Shutdown(std::chrono::system_clock::now());
  server.reset();
  services.clear();
  return true;
}

Status RpcServer::Impl::ListenTls(const TlsOptions& options) {
  StartGrpc();
  Result<std::unique_ptr<TlsServer>> made = TlsServer::Listen(context, options);
  if (!made.ok()) return made.status();
  tls = std::move(made).value();
  context.tls = tls.get();
  tls->Start();
  return Status::Ok();
}

Status RpcServer::Listen(const DaemonConfig& config, std::string* warning) {
  Result<std::unique_ptr<Acceptor>> made =
      Acceptor::Listen(AcceptorOptionsOf(config), *impl_, warning);
  if (!made.ok()) return made.status();
  impl_->acceptor = std::move(made).value();
  impl_->context.acceptor = impl_->acceptor.get();
  // Before a client can ask for its address.
  return config.tls_listen.empty() ? Status::Ok() : impl_->ListenTls(TlsOptionsOf(config));
}

void RpcServer::Start() { impl_->acceptor->Start(); }

void RpcServer::Configure(const DaemonConfig& config) {
  impl_->acceptor->Configure(AcceptorOptionsOf(config));
  if (impl_->tls == nullptr) return;
  if (Status users = impl_->tls->Configure(TlsOptionsOf(config)); !users.ok()) {
    log::Error("tls.users not reloaded", {{"problems", users.message()}});
  }
}

void RpcServer::CheckPath() { impl_->acceptor->CheckPath(); }

void RpcServer::StopListening() {
  if (impl_->acceptor != nullptr) impl_->acceptor->Stop();
  if (impl_->tls != nullptr) impl_->tls->Stop();
}

void RpcServer::Shutdown(int64_t patience_ns) {
  if (impl_->context.stopping.exchange(true)) return;
  if (impl_->tls != nullptr) impl_->tls->Shutdown(patience_ns);
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::nanoseconds(patience_ns));
}

std::string RpcServer::tls_address() const { return impl_->tls == nullptr ? "" : impl_->tls->stats().address; }

void RpcServer::UpdateMetrics(SelfMetrics* self) const {
  constexpr MetricId kRejected = MetricByName("profd_rpc_rejected_total");
  self->Set(MetricByName("profd_rpc_connections"), impl_->acceptor->connections());
  self->Set(kRejected, impl_->acceptor->rejected(), "connection_limit");
  self->Set(kRejected, impl_->context.unidentified.load(), "unidentified");
  for (const rpc::CallLimit& limit : rpc::CallLimits()) {
    const rpc::CallLedger::Usage now = impl_->context.ledger.usage(limit.kind);
    self->Set(MetricByName("profd_rpc_held_calls"), now.calls, limit.label);
    self->Set(MetricByName("profd_rpc_held_bytes"), now.bytes, limit.label);
    constexpr MetricId kRefused = MetricByName("profd_rpc_refused_total");
    if (now.refused_user > 0) self->Set(kRefused, now.refused_user, limit.label, "user");
    if (now.refused_node > 0) self->Set(kRefused, now.refused_node, limit.label, "node");
  }
  if (impl_->tls == nullptr) return;
  const TlsStats tls = impl_->tls->stats();
  self->Set(MetricByName("profd_tls_connections"), tls.connections);
  self->Set(MetricByName("profd_tls_reloads_total"), tls.reloads, "ok");
  self->Set(MetricByName("profd_tls_reloads_total"), tls.failed_reloads, "failed");
  self->Set(MetricByName("profd_tls_certificate_expiry_timestamp_seconds"), tls.expires_s);
  self->Set(kRejected, tls.rejected, "tls_connection_limit");
  self->Set(kRejected, impl_->context.role_denied.load(), "role");
}

}  // namespace profd
