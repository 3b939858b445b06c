// Listens on the unix socket, reads the peer's credentials from the kernel, and hands the connection to
// gRPC. For every call the peer is then found by the descriptor gRPC names in "fd:N".
//
// Descriptor numbers given to gRPC rise and wrap only after tens of thousands of connections, so that
// a call still in flight on a closed connection is not taken for its successor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "daemon/config/daemon_config.h"
#include "daemon/session/peer.h"

namespace profd {

struct AcceptorOptions {
  std::string socket_path;
  std::string socket_group;  // empty = root's group only
  std::string admin_group;   // empty = root only
  int max_connections = 256;
  std::string archive_user = {};  // Peer::archiver; empty = no user
  int64_t rest_after_ns = 3 * kNsPerSecond;  // Handler::Rest
};

AcceptorOptions AcceptorOptionsOf(const DaemonConfig& config);

// Each group and user of the configuration that this machine does not have, by its key, and what follows.
std::vector<std::string> UnknownAccounts(const DaemonConfig& config);

class Acceptor {
 public:
  // What becomes of the connections. On the acceptor's thread; outlives the acceptor.
  class Handler {
   public:
    // Takes ownership of the descriptor.
    virtual void Adopt(int fd) = 0;
    // There is no connection and there was none for so long; called again where it answers false.
    virtual bool Rest() = 0;

   protected:
    ~Handler() = default;
  };

  // Binds at once; as ListenUnix.
  static Result<std::unique_ptr<Acceptor>> Listen(const AcceptorOptions& options, Handler& handler,
                                                  std::string* warning);
  // Begins to accept; connections made since Listen have been waiting.
  void Start();
  // Listens again where the socket's file was removed or replaced; connections stay. About once a second.
  void CheckPath();
  // Stops listening and removes the socket file; who is connected stays known. Idempotent.
  void Stop();
  ~Acceptor();  // Stop()

  // The caller of a call; `peer_text` as ServerContext::peer() returns it. Thread-safe.
  std::optional<Peer> Identify(std::string_view peer_text) const;

  // All but where it listens.
  void Configure(const AcceptorOptions& options);
  size_t connections() const;
  uint64_t rejected() const;

 private:
  struct Impl;
  explicit Acceptor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
