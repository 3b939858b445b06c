// One connection on the attach socket: what it may still send, what waits to be sent to it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/jobs/user_memory.h"
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

// Lives on the server's strand. A packet that has not been dealt with keeps its connection from being
// read, so that no more than one of each is ever in memory.
class AttachLink {
 public:
  static constexpr size_t kMaxQueued = 256;
  static constexpr size_t kMaxQueuedBytes = 1 << 20;
  // Of all connections of a user, and of all.
  static constexpr size_t kMaxQueuedOfUser = size_t{32} << 20;
  static constexpr size_t kMaxQueuedOfAll = size_t{128} << 20;

  AttachLink(uint64_t link_id, UniqueFd fd, Peer link_peer, Strand& strand, std::shared_ptr<UserMemory> queued)
      : id(link_id), peer(std::move(link_peer)), fd_(std::move(fd)), held_(std::move(queued), peer.uid),
        watch(strand, fd_.get()), timer(strand) {}
  ~AttachLink();

  const uint64_t id;
  const Peer peer;

  // Sends now or queues; false when the other side has not been reading for too long.
  bool Send(std::string packet);
  // Sends what is queued; false when the connection is broken.
  bool Flush();
  bool has_queued() const { return !queue_.empty(); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;  // outlives the watch
  std::deque<std::string> queue_;
  HeldMemory held_;  // by the queue

 public:
  FdWatch watch;
  Timer timer;  // until the hello: its deadline; then: when it may send again
  PacketAllowance allowance;
  Status refusal;               // not ok: what its hello is answered with
  bool greeted = false;         // its hello was passed on
  bool busy = false;            // a packet of it is being dealt with, or it has to wait
  bool waits_to_read = false;   // on `watch`
  bool waits_to_write = false;  // on `watch`
  bool dropped = false;         // to be forgotten as soon as nothing of it runs
  bool has_activity_ring = false;
  int bad_packets = 0;
  UniqueFd pidfd;
  std::optional<FdWatch> process;  // on `pidfd`
};

}  // namespace profd
