#include "daemon/jobs/attach_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/rpc/unix_listener.h"

namespace profd {
namespace {

constexpr uint64_t kListenerTag = 0;
constexpr uint64_t kWakeTag = 1;
constexpr int kAcceptBatch = 64;
constexpr int64_t kOutOfDescriptorsNs = kNsPerSecond;
// Descriptors taken from one packet; the kernel closes what is beyond.
constexpr size_t kMaxDescriptors = 4;
constexpr int kMaxBadPackets = 16;
// How often hello deadlines are looked at.
constexpr int64_t kSweepNs = kNsPerSecond / 4;
// How often connections that sent too fast are.
constexpr int64_t kPauseNs = 10 * kNsPerMs;
// What a process that has ended may have left unread; more is not in a socket's buffer.
constexpr int kMaxLastPackets = 256;

int OpenPidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void AddTo(int epoll, int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

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

struct AttachServer::Thread {
  std::thread thread;
  std::atomic<bool> stop{false};
};

struct AttachServer::Packet {
  std::string_view bytes;  // into buffer_
  bool truncated = false;
  std::vector<UniqueFd> descriptors;
};

AttachServer::AttachServer(const AttachServerOptions& options, Strand& control, const Clock& clock,
                           Events events)
    : options_(options),
      control_(control),
      clock_(clock),
      events_(std::move(events)),
      dispose_([](UniqueFd) {}),
      buffer_(attach::kMaxPacket + 1, '\0'),
      thread_(std::make_unique<Thread>()),
      admin_(GroupId(options.admin_group)),
      max_attached_(options.max_attached) {}

Result<std::unique_ptr<AttachServer>> AttachServer::Listen(const AttachServerOptions& options,
                                                           Strand& control, const Clock& clock,
                                                           Events events, std::string* warning) {
  Result<UniqueFd> listener = ListenUnix({options.path, options.group, SOCK_SEQPACKET}, warning);
  if (!listener.ok()) return listener.status();
  std::unique_ptr<AttachServer> server(
      new AttachServer(options, control, clock, std::move(events)));
  server->listener_ = std::move(listener).value();
  server->epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  server->wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->epoll_.valid() || !server->wake_.valid()) {
    return Status::FromErrno(errno, "epoll of the attach socket");
  }
  AddTo(server->epoll_.get(), server->listener_.get(), EPOLLIN, kListenerTag);
  AddTo(server->epoll_.get(), server->wake_.get(), EPOLLIN, kWakeTag);
  return server;
}

void AttachServer::Start() {
  thread_->thread = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "profd-attach");
    Run();
  });
}

AttachServer::~AttachServer() { Stop(); }

void AttachServer::Stop() {
  if (thread_->stop.exchange(true)) return;
  uint64_t one = 1;
  bool woken = ::write(wake_.get(), &one, sizeof one) == sizeof one;
  if (woken && thread_->thread.joinable()) thread_->thread.join();
  listener_.Reset();
  ::unlink(options_.path.c_str());
  std::lock_guard lock(mutex_);
  for (const auto& [id, link] : links_) link->Close();
  links_.clear();
}

void AttachServer::SetDisposer(std::function<void(UniqueFd)> dispose) {
  dispose_ = std::move(dispose);
}

void AttachServer::Configure(const std::string& admin_group, size_t max_attached) {
  std::optional<gid_t> group = GroupId(admin_group);
  std::lock_guard lock(mutex_);
  admin_ = group;
  max_attached_ = max_attached;
}

std::shared_ptr<AttachLink> AttachServer::Find(uint64_t id) const {
  std::lock_guard lock(mutex_);
  auto found = links_.find(id);
  return found == links_.end() ? nullptr : found->second;
}

void AttachServer::Send(uint64_t id, const attach::ToProcess& message) {
  std::shared_ptr<AttachLink> link = Find(id);
  if (link == nullptr) return;
  std::string packet = attach::Encode(message);
  if (packet.size() > attach::kMaxPacket || link->Send(std::move(packet))) return;
  counters_.slow_disconnects.fetch_add(1, std::memory_order_relaxed);
  link->Doom();
}

void AttachServer::Ready(uint64_t id) {
  if (std::shared_ptr<AttachLink> link = Find(id); link != nullptr) link->Resume();
}

void AttachServer::Refuse(uint64_t id, const Status& why) {
  if (std::shared_ptr<AttachLink> link = Find(id); link != nullptr) {
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    RefuseLink(*link, why);
  }
}

void AttachServer::Close(uint64_t id) {
  if (std::shared_ptr<AttachLink> link = Find(id); link != nullptr) link->Doom();
}

void AttachServer::RefuseLink(AttachLink& link, const Status& why) {
  attach::Refused refused{static_cast<int>(why.code()), why.message()};
  // Whether it fits into the socket does not matter any more.
  [[maybe_unused]] bool sent = link.Send(attach::Encode(attach::ToProcess(refused)));
  link.Doom();
}

void AttachServer::Run() {
  std::array<epoll_event, 64> events{};
  while (!thread_->stop.load()) {
    int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), TimeoutMs());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      uint64_t tag = events[static_cast<size_t>(i)].data.u64;
      if (tag == kListenerTag) {
        AcceptSome();
      } else if (tag != kWakeTag) {
        OnEvent(tag, events[static_cast<size_t>(i)].events);
      }
    }
    OnTimers();
  }
}

// Who has not said hello or sends too fast is looked at again; otherwise only events matter.
int AttachServer::TimeoutMs() const {
  if (any_paused_) return static_cast<int>(kPauseNs / kNsPerMs);
  return any_silent_ || accept_again_ns_ != 0 ? static_cast<int>(kSweepNs / kNsPerMs) : -1;
}

void AttachServer::OnTimers() {
  int64_t now = clock_.SteadyNs();
  if (accept_again_ns_ != 0 && now >= accept_again_ns_) {
    accept_again_ns_ = 0;
    AddTo(epoll_.get(), listener_.get(), EPOLLIN, kListenerTag);
  }
  if (!any_paused_ && !any_silent_) return;
  if (now - swept_ns_ < (any_paused_ ? kPauseNs : kSweepNs)) return;
  swept_ns_ = now;
  any_paused_ = any_silent_ = false;
  std::vector<std::shared_ptr<AttachLink>> late;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, link] : links_) {
      if (link->paused_until_ns != 0 && now >= link->paused_until_ns) {
        link->paused_until_ns = 0;
        link->Resume();
      }
      any_paused_ = any_paused_ || link->paused_until_ns != 0;
      any_silent_ = any_silent_ || !link->greeted;
      if (!link->greeted && now - link->accepted_ns > options_.hello_deadline_ns) {
        late.push_back(link);
      }
    }
  }
  for (const auto& link : late) {
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    RefuseLink(*link, DeadlineExceeded("no hello in time"));
    Drop(link->id);
  }
}

void AttachServer::AcceptSome() {
  for (int i = 0; i < kAcceptBatch; ++i) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      Admit(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) {
      // EMFILE and the like: the listener stays readable, so it rests for a while.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
      accept_again_ns_ = clock_.SteadyNs() + kOutOfDescriptorsNs;
    }
    return;
  }
}

// One user cannot keep the others out: at most half of the places are for one uid.
Status AttachServer::CheckRoom(const Peer& peer) {
  std::lock_guard lock(mutex_);
  if (links_.size() >= max_attached_) {
    counters_.refused_limit.fetch_add(1, std::memory_order_relaxed);
    return ResourceExhausted(
        fmt::format("{} processes are attached, which is the limit", links_.size()));
  }
  size_t own = 0;
  for (const auto& [id, link] : links_) own += link->peer().uid == peer.uid ? 1 : 0;
  if (!peer.admin && own >= std::max<size_t>(max_attached_ / 2, 1)) {
    counters_.refused_user_limit.fetch_add(1, std::memory_order_relaxed);
    return ResourceExhausted(
        fmt::format("{} processes of uid {} are attached, which is the limit", own, peer.uid));
  }
  return Status::Ok();
}

void AttachServer::Admit(UniqueFd fd) {
  std::optional<gid_t> admin;
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    admin = admin_;
    id = next_id_++;
  }
  Result<Peer> peer = PeerOfSocket(fd.get(), admin);
  if (!peer.ok()) return;
  Status room = CheckRoom(*peer);
  if (room.ok() && peer->pid <= 0) {
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    room = FailedPrecondition("the process is in a pid namespace that profd cannot see");
  }
  int raw = fd.get();
  auto link = std::make_shared<AttachLink>(id, std::move(fd), std::move(peer).value(), epoll_.get());
  if (!room.ok()) {
    RefuseLink(*link, room);
    link->Close();
    return;
  }
  any_silent_ = true;
  link->accepted_ns = clock_.SteadyNs();
  {
    std::lock_guard lock(mutex_);
    links_.emplace(id, link);
  }
  AddTo(epoll_.get(), raw, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, LinkTag(id));
}

void AttachServer::OnEvent(uint64_t tag, uint32_t events) {
  uint64_t id = tag >> 1;
  std::shared_ptr<AttachLink> link = Find(id);
  if (link == nullptr) return;
  // The process itself has ended; children that inherited the connection do not keep it.
  if (tag == PidfdTag(id)) {
    // What it sent before still counts, a farewell above all.
    for (int i = 0; i < kMaxLastPackets && ReadOne(*link) == Reading::kPacket; ++i) continue;
    Drop(id);
    return;
  }
  if (link->doomed() || !link->Flush()) {
    Drop(id);
    return;
  }
  constexpr uint32_t kToRead = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & kToRead) != 0 && ReadOne(*link) == Reading::kEnd) {
    Drop(id);
    return;
  }
  link->Watch();
}

AttachServer::Reading AttachServer::ReadOne(AttachLink& link) {
  if (!link.allowance.Take(clock_.SteadyNs())) {
    link.Pause();
    link.paused_until_ns = link.allowance.NextNs();
    any_paused_ = true;
    return Reading::kNothing;
  }
  iovec part{buffer_.data(), buffer_.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = ::recvmsg(link.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return errno == EAGAIN || errno == EINTR ? Reading::kNothing : Reading::kEnd;
  Packet packet;
  packet.descriptors = TakeDescriptors(&message);
  packet.bytes = std::string_view(buffer_).substr(0, static_cast<size_t>(size));
  packet.truncated = (message.msg_flags & MSG_TRUNC) != 0;
  if (size == 0 && packet.descriptors.empty()) return Reading::kEnd;
  OnPacket(link, std::move(packet));
  return Reading::kPacket;
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
  bool junk = !packet.descriptors.empty();
  Dispose(std::move(packet.descriptors));
  if (!parsed.ok()) {
    OnBadPacket(link, parsed.status());
  } else if (!link.greeted) {
    OnBadPacket(link, FailedPrecondition("the first packet must be a hello"));
  } else if (hello != nullptr) {
    OnBadPacket(link, FailedPrecondition("there has been a hello already"));
  } else if (junk) {
    OnBadPacket(link, InvalidArgument("descriptors come with the hello only"));
  } else {
    link.Pause();
    control_.Post([this, id = link.id, message = std::move(*parsed)]() mutable {
      events_.on_packet(id, std::move(message));
      Ready(id);
    });
  }
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
  link.Pause();
  link.pidfd = UniqueFd(OpenPidfd(link.peer().pid));
  // Without one (an old kernel) the hangup of its connection has to do.
  if (link.pidfd.valid()) {
    AddTo(epoll_.get(), link.pidfd.get(), EPOLLIN | EPOLLONESHOT, PidfdTag(link.id));
  }
  auto arrival = std::make_shared<AttachArrival>(
      AttachArrival{link.id, link.peer(), std::move(hello), std::move(ring)});
  control_.Post([this, arrival] { events_.on_hello(std::move(*arrival)); });
}

// Before the hello it ends the connection; afterwards the process is told and may go on for a while:
// a library newer than this daemon may say things we do not know.
void AttachServer::OnBadPacket(AttachLink& link, const Status& why) {
  counters_.protocol_errors.fetch_add(1, std::memory_order_relaxed);
  if (!link.greeted) {
    counters_.refused_hello.fetch_add(1, std::memory_order_relaxed);
    RefuseLink(link, why);
    return;
  }
  if (++link.bad_packets > kMaxBadPackets) {
    link.Doom();
    return;
  }
  Send(link.id, attach::Reply{0, static_cast<int>(why.code()), why.message(), {}});
}

void AttachServer::Dispose(std::vector<UniqueFd> descriptors) {
  for (UniqueFd& fd : descriptors) {
    // Only what is certainly a memfd closes without asking anybody.
    if (::fcntl(fd.get(), F_GET_SEALS) >= 0) {
      fd.Reset();
    } else {
      dispose_(std::move(fd));
    }
  }
}

void AttachServer::Drop(uint64_t id) {
  std::shared_ptr<AttachLink> link;
  {
    std::lock_guard lock(mutex_);
    auto found = links_.find(id);
    if (found == links_.end()) return;
    link = std::move(found->second);
    links_.erase(found);
  }
  link->Close();
  link->pidfd.Reset();
  if (!link->greeted) return;
  control_.Post([this, id] { events_.on_closed(id); });
}

}  // namespace profd
