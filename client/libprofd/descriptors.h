// The descriptors and the memory that a forked child must not share with its parent: the socket
// (the daemon would not see the parent go), the doorbells (the child would hear the parent's) and
// the ring. A thread that makes or closes one holds the lock, and so does a fork, so that the child knows
// all of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/status.h"
#include "proto/attach/mark_ring_writer.h"

namespace profd::lib {

class Descriptors {
 public:
  // Doorbells; once.
  Status Open();
  // Once; the ring stays for the life of the process, since a thread may be writing at any time.
  Status MakeRing(uint32_t slots);
  // A non-blocking SOCK_SEQPACKET.
  Status Connect(const std::string& path);
  void Disconnect();

  int socket() const { return socket_; }
  int ring() const { return ring_; }
  const attach::MarkRingWriter& writer() const { return writer_; }

  // Wakes the thread that waits in poll.
  void Wake() const { Ring(wake_); }
  int wake() const { return wake_; }
  void SayDone() const { Ring(done_); }
  // True when SayDone was called, or was within wait_ms.
  bool WaitDone(int wait_ms) const;
  static void Hush(int doorbell);
  int done() const { return done_; }

  void LockForFork() ACQUIRE(mutex_) { mutex_.Lock(); }
  void UnlockAfterFork() RELEASE(mutex_) { mutex_.Unlock(); }
  // In the child: gives all of it up. Only system calls.
  void Abandon();

 private:
  static void Ring(int doorbell);

  Mutex mutex_;  // of making and closing; the thread that does it reads without
  int socket_ = -1;
  int wake_ = -1;
  int done_ = -1;
  int ring_ = -1;
  void* ring_memory_ = nullptr;
  uint32_t ring_slots_ = 0;
  attach::MarkRingWriter writer_;
};

// Sends one packet, with a descriptor when fd >= 0. kResourceExhausted: no space now.
Status SendPacket(int socket, std::string_view packet, int fd);
// kResourceExhausted: nothing there now; kUnavailable: the peer is gone.
Result<std::string> ReceivePacket(int socket);

}  // namespace profd::lib
