#include "client/libprofd/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/fd.h"
#include "proto/attach/attach_protocol.h"

namespace profd::lib {
namespace {

void CloseInt(int* fd) {
  if (*fd >= 0) ::close(*fd);
  *fd = -1;
}

}  // namespace

Status Descriptors::Open() {
  const MutexLock lock(mutex_);
  if (wake_ < 0) wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ >= 0 && done_ < 0) done_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return done_ >= 0 ? Status::Ok() : Status::FromErrno(errno, "eventfd");
}

void Descriptors::Ring(int doorbell) {
  const uint64_t one = 1;
  // Full means that it rings already.
  if (::write(doorbell, &one, sizeof one) < 0) return;
}

void Descriptors::Hush(int doorbell) {
  uint64_t count = 0;
  if (::read(doorbell, &count, sizeof count) < 0) return;
}

bool Descriptors::WaitDone(int wait_ms) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(wait_ms);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waited{done_, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    // A signal of the application's, on its own thread.
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

Status Descriptors::MakeRing(uint32_t slots) {
  if (ring_ >= 0) return Status::Ok();
  slots = attach::RingSlotsFor(slots);
  const size_t bytes = attach::RingBytes(slots);
  const MutexLock lock(mutex_);
  UniqueFd memfd(::memfd_create("profd-marks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd.valid()) return Status::FromErrno(errno, "memfd of the mark ring");
  if (::ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::FromErrno(errno, "size of the mark ring");
  }
  // Populated now: no page fault in a training step.
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memfd.get(), 0);
  if (memory == MAP_FAILED) return Status::FromErrno(errno, "map the mark ring");
  if (::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    Status status = Status::FromErrno(errno, "seal the mark ring");
    ::munmap(memory, bytes);
    return status;
  }
  writer_ = attach::MarkRingWriter::Format(memory, slots);
  ring_memory_ = memory;
  ring_slots_ = slots;
  ring_ = memfd.Release();
  return Status::Ok();
}

Status Descriptors::Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return InvalidArgument("no usable path of a socket: \"" + path + "\"");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const MutexLock lock(mutex_);
  UniqueFd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return Status::FromErrno(errno, "socket");
  // Never waits: a full backlog is EAGAIN.
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::FromErrno(errno, "connect to " + path);
  }
  CloseInt(&socket_);
  socket_ = made.Release();
  return Status::Ok();
}

void Descriptors::Disconnect() {
  const MutexLock lock(mutex_);
  CloseInt(&socket_);
}

void Descriptors::Abandon() {
  CloseInt(&socket_);
  CloseInt(&wake_);
  CloseInt(&done_);
  CloseInt(&ring_);
  if (ring_memory_ != nullptr) ::munmap(ring_memory_, attach::RingBytes(ring_slots_));
  ring_memory_ = nullptr;
}

Status SendPacket(int socket, std::string_view packet, int fd) {
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Status::Ok();
  if (errno == EAGAIN || errno == ENOBUFS) return ResourceExhausted("no space in the socket");
  return Unavailable(Status::FromErrno(errno, "send").message());
}

Result<std::string> ReceivePacket(int socket) {
  std::string packet(attach::kMaxPacket + 1, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(socket, packet.data(), packet.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return ResourceExhausted("nothing there");
  if (got < 0) return Unavailable(Status::FromErrno(errno, "receive").message());
  if (got == 0) return Unavailable("the daemon closed the connection");
  packet.resize(static_cast<size_t>(got));
  return packet;
}

}  // namespace profd::lib
