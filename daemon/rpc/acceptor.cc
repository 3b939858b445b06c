#include "daemon/rpc/acceptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/strand.h"
#include "base/text.h"
#include "daemon/rpc/unix_listener.h"

namespace profd {
namespace {

// The range of descriptor numbers handed to gRPC; below it live our own.
constexpr int kFirstFd = 4096;
constexpr int kLastFd = 60000;

// The same range under a lower limit of open files.
struct FdRange {
  int first = kFirstFd;
  int last = kLastFd;
};
FdRange RangeWithinLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > kLastFd) return {};
  auto top = static_cast<int>(limit.rlim_cur);
  return {std::min(kFirstFd, top / 2), top - 1};
}

}  // namespace

struct Acceptor::Impl {
  Impl(std::unique_ptr<UnixListener> l, Handler& h) : listener(std::move(l)), handler(h) {}
  struct Connection {
    Peer peer;
    dev_t device = 0;
    ino_t inode = 0;
  };

  const std::unique_ptr<UnixListener> listener;
  Handler& handler;
  Executor executor{"profd-accept", 1};
  Strand strand{executor};
  int64_t rest_after_ns = 0;
  std::optional<Timer> quiet;  // on the strand; restarted by each connection
  mutable Mutex mutex;
  std::map<int, Connection> connections GUARDED_BY(mutex);
  std::optional<gid_t> admin GUARDED_BY(mutex);
  std::optional<uid_t> archiver GUARDED_BY(mutex);
  size_t max_connections GUARDED_BY(mutex) = 256;
  const FdRange range = RangeWithinLimit();
  int next_fd GUARDED_BY(mutex) = range.first;
  std::atomic<uint64_t> rejected{0};
  std::atomic<bool> stop{false};

  void WaitForQuiet();
  bool Admit(UniqueFd fd);
  void Sweep() REQUIRES(mutex);
  bool Quiet();
  bool BelowLimit(const Peer& peer) const REQUIRES(mutex);
};

// Forgets connections that gRPC has closed: their number is free or belongs to something else.
void Acceptor::Impl::Sweep() {
  std::erase_if(connections, [](const auto& entry) {
    struct stat info {};
    return ::fstat(entry.first, &info) != 0 || info.st_ino != entry.second.inode ||
           info.st_dev != entry.second.device;
  });
}

// One user's connections leave some for the others'. Administrators can always connect to stop them.
bool Acceptor::Impl::BelowLimit(const Peer& peer) const {
  if (peer.admin) return true;
  auto own = std::ranges::count_if(connections, [&peer](const auto& entry) {
    return entry.second.peer.uid == peer.uid;
  });
  return static_cast<size_t>(own) < std::max<size_t>(max_connections / 2, 1);
}

bool Acceptor::Impl::Quiet() {
  MutexLock lock(mutex);
  Sweep();
  return connections.empty();
}

bool Acceptor::Impl::Admit(UniqueFd fd) {
  int number = -1;
  {
    MutexLock lock(mutex);
    if (connections.size() >= max_connections) Sweep();
    if (connections.size() >= max_connections) return false;
    Result<Peer> peer = PeerOfSocket(fd.get(), admin);
    struct stat info {};
    if (!peer.ok() || ::fstat(fd.get(), &info) != 0) return false;
    peer->archiver = archiver && peer->uid == *archiver && !peer->admin;
    if (!BelowLimit(*peer)) Sweep();
    if (!BelowLimit(*peer)) return false;
    number = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, next_fd);
    // All above are taken: those below may have become free.
    if (number < 0) number = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, range.first);
    if (number < 0) return false;
    next_fd = number + 1 >= range.last ? range.first : number + 1;
    connections[number] = {std::move(peer).value(), info.st_dev, info.st_ino};
  }
  fd.Reset();
  handler.Adopt(number);
  return true;
}

void Acceptor::Impl::WaitForQuiet() {
  quiet->After(rest_after_ns, [this] {
    if (!Quiet() || !handler.Rest()) WaitForQuiet();
  });
}

Acceptor::Acceptor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Acceptor>> Acceptor::Listen(const AcceptorOptions& options,
                                                   Handler& handler, std::string* warning) {
  auto listener = UnixListener::Listen("daemon", {options.socket_path, options.socket_group, SOCK_STREAM}, warning);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(std::move(listener).value(), handler);
  impl->rest_after_ns = options.rest_after_ns;
  auto acceptor = std::unique_ptr<Acceptor>(new Acceptor(std::move(impl)));
  acceptor->Configure(options);
  return acceptor;
}

void Acceptor::Start() {
  impl_->strand.Post([raw = impl_.get()] {
    raw->quiet.emplace(raw->strand);
    raw->listener->Start(raw->strand, [raw](UniqueFd fd, const sockaddr_storage&) {
      if (!raw->Admit(std::move(fd))) raw->rejected.fetch_add(1, std::memory_order_relaxed);
      raw->WaitForQuiet();
    });
  });
}

void Acceptor::CheckPath() {
  impl_->strand.Post([raw = impl_.get()] { raw->listener->CheckPath(); });
}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Stop() {
  if (impl_->stop.exchange(true)) return;
  impl_->executor.Stop();
  impl_->listener->Close();
}

std::optional<Peer> Acceptor::Identify(std::string_view peer_text) const {
  constexpr std::string_view kPrefix = "fd:";
  int fd = -1;
  if (!peer_text.starts_with(kPrefix) ||
      !ParseNumber(peer_text.substr(kPrefix.size()), &fd)) {
    return std::nullopt;
  }
  MutexLock lock(impl_->mutex);
  auto found = impl_->connections.find(fd);
  if (found == impl_->connections.end()) return std::nullopt;
  return found->second.peer;
}

void Acceptor::Configure(const AcceptorOptions& options) {
  std::optional<gid_t> group = GroupId(options.admin_group);
  std::optional<uid_t> user = UserId(options.archive_user);
  MutexLock lock(impl_->mutex);
  impl_->admin = group;
  impl_->archiver = user;
  impl_->max_connections = static_cast<size_t>(options.max_connections);
}

size_t Acceptor::connections() const {
  MutexLock lock(impl_->mutex);
  impl_->Sweep();
  return impl_->connections.size();
}

uint64_t Acceptor::rejected() const { return impl_->rejected.load(std::memory_order_relaxed); }

AcceptorOptions AcceptorOptionsOf(const DaemonConfig& config) {
  // While nothing is archived, that user is one as all others.
  return {config.socket, config.socket_group, config.admin_group, static_cast<int>(config.max_connections),
          config.archive_to.empty() ? "" : config.archive_user};
}

std::vector<std::string> UnknownAccounts(const DaemonConfig& config) {
  const AcceptorOptions options = AcceptorOptionsOf(config);
  std::vector<std::string> unknown;
  const auto check = [&unknown](std::string_view key, std::string_view kind, const std::string& name, bool known, std::string_view follows) {
    if (!name.empty() && !known) unknown.push_back(fmt::format("{}: no {} {}: {}", key, kind, name, follows));
  };
  check("daemon.socket_group", "group", options.socket_group, GroupId(options.socket_group).has_value(),
        "only root and profd's own user can connect");
  check("daemon.admin_group", "group", options.admin_group, GroupId(options.admin_group).has_value(),
        "only root and profd's own user are administrators");
  check("archive.user", "user", options.archive_user, UserId(options.archive_user).has_value(),
        "profd-archive.service cannot fetch dumps");
  return unknown;
}

}  // namespace profd
