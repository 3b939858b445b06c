// Listens on the unix socket, reads the peer's credentials from the kernel, and hands the connection to
// gRPC. For every call the peer is then found by the descriptor gRPC names in "fd:N".
//
// Descriptor numbers given to gRPC rise and wrap only after tens of thousands of connections, so that
// a call still in flight on a closed connection is not taken for its successor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
};

AcceptorOptions AcceptorOptionsOf(const DaemonConfig& config);

class Acceptor {
 public:
  // Takes ownership of the descriptor it is given.
  using Handover = std::function<void(int fd)>;

  // Binds at once; a socket file left behind by a dead daemon is replaced, one that answers is an
  // error. A warning (no group of that name) goes to `*warning`.
  static Result<std::unique_ptr<Acceptor>> Listen(const AcceptorOptions& options, Handover handover,
                                                  std::string* warning);
  // `rest` is called on the acceptor's thread when there is no connection and there was none for so long;
  // again where it answers false. Before Start.
  static constexpr int kRestAfterMs = 3000;
  void OnQuiet(std::function<bool()> rest, int after_ms = kRestAfterMs);
  // Begins to accept; connections made since Listen have been waiting.
  void Start();
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
