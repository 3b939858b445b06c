// The attach socket: accepts training processes, asks the kernel who they are, reads and checks their
// packets, and hands them to the control strand one at a time. One thread, which waits for nothing but
// its epoll set. docs/internals.md
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/jobs/attach_link.h"
#include "daemon/jobs/ring_reader.h"
#include "proto/attach/attach_protocol.h"

namespace profd {

struct AttachServerOptions {
  std::string path;
  std::string group;
  std::string admin_group;
  size_t max_attached = 1024;
  int64_t hello_deadline_ns = 5 * kNsPerSecond;
};

struct AttachArrival {
  uint64_t id = 0;
  Peer peer;
  attach::Hello hello;
  std::unique_ptr<RingReader> ring;  // may be null
};

// Refused connections and packets, by reason; written on the server's thread.
struct AttachCounters {
  std::atomic<uint64_t> refused_limit{0};
  std::atomic<uint64_t> refused_user_limit{0};
  std::atomic<uint64_t> refused_hello{0};  // wrong, late, or from a process nobody can see
  std::atomic<uint64_t> protocol_errors{0};
  std::atomic<uint64_t> slow_disconnects{0};
};

class AttachServer {
 public:
  // All on the control strand.
  struct Events {
    // Its packets wait until Ready(id).
    std::function<void(AttachArrival)> on_hello;
    std::function<void(uint64_t id, attach::ToDaemon)> on_packet;
    // Once for each that said hello; nothing of it follows.
    std::function<void(uint64_t id)> on_closed;
  };

  static Result<std::unique_ptr<AttachServer>> Listen(const AttachServerOptions& options,
                                                      Strand& control, const Clock& clock,
                                                      Events events, std::string* warning);
  void Start();
  // Stops accepting and reading, closes everything, removes the socket file. Idempotent. Events that
  // are under way still come: the control strand must end before this object does.
  void Stop();
  ~AttachServer();

  // Thread-safe. A connection that is gone is nobody's concern.
  void Send(uint64_t id, const attach::ToProcess& message);
  void Ready(uint64_t id);
  // Refuses and closes.
  void Refuse(uint64_t id, const Status& why);
  void Close(uint64_t id);
  // Runs `close` elsewhere than on the server's thread: descriptors that strangers send may take long
  // to close.
  void SetDisposer(std::function<void(UniqueFd)> dispose);

  void Configure(const std::string& admin_group, size_t max_attached);
  const AttachCounters& counters() const { return counters_; }

 private:
  struct Packet;
  AttachServer(const AttachServerOptions& options, Strand& control, const Clock& clock,
               Events events);
  std::shared_ptr<AttachLink> Find(uint64_t id) const;
  void Run();
  int TimeoutMs() const;
  void OnTimers();
  void AcceptSome();
  void Admit(UniqueFd fd);
  Status CheckRoom(const Peer& peer);
  void OnEvent(uint64_t tag, uint32_t events);
  enum class Reading : uint8_t { kPacket, kNothing, kEnd };
  Reading ReadOne(AttachLink& link);
  void OnPacket(AttachLink& link, Packet packet);
  void OnHello(AttachLink& link, attach::Hello hello, std::vector<UniqueFd> descriptors);
  void OnBadPacket(AttachLink& link, const Status& why);
  void RefuseLink(AttachLink& link, const Status& why);
  void Drop(uint64_t id);
  void Dispose(std::vector<UniqueFd> descriptors);

  const AttachServerOptions options_;
  Strand& control_;
  const Clock& clock_;
  const Events events_;
  std::function<void(UniqueFd)> dispose_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  int64_t accept_again_ns_ = 0;  // out of descriptors until then; 0 = accepting
  bool any_silent_ = false;  // some connection has not said hello
  bool any_paused_ = false;  // some connection sent too fast
  int64_t swept_ns_ = 0;
  std::string buffer_;
  AttachCounters counters_;
  struct Thread;
  std::unique_ptr<Thread> thread_;

  mutable std::mutex mutex_;  // below
  std::map<uint64_t, std::shared_ptr<AttachLink>> links_;
  uint64_t next_id_ = 2;  // tags below LinkTag(2) are the listener's and the waker's
  std::optional<gid_t> admin_;
  size_t max_attached_;
};

}  // namespace profd
