#include "daemon/jobs/attach_link.h"

#include <sys/epoll.h>
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
  std::lock_guard lock(mutex_);
  if (doomed_ || !fd_.valid()) return true;
  if (queue_.empty()) {
    ssize_t sent = ::send(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    // Any other error shows on the reading side, which closes.
    if (sent >= 0 || (errno != EAGAIN && errno != ENOBUFS)) return true;
  }
  if (queue_.size() == kMaxQueued || queued_bytes_ + packet.size() > kMaxQueuedBytes) return false;
  queued_bytes_ += packet.size();
  queue_.push_back(std::move(packet));
  WatchLocked();
  return true;
}

bool AttachLink::Flush() {
  std::lock_guard lock(mutex_);
  while (!queue_.empty()) {
    const std::string& packet = queue_.front();
    ssize_t sent = ::send(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
    queued_bytes_ -= packet.size();
    queue_.pop_front();
  }
  return true;
}

void AttachLink::Resume() {
  std::lock_guard lock(mutex_);
  reading_ = true;
  WatchLocked();
}

void AttachLink::Pause() {
  std::lock_guard lock(mutex_);
  reading_ = false;
}

void AttachLink::Doom() {
  std::lock_guard lock(mutex_);
  doomed_ = true;
  reading_ = true;
  if (!fd_.valid()) return;
  ::shutdown(fd_.get(), SHUT_RDWR);
  WatchLocked();
}

bool AttachLink::doomed() const {
  std::lock_guard lock(mutex_);
  return doomed_;
}

void AttachLink::Watch() {
  std::lock_guard lock(mutex_);
  WatchLocked();
}

void AttachLink::WatchLocked() {
  if (!fd_.valid() || (!reading_ && queue_.empty())) return;
  epoll_event event{};
  event.events = EPOLLONESHOT;
  if (reading_) event.events |= EPOLLIN | EPOLLRDHUP;
  if (!queue_.empty()) event.events |= EPOLLOUT;
  event.data.u64 = LinkTag(id);
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_.get(), &event);
}

void AttachLink::Close() {
  std::lock_guard lock(mutex_);
  doomed_ = true;
  // What stays unread would make the other side's next read fail, before the reason we sent.
  constexpr int kMaxUnread = 1024;
  char byte = 0;
  ::shutdown(fd_.get(), SHUT_RDWR);
  for (int i = 0; i < kMaxUnread && ::recv(fd_.get(), &byte, 1, MSG_DONTWAIT) > 0; ++i) continue;
  queue_.clear();
  queued_bytes_ = 0;
  fd_.Reset();
}

}  // namespace profd
