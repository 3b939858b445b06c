// The port for other machines: mutual TLS 1.2 or later, never plain text. Accepts connections
// itself, so that they are counted and limited before gRPC sees them, and hands each to a gRPC
// server of its own (apart from the unix socket's, with its own memory quota) that was made with
// the certificates of that moment. When the files change, a new such server takes the new
// connections; the earlier one continues until its connections have ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/rpc/tls_files.h"

namespace grpc {
class AuthContext;
}

namespace profd {

struct Peer;

namespace rpc {
struct Context;
}

struct TlsOptions {
  std::string listen;
  TlsPaths paths;
  std::vector<std::string> users;
  int max_connections = 256;
};
TlsOptions TlsOptionsOf(const DaemonConfig& config);

struct TlsStats {
  std::string address = {};  // with the real port
  size_t connections = 0;
  uint64_t rejected = 0;
  uint64_t reloads = 0;
  uint64_t failed_reloads = 0;
  // The certificate in use, seconds since the epoch.
  int64_t expires_s = 0;
};

class TlsServer {
 public:
  // Binds and checks the files; every problem is a line of the error. `context` outlives it.
  static Result<std::unique_ptr<TlsServer>> Listen(rpc::Context& context,
                                                   const TlsOptions& options);
  // Begins to accept, and to look at the files every two seconds.
  void Start();
  // Stops accepting; calls go on. Idempotent.
  void Stop();
  // Ends what is left by the deadline.
  void Shutdown(int64_t patience_ns);
  ~TlsServer();

  // Thread-safe, all of them.
  //
  // The identity in a call's certificate, by the authorities and users as they are now.
  Result<Peer> Identify(const grpc::AuthContext& auth) const;
  // Other limits and users (the paths stay); the files are looked at again soon. Problems of the
  // users leave the earlier ones in force.
  Status Configure(const TlsOptions& options);
  TlsStats stats() const;

 private:
  struct Impl;
  explicit TlsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
