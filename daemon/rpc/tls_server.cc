#include "daemon/rpc/tls_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strand.h"
#include "daemon/rpc/accept.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/rpc/tcp_listener.h"
#include "daemon/rpc/tls_identity.h"

namespace profd {
namespace internal {

// One gRPC server with the certificates of one moment.
struct Generation {
  uint64_t number = 0;
  rpc::Services services;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;  // goes first

  void End(int64_t patience_ns) const {
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::nanoseconds(patience_ns));
  }
};

}  // namespace internal

namespace {

using internal::Generation;

constexpr int kWatchMs = 2000;
constexpr int kPauseMs = 200;
// From the first byte to the client's SETTINGS: longer than any honest client takes.
constexpr int kHandshakeMs = 10'000;
constexpr int kKeepaliveMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
constexpr int kLeastPingMs = 20'000;
constexpr int kIdleMs = 10 * 60'000;
// A connection is made anew, under the certificates of then, after this long; a call may finish
// first.
constexpr int kMaxAgeMs = 60 * 60'000;
constexpr int kMaxAgeGraceMs = 24 * 60 * 60'000;
// Earlier servers that still have connections; beyond this the oldest is ended.
constexpr size_t kMaxRetired = 4;
// One machine may not take all of the connections.
constexpr size_t kLeastPerAddress = 16;

Result<std::unique_ptr<Generation>> MakeGeneration(rpc::Context& context,
                                                   const TlsMaterial& material,
                                                   const grpc::ResourceQuota& quota) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = material.ca_pem;
  options.pem_key_cert_pairs = {{material.key_pem, material.certificate_pem}};
  auto generation = std::make_unique<Generation>();
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(quota);
  rpc::LimitMessages(builder);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             rpc::kMaxTlsStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kMaxAgeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kMaxAgeGraceMs);
  generation->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::SslServerCredentials(options));
  generation->services = rpc::AddServices(context, builder);
  generation->server = builder.BuildAndStart();
  if (generation->server == nullptr) {
    return Internal("gRPC does not take the certificates of [tls]");
  }
  rpc::SetHealthy(*generation->server);
  return generation;
}

std::string_view Property(const grpc::AuthContext& auth, const char* name) {
  std::vector<grpc::string_ref> values = auth.FindPropertyValues(name);
  if (values.size() != 1) return {};
  return {values.front().data(), values.front().size()};
}

}  // namespace

TlsOptions TlsOptionsOf(const DaemonConfig& config) {
  return {config.tls_listen, TlsPathsOf(config), config.tls_users,
          static_cast<int>(config.max_connections)};
}

struct TlsServer::Impl {
  struct Connection {
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t generation = 0;
    std::string address;
  };

  explicit Impl(rpc::Context& c) : context(c), quota("profd-tls") { quota.Resize(rpc::kTlsQuotaBytes); }

  rpc::Context& context;
  grpc::ResourceQuota quota;
  TlsPaths paths;
  std::string address;
  UniqueFd listener;
  Executor executor{"profd-tls", 1};
  Strand strand{executor};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rejected{0};
  std::atomic<uint64_t> reloads{0};
  std::atomic<uint64_t> failed_reloads{0};
  std::atomic<int64_t> expires_s{0};

  // The strand's own, once it serves.
  std::optional<AcceptLoop> incoming;
  std::optional<Timer> watch;
  std::string timestamp;       // of the files in use, or those that were refused last
  std::string seen_timestamp;  // at the last look
  TlsMaterial material;
  std::unique_ptr<Generation> current;
  std::vector<std::unique_ptr<Generation>> retired;  // oldest first
  std::map<int, Connection> open;

  mutable Mutex mutex;
  std::shared_ptr<const TlsAuthorities> authorities GUARDED_BY(mutex);
  std::shared_ptr<const LocalUsers> users GUARDED_BY(mutex);
  size_t max_connections GUARDED_BY(mutex) = 256;
  size_t connections GUARDED_BY(mutex) = 0;

  // Serves new connections with this from now on; nothing is changed where it fails.
  Status Adopt(TlsMaterial fresh);
  bool Admit(UniqueFd fd, const std::string& from);
  void Watch();
  void Sweep();
  bool Look();
  void Reload();
  void EndRetired();
};

// Forgets connections that gRPC has closed, as the unix socket's acceptor does.
void TlsServer::Impl::Sweep() {
  std::erase_if(open, [](const auto& entry) {
    struct stat info {};
    return ::fstat(entry.first, &info) != 0 || info.st_ino != entry.second.inode ||
           info.st_dev != entry.second.device;
  });
  MutexLock lock(mutex);
  connections = open.size();
}

bool TlsServer::Impl::Admit(UniqueFd fd, const std::string& from) {
  size_t limit = 0;
  {
    MutexLock lock(mutex);
    limit = max_connections;
  }
  if (open.size() >= limit) Sweep();
  if (open.size() >= limit) return false;
  auto same = [this, &from] {
    return static_cast<size_t>(std::ranges::count_if(open, [&](const auto& entry) { return entry.second.address == from; }));
  };
  size_t per_address = std::max(kLeastPerAddress, limit / 2);
  if (same() >= per_address) {
    Sweep();
    if (same() >= per_address) return false;
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return false;
  int one = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  open[fd.get()] = {info.st_dev, info.st_ino, current->number, from};
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters handover;
  handover.listener_fd = listener.get();
  handover.fd = fd.Release();
  current->acceptor->HandleNewConnection(&handover);
  MutexLock lock(mutex);
  connections = open.size();
  return true;
}

void TlsServer::Impl::Watch() {
  Sweep();
  const bool settled = Look();
  EndRetired();
  watch->After((settled ? kWatchMs : kPauseMs) * kNsPerMs, [this] { Watch(); });
}

// Files are replaced one after the other: they are read when two looks in a row saw the same. False: not yet.
bool TlsServer::Impl::Look() {
  std::string now = TlsFilesStamp(paths);
  bool settled = now == std::exchange(seen_timestamp, now);
  if (now == timestamp) return true;
  if (!settled) return false;
  timestamp = now;
  Reload();
  return true;
}

void TlsServer::Impl::Reload() {
  std::vector<std::string> problems;
  TlsMaterial fresh = LoadTlsFiles(paths, &problems);
  if (problems.empty()) {
    if (fresh == material) return;
    if (Status adopted = Adopt(std::move(fresh)); !adopted.ok()) {
      problems.push_back(adopted.message());
    }
  }
  if (!problems.empty()) {
    failed_reloads.fetch_add(1, std::memory_order_relaxed);
    log::Error("TLS files changed but are not usable; the earlier ones stay in use",
               {{"problems", fmt::format("{}", fmt::join(problems, "; "))}});
    return;
  }
  reloads.fetch_add(1, std::memory_order_relaxed);
  log::Info("TLS files reloaded", {{"expires", expires_s.load()}});
}

Status TlsServer::Impl::Adopt(TlsMaterial fresh) {
  auto made = TlsAuthorities::Make(fresh.ca_pem);
  if (!made.ok()) return made.status();
  Result<std::unique_ptr<Generation>> generation = MakeGeneration(context, fresh, quota);
  if (!generation.ok()) return generation.status();
  (*generation)->number = current == nullptr ? 0 : current->number + 1;
  if (current != nullptr) retired.push_back(std::move(current));
  current = std::move(generation).value();
  material = std::move(fresh);
  expires_s = material.expires_s;
  if (material.expires_s < SystemClock().WallNs() / kNsPerSecond) {
    log::Warning("the certificate of tls.certificate has expired; clients will refuse it",
                 {{"file", paths.certificate}});
  }
  MutexLock lock(mutex);
  authorities = std::move(made).value();
  return Status::Ok();
}

// Earlier servers without connections go; so does the oldest when there are too many.
void TlsServer::Impl::EndRetired() {
  std::erase_if(retired, [this](const std::unique_ptr<Generation>& generation) {
    bool used = std::ranges::any_of(open, [&](const auto& entry) {
      return entry.second.generation == generation->number;
    });
    if (!used) generation->End(0);
    return !used;
  });
  while (retired.size() > kMaxRetired) {
    retired.front()->End(0);
    retired.erase(retired.begin());
  }
}

TlsServer::TlsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<TlsServer>> TlsServer::Listen(rpc::Context& context,
                                                     const TlsOptions& options) {
  auto impl = std::make_unique<Impl>(context);
  impl->paths = options.paths;
  impl->timestamp = impl->seen_timestamp = TlsFilesStamp(options.paths);
  std::vector<std::string> problems;
  TlsMaterial material = LoadTlsFiles(options.paths, &problems);
  LocalUsers users = ResolveLocalUsers(options.users, &problems);
  if (!problems.empty()) {
    return FailedPrecondition(fmt::format("{}", fmt::join(problems, "\n")));
  }
  {
    MutexLock lock(impl->mutex);
    impl->max_connections = static_cast<size_t>(options.max_connections);
    impl->users = std::make_shared<const LocalUsers>(std::move(users));
  }
  Result<UniqueFd> listener = BindTcp(options.listen, "tls.listen");
  if (!listener.ok()) return listener.status();
  impl->listener = std::move(listener).value();
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(impl->listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Status::FromErrno(errno, "tls.listen");
  }
  impl->address = AddressText(bound, true);
  RETURN_IF_ERROR(impl->Adopt(std::move(material)));
  return std::unique_ptr<TlsServer>(new TlsServer(std::move(impl)));
}

void TlsServer::Start() {
  impl_->strand.Post([raw = impl_.get()] {
    raw->incoming.emplace(raw->strand, raw->listener.get(), [raw](UniqueFd fd, const sockaddr_storage& from) {
      if (!raw->Admit(std::move(fd), AddressText(from, false))) raw->rejected.fetch_add(1, std::memory_order_relaxed);
    });
    raw->watch.emplace(raw->strand);
    raw->Watch();
  });
}

void TlsServer::Stop() {
  if (impl_->stop.exchange(true)) return;
  impl_->executor.Stop();
  impl_->incoming.reset();
  impl_->listener.Reset();
}

void TlsServer::Shutdown(int64_t patience_ns) {
  Stop();
  if (impl_->current == nullptr) return;
  for (const auto& generation : impl_->retired) generation->End(0);
  impl_->current->End(patience_ns);
  impl_->retired.clear();
  impl_->current.reset();
}

TlsServer::~TlsServer() { Shutdown(0); }

Result<Peer> TlsServer::Identify(const grpc::AuthContext& auth) const {
  std::string_view type = Property(auth, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (type != GRPC_SSL_TRANSPORT_SECURITY_TYPE || !auth.IsPeerAuthenticated()) {
    return Status(StatusCode::kUnauthenticated, "the connection carries no client certificate");
  }
  std::shared_ptr<const TlsAuthorities> authorities;
  std::shared_ptr<const LocalUsers> users;
  {
    MutexLock lock(impl_->mutex);
    authorities = impl_->authorities;
    users = impl_->users;
  }
  return authorities->Identify(Property(auth, GRPC_X509_PEM_CERT_PROPERTY_NAME),
                               Property(auth, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME), *users);
}

Status TlsServer::Configure(const TlsOptions& options) {
  std::vector<std::string> problems;
  LocalUsers users = ResolveLocalUsers(options.users, &problems);
  {
    MutexLock lock(impl_->mutex);
    impl_->max_connections = static_cast<size_t>(options.max_connections);
    if (problems.empty()) impl_->users = std::make_shared<const LocalUsers>(std::move(users));
  }
  impl_->strand.Post([raw = impl_.get()] {
    if (raw->watch.has_value()) raw->Watch();
  });
  if (problems.empty()) return Status::Ok();
  return InvalidArgument(fmt::format("{}", fmt::join(problems, "\n")));
}

TlsStats TlsServer::stats() const {
  TlsStats stats{.address = impl_->address, .rejected = impl_->rejected.load(std::memory_order_relaxed),
                 .reloads = impl_->reloads.load(std::memory_order_relaxed),
                 .failed_reloads = impl_->failed_reloads.load(std::memory_order_relaxed),
                 .expires_s = impl_->expires_s.load(std::memory_order_relaxed)};
  MutexLock lock(impl_->mutex);
  stats.connections = impl_->connections;
  return stats;
}

}  // namespace profd
