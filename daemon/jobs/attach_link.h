// One connection on the attach socket: what it may still send, what waits to be sent to it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd {

// Packets a connection may send: a burst, then so many a second.
class PacketAllowance {
 public:
  static constexpr int64_t kPerSecond = 200;
  static constexpr int64_t kBurst = 400;

  // True if one more may be read now.
  bool Take(int64_t now_ns);
  // When Take will say yes again.
  int64_t NextNs() const { return refilled_ns_ + kNsPerSecond / kPerSecond; }

 private:
  int64_t left_ = kBurst;
  int64_t refilled_ns_ = 0;
};

// Shared by the server's thread, which reads and closes, and the control strand, which sends. The
// descriptor is watched once per event (EPOLLONESHOT): a packet that has not been dealt with keeps its
// connection from being read, so that no more than one of each is ever in memory.
class AttachLink {
 public:
  static constexpr size_t kMaxQueued = 256;
  static constexpr size_t kMaxQueuedBytes = 1 << 20;

  AttachLink(uint64_t link_id, UniqueFd fd, Peer peer, int epoll)
      : id(link_id), peer_(std::move(peer)), fd_(std::move(fd)), epoll_(epoll) {}

  const uint64_t id;
  const Peer& peer() const { return peer_; }

  // Sends now or queues; false when the other side has not been reading for too long.
  bool Send(std::string packet);
  // Sends what is queued; false when the connection is broken.
  bool Flush();
  // Goes on reading.
  void Resume();
  // Closed by the server's thread as soon as it looks.
  void Doom();
  bool doomed() const;
  void Watch();
  // Nothing is sent or watched afterwards.
  void Close();
  int fd() const { return fd_.get(); }

  // The server's thread only.
  PacketAllowance allowance;
  int64_t accepted_ns = 0;
  int64_t paused_until_ns = 0;
  bool greeted = false;  // its hello was passed on
  int bad_packets = 0;
  UniqueFd pidfd;

  // Stops reading until Resume.
  void Pause();

 private:
  void WatchLocked();

  const Peer peer_;
  mutable std::mutex mutex_;  // everything below
  UniqueFd fd_;
  const int epoll_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  bool reading_ = true;
  bool doomed_ = false;
};

// The tags of a connection in epoll.
constexpr uint64_t LinkTag(uint64_t id) { return id << 1; }
constexpr uint64_t PidfdTag(uint64_t id) { return id << 1 | 1; }

}  // namespace profd
