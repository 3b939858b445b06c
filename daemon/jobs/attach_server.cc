#include "daemon/jobs/attach_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/rpc/unix_listener.h"

namespace profd {
namespace {

// Descriptors taken from one packet; the kernel closes what is beyond.
constexpr size_t kMaxDescriptors = 4;
constexpr int kMaxBadPackets = 16;
// Connections that will be refused when their Hello arrives, beside those that are attached: one that is
// closed before may lose the reason. Beyond that they are closed at once.
constexpr size_t kMaxRefused = 64;
// What a process that has ended may have left unread; more is not in a socket's buffer.
constexpr int kMaxLastPackets = 256;

int OpenPidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

std::vector<UniqueFd> TakeDescriptors(msghdr* message) {
  std::vector<UniqueFd> taken;
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

struct AttachServer::Packet {
  std::string_view bytes;  // into buffer_
  bool truncated = false;
  std::vector<UniqueFd> descriptors;
};

AttachServer::AttachServer(const AttachServerOptions& options, std::unique_ptr<UnixListener> listener, Strand& control,
                           const Clock& clock, Handler& handler)
    : options_(options),
      control_(control),
      clock_(clock),
      handler_(handler),
      dispose_([](UniqueFd) {}),
      listener_(std::move(listener)),
      buffer_(attach::kMaxPacket + 1, '\0'),
      admin_(GroupId(options.admin_group)),
      max_attached_(options.max_attached) {}

Result<std::unique_ptr<AttachServer>> AttachServer::Listen(const AttachServerOptions& options,
                                                           Strand& control, const Clock& clock,
                                                           Handler& handler, std::string* warning) {
  auto listener = UnixListener::Listen("attach", {options.path, options.group, SOCK_SEQPACKET}, warning);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<AttachServer>(new AttachServer(options, std::move(listener).value(), control, clock, handler));
}

void AttachServer::Start() {
  strand_.Post([this] { listener_->Start(strand_, [this](UniqueFd fd, const sockaddr_storage&) { Admit(std::move(fd)); }); });
}

AttachServer::~AttachServer() { Stop(); }

void AttachServer::Stop() {
  if (std::exchange(stopped_, true)) return;
  executor_.Stop();
  links_.clear();
  listener_->Close();
}

void AttachServer::SetDisposer(std::function<void(UniqueFd)> dispose) {
  dispose_ = std::move(dispose);
}

void AttachServer::CheckPath() {
  strand_.Post([this] { listener_->CheckPath(); });
}

void AttachServer::Configure(const std::string& admin_group, size_t max_attached) {
  strand_.Post([this, group = GroupId(admin_group), max_attached] {
    admin_ = group;
    max_attached_ = max_attached;
  });
}

AttachLink* AttachServer::Find(uint64_t id) const {
  auto found = links_.find(id);
  return found == links_.end() || found->second->dropped ? nullptr : found->second.get();
}

void AttachServer::Send(uint64_t id, const attach::ToProcess& message) {
  strand_.Post([this, id, message] {
    if (AttachLink* link = Find(id); link != nullptr) SendOn(*link, message);
  });
}

void AttachServer::SendOn(AttachLink& link, const attach::ToProcess& message) {
  std::string packet = attach::Encode(message);
  if (packet.size() > attach::kMaxPacket) return;
  if (link.Send(std::move(packet))) {
    Watch(link);
    return;
  }
  counters_.slow_disconnects.fetch_add(1, std::memory_order_relaxed);
  DropSoon(link);
}

void AttachServer::Ready(uint64_t id) {
  strand_.Post([this, id] { Resume(id); });
}

void AttachServer::Refuse(uint64_t id, const Status& why) {
  strand_.Post([this, id, why] {
    AttachLink* link = Find(id);
    if (link == nullptr) return;
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    RefuseLink(*link, why);
  });
}

void AttachServer::Close(uint64_t id) {
  strand_.Post([this, id] {
    if (AttachLink* link = Find(id); link != nullptr) DropSoon(*link);
  });
}

void AttachServer::RefuseLink(AttachLink& link, const Status& why) {
  attach::Refused refused{static_cast<int>(why.code()), why.message()};
  // Whether it fits into the socket does not matter any more.
  [[maybe_unused]] bool sent = link.Send(attach::Encode(attach::ToProcess(refused)));
  DropSoon(link);
}

// One user cannot keep the others out: at most half of the places are for one uid.
Status AttachServer::CheckLimits(const Peer& peer) {
  size_t all = 0;
  size_t own = 0;
  for (const auto& [id, link] : links_) {
    if (!link->refusal.ok()) continue;
    ++all;
    own += link->peer.uid == peer.uid ? 1 : 0;
  }
  if (all >= max_attached_) {
    counters_.refused_limit.fetch_add(1, std::memory_order_relaxed);
    return ResourceExhausted(fmt::format("{} processes are attached, the limit of this node (daemon.max_attached)", all));
  }
  if (!peer.admin && own >= std::max<size_t>(max_attached_ / 2, 1)) {
    counters_.refused_user_limit.fetch_add(1, std::memory_order_relaxed);
    return ResourceExhausted(
        fmt::format("{} processes of uid {} are attached, the limit for one user (half of daemon.max_attached)", own, peer.uid));
  }
  return Status::Ok();
}

void AttachServer::Admit(UniqueFd fd) {
  Result<Peer> peer = PeerOfSocket(fd.get(), admin_);
  if (!peer.ok()) return;
  Status allowed = CheckLimits(*peer);
  if (allowed.ok() && peer->pid <= 0) {
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    allowed = FailedPrecondition("the process is in a pid namespace that profd cannot see");
  }
  const uint64_t id = next_id_++;
  AttachLink& link =
      *(links_[id] = std::make_unique<AttachLink>(id, std::move(fd), std::move(peer).value(), strand_, queued_));
  if (allowed.ok() && !link.watch.ok()) {
    counters_.refused_limit.fetch_add(1, std::memory_order_relaxed);
    allowed = ResourceExhausted("the kernel watches no more connections (fs.epoll.max_user_watches)");
  }
  link.refusal = allowed;
  if (!allowed.ok() && (!link.watch.ok() || links_.size() > max_attached_ + kMaxRefused)) {
    return RefuseLink(link, allowed);
  }
  link.timer.After(options_.hello_deadline_ns, [this, id] {
    AttachLink* late = Find(id);
    if (late == nullptr) return;
    if (!late->refusal.ok()) return RefuseLink(*late, late->refusal);
    // On a busy machine this may run before what has arrived was read.
    const ReadResult read = ReadOne(*late);
    if (read == ReadResult::kPacket) return;
    if (read == ReadResult::kEnd) return DropSoon(*late);
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    RefuseLink(*late, DeadlineExceeded("no hello in time"));
  });
  Watch(link);
}

void AttachServer::Watch(AttachLink& link) {
  if (link.dropped) return;
  if (!link.busy && !link.waits_to_read) {
    link.waits_to_read = true;
    link.watch.WhenReadable([this, id = link.id] { OnReadable(id); });
  }
  if (link.has_queued() && !link.waits_to_write) {
    link.waits_to_write = true;
    link.watch.WhenWritable([this, id = link.id] { OnWritable(id); });
  }
}

void AttachServer::OnReadable(uint64_t id) {
  AttachLink* link = Find(id);
  if (link == nullptr) return;
  link->waits_to_read = false;
  if (!link->refusal.ok()) return RefuseLink(*link, link->refusal);
  if (!link->busy && ReadOne(*link) == ReadResult::kEnd) DropSoon(*link);
  Watch(*link);
}

void AttachServer::OnWritable(uint64_t id) {
  AttachLink* link = Find(id);
  if (link == nullptr) return;
  link->waits_to_write = false;
  if (!link->Flush()) DropSoon(*link);
  Watch(*link);
}

// Children that inherited the connection do not keep it.
void AttachServer::OnProcessEnded(uint64_t id) {
  AttachLink* link = Find(id);
  if (link == nullptr) return;
  // What it sent before still counts, a farewell above all.
  for (int i = 0; i < kMaxLastPackets && ReadOne(*link) == ReadResult::kPacket; ++i) continue;
  DropSoon(*link);
}

void AttachServer::Resume(uint64_t id) {
  AttachLink* link = Find(id);
  if (link == nullptr) return;
  link->busy = false;
  Watch(*link);
}

AttachServer::ReadResult AttachServer::ReadOne(AttachLink& link) {
  if (!link.allowance.Take(clock_.SteadyNs())) {
    link.busy = true;
    link.timer.At(link.allowance.NextNs(), [this, id = link.id] { Resume(id); });
    return ReadResult::kNothing;
  }
  iovec part{buffer_.data(), buffer_.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = ::recvmsg(link.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return errno == EAGAIN || errno == EINTR ? ReadResult::kNothing : ReadResult::kEnd;
  Packet packet;
  packet.descriptors = TakeDescriptors(&message);
  packet.bytes = std::string_view(buffer_).substr(0, static_cast<size_t>(size));
  packet.truncated = (message.msg_flags & MSG_TRUNC) != 0;
  if (size == 0 && packet.descriptors.empty()) return ReadResult::kEnd;
  OnPacket(link, std::move(packet));
  return ReadResult::kPacket;
}

void AttachServer::OnPacket(AttachLink& link, Packet packet) {
  Result<attach::ToDaemon> parsed =
      packet.truncated ? Status(InvalidArgument("the packet is longer than allowed"))
                       : attach::ParseToDaemon(packet.bytes);
  auto* hello = parsed.ok() ? std::get_if<attach::Hello>(&*parsed) : nullptr;
  if (hello != nullptr && !link.greeted) {
    OnHello(link, std::move(*hello), std::move(packet.descriptors));
    return;
  }
  Status status = parsed.status();
  if (status.ok() && !link.greeted) {
    status = FailedPrecondition("the first packet must be a hello");
  } else if (hello != nullptr) {
    status = FailedPrecondition("there has been a hello already");
  }
  CarriedByReport carried;
  if (status.ok()) {
    Result<CarriedByReport> taken = TakeCarried(link, *parsed, &packet.descriptors);
    status = taken.status();
    if (taken.ok()) carried = std::move(taken).value();
  }
  Dispose(std::move(packet.descriptors));
  if (!status.ok()) return OnBadPacket(link, status);
  link.busy = true;
  control_.Post([this, id = link.id, message = std::move(*parsed), carried = std::move(carried)]() mutable {
    handler_.OnPacket(id, std::move(message), std::move(carried));
    Ready(id);
  });
}

Result<CarriedByReport> AttachServer::TakeCarried(AttachLink& link, const attach::ToDaemon& message,
                                                  std::vector<UniqueFd>* descriptors) {
  CarriedByReport carried;
  const auto* report = std::get_if<attach::CollectorReport>(&message);
  const bool ring = report != nullptr && report->has_ring;
  const bool files = report != nullptr && report->has_files;
  if (!ring && !files && descriptors->empty()) return carried;
  if (!ring && !files) {
    return InvalidArgument("descriptors come with a hello or a collector that promises a ring or files only");
  }
  if (descriptors->size() != 1) {
    return InvalidArgument("a collector that promises a ring or files carries one descriptor");
  }
  if (files) {
    carried.files = std::shared_ptr<UniqueFd>(new UniqueFd(std::move(descriptors->front())),
                                              [dispose = dispose_](UniqueFd* fd) {
                                                if (fd->valid()) dispose(std::move(*fd));
                                                delete fd;
                                              });
  } else {
    Result<std::unique_ptr<ActivityReader>> mapped = ActivityReader::Map(std::move(descriptors->front()));
    if (!mapped.ok()) return mapped.status();
    // The names of each would be kept as long as a session has not taken what was read of it.
    if (std::exchange(link.has_activity_ring, true)) {
      return InvalidArgument("this connection has an activity ring already");
    }
    carried.activity = std::move(mapped).value();
  }
  descriptors->clear();
  return carried;
}

void AttachServer::OnHello(AttachLink& link, attach::Hello hello,
                           std::vector<UniqueFd> descriptors) {
  std::unique_ptr<RingReader> ring;
  Status status;
  if (descriptors.size() > 1) status = InvalidArgument("a hello carries one descriptor at most");
  if (status.ok() && hello.has_ring && descriptors.empty()) {
    status = InvalidArgument("the hello promises a mark ring that did not come with it");
  }
  if (status.ok() && hello.has_ring) {
    Result<std::unique_ptr<RingReader>> mapped = RingReader::Map(descriptors[0]);
    if (mapped.ok()) {
      ring = std::move(mapped).value();
    } else {
      status = mapped.status();
    }
  }
  Dispose(std::move(descriptors));
  if (!status.ok()) {
    OnBadPacket(link, status);
    return;
  }
  link.greeted = true;
  link.busy = true;
  link.timer.Cancel();
  link.pidfd = UniqueFd(OpenPidfd(link.peer.pid));
  // Without one (an old kernel) the hangup of its connection has to do.
  if (link.pidfd.valid()) {
    link.process.emplace(strand_, link.pidfd.get());
    link.process->WhenReadable([this, id = link.id] { OnProcessEnded(id); });
  }
  auto arrival = std::make_shared<AttachArrival>(
      AttachArrival{link.id, link.peer, std::move(hello), std::move(ring)});
  control_.Post([this, arrival] { handler_.OnHello(std::move(*arrival)); });
}

// Before the hello it ends the connection; afterwards the process is notified and may go on for a while:
// a library newer than this daemon may say things we do not know.
void AttachServer::OnBadPacket(AttachLink& link, const Status& why) {
  counters_.protocol_errors.fetch_add(1, std::memory_order_relaxed);
  if (!link.greeted) {
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    RefuseLink(link, why);
    return;
  }
  if (++link.bad_packets > kMaxBadPackets) {
    DropSoon(link);
    return;
  }
  SendOn(link, attach::Reply{0, static_cast<int>(why.code()), why.message(), {}});
}

void AttachServer::Dispose(std::vector<UniqueFd> descriptors) {
  for (UniqueFd& fd : descriptors) {
    // Only what is certainly a memfd closes without a call to another process.
    if (::fcntl(fd.get(), F_GET_SEALS) >= 0) {
      fd.Reset();
    } else {
      dispose_(std::move(fd));
    }
  }
}

void AttachServer::DropSoon(AttachLink& link) {
  if (std::exchange(link.dropped, true)) return;
  strand_.Post([this, id = link.id] { Drop(id); });
}

void AttachServer::Drop(uint64_t id) {
  auto found = links_.find(id);
  const bool greeted = found->second->greeted;
  links_.erase(found);
  if (greeted) control_.Post([this, id] { handler_.OnClosed(id); });
}

}  // namespace profd
