#include "daemon/jobs/attach_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace profd {

bool PacketAllowance::Take(int64_t now_ns) {
  constexpr int64_t kEachNs = kNsPerSecond / kPerSecond;
  int64_t earned = (now_ns - refilled_ns_) / kEachNs;
  if (earned > 0) {
    left_ = std::min(kBurst, left_ + std::min(earned, kBurst));
    refilled_ns_ = earned >= kBurst ? now_ns : refilled_ns_ + earned * kEachNs;
  }
  if (left_ == 0) return false;
  --left_;
  return true;
}

bool AttachLink::Send(std::string packet) {
  if (queue_.empty()) {
    ssize_t sent = ::send(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    // Any other error is reported on the reading side, which closes.
    if (sent >= 0 || (errno != EAGAIN && errno != ENOBUFS)) return true;
  }
  packet.shrink_to_fit();
  const size_t bytes = packet.capacity();
  if (queue_.size() == kMaxQueued || held_.bytes() + bytes > kMaxQueuedBytes || !held_.Grow(bytes)) return false;
  queue_.push_back(std::move(packet));
  return true;
}

bool AttachLink::Flush() {
  while (!queue_.empty()) {
    const std::string& packet = queue_.front();
    ssize_t sent = ::send(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
    held_.Shrink(packet.capacity());
    queue_.pop_front();
  }
  return true;
}

AttachLink::~AttachLink() {
  // What stays unread would make the other side's next read fail, before the reason we sent.
  constexpr int kMaxUnread = 1024;
  char byte = 0;
  ::shutdown(fd_.get(), SHUT_RDWR);
  for (int i = 0; i < kMaxUnread && ::recv(fd_.get(), &byte, 1, MSG_DONTWAIT) > 0; ++i) continue;
}

}  // namespace profd
