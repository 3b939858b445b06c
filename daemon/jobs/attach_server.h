// The attach socket: accepts training processes, reads their credentials from the kernel, reads and checks their
// packets, and hands them to the control strand one at a time. One thread of its own, with a strand
// that all of its state belongs to. docs/internals.md
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
#include "daemon/jobs/activity_reader.h"
#include "daemon/jobs/attach_link.h"
#include "daemon/jobs/ring_reader.h"
#include "daemon/rpc/unix_listener.h"
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

// Descriptors that were received with a CollectorReport.
struct CarriedByReport {
  std::shared_ptr<ActivityReader> activity;
  // Whatever the process sent as a directory: not looked at yet, since a look may wait for another process.
  std::shared_ptr<UniqueFd> files;
};

// Refused connections and packets, by reason; written on the server's strand.
struct AttachCounters {
  std::atomic<uint64_t> refused_limit{0};
  std::atomic<uint64_t> refused_user_limit{0};
  std::atomic<uint64_t> refused_hello{0};  // wrong, late, or from a process that profd cannot see
  std::atomic<uint64_t> protocol_errors{0};
  std::atomic<uint64_t> slow_disconnects{0};
};

class AttachServer {
 public:
  // What becomes of the connections. All on the control strand; outlives the server.
  class Handler {
   public:
    // Its packets wait until Ready(id).
    virtual void OnHello(AttachArrival arrival) = 0;
    virtual void OnPacket(uint64_t id, attach::ToDaemon message, CarriedByReport carried) = 0;
    // Once for each that sent Hello; nothing of it follows.
    virtual void OnClosed(uint64_t id) = 0;

   protected:
    ~Handler() = default;
  };

  static Result<std::unique_ptr<AttachServer>> Listen(const AttachServerOptions& options,
                                                      Strand& control, const Clock& clock,
                                                      Handler& handler, std::string* warning);
  void Start();
  // Stops accepting and reading, closes everything, removes the socket file. Idempotent. Events that
  // are under way still come: the control strand must end before this object does.
  void Stop();
  ~AttachServer();

  // Thread-safe: done on the server's strand, in order. Without effect on a connection that is gone.
  void Send(uint64_t id, const attach::ToProcess& message);
  void Ready(uint64_t id);
  // Refuses and closes.
  void Refuse(uint64_t id, const Status& why);
  void Close(uint64_t id);
  // Before Start: closes descriptors elsewhere than on the server's thread; those that strangers send
  // may take long to close.
  void SetDisposer(std::function<void(UniqueFd)> dispose);

  // Listens again where the socket's file was removed or replaced; attached processes stay. About once a second.
  void CheckPath();
  void Configure(const std::string& admin_group, size_t max_attached);
  const AttachCounters& counters() const { return counters_; }

 private:
  struct Packet;
  AttachServer(const AttachServerOptions& options, std::unique_ptr<UnixListener> listener, Strand& control,
               const Clock& clock, Handler& handler);
  AttachLink* Find(uint64_t id) const;
  void Admit(UniqueFd fd);
  Status CheckLimits(const Peer& peer);
  // Waits for what the connection may do next.
  void Watch(AttachLink& link);
  void OnReadable(uint64_t id);
  void OnWritable(uint64_t id);
  void OnProcessEnded(uint64_t id);
  void Resume(uint64_t id);
  enum class ReadResult : uint8_t { kPacket, kNothing, kEnd };
  ReadResult ReadOne(AttachLink& link);
  void OnPacket(AttachLink& link, Packet packet);
  void OnHello(AttachLink& link, attach::Hello hello, std::vector<UniqueFd> descriptors);
  // What a packet after the hello promises.
  Result<CarriedByReport> TakeCarried(AttachLink& link, const attach::ToDaemon& message, std::vector<UniqueFd>* descriptors);
  void OnBadPacket(AttachLink& link, const Status& why);
  void SendOn(AttachLink& link, const attach::ToProcess& message);
  void RefuseLink(AttachLink& link, const Status& why);
  // Forgets it once nothing of it runs.
  void DropSoon(AttachLink& link);
  void Drop(uint64_t id);
  void Dispose(std::vector<UniqueFd> descriptors);

  const AttachServerOptions options_;
  Strand& control_;
  const Clock& clock_;
  Handler& handler_;
  std::function<void(UniqueFd)> dispose_;
  const std::unique_ptr<UnixListener> listener_;
  AttachCounters counters_;
  bool stopped_ = false;
  Executor executor_{"profd-attach", 1};
  Strand strand_{executor_};

  // On the strand.
  std::string buffer_;
  const std::shared_ptr<UserMemory> queued_ =
      std::make_shared<UserMemory>(AttachLink::kMaxQueuedOfUser, AttachLink::kMaxQueuedOfAll);
  std::map<uint64_t, std::unique_ptr<AttachLink>> links_;
  uint64_t next_id_ = 1;
  std::optional<gid_t> admin_;
  size_t max_attached_;
};

}  // namespace profd
