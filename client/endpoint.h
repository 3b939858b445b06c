// Where a daemon is reached: a unix socket of this machine, or another machine's port with mutual
// TLS.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace profd::client {

// PEM files, read when the first call connects.
struct TlsFiles {
  std::string ca;           // authorities that sign nodes
  std::string certificate;  // the user's own, with what leads to the authority
  std::string key;
  // The name the node's certificate must carry; empty = the address's host.
  std::string server_name;
};

// A value: one ProfdApi is made from each (grpc_api.h).
struct Endpoint {
  // Path of the unix socket; ignored when `address` is set.
  std::string socket;
  // "node7:9465", "10.0.0.7:9465", "[fd00::7]:9465"; empty = the socket.
  std::string address;
  TlsFiles tls;

  bool remote() const { return !address.empty(); }
  // As people know it: the address, or the socket's path.
  const std::string& name() const { return remote() ? address : socket; }

  static Endpoint OnSocket(std::string path) {
    Endpoint endpoint;
    endpoint.socket = std::move(path);
    return endpoint;
  }
};

inline constexpr int kDefaultTlsPort = 9465;

// "node7", "node7:9465", "fd00::7", "[fd00::7]:9465" -> HOST:PORT, with brackets around IPv6; the
// default port is added where there is none.
Result<std::string> ParseAddress(const std::string& text);
// The host of a parsed address, without port and brackets.
std::string HostOf(const std::string& address);
std::string PortOf(const std::string& address);

// ca.crt, client.crt and client.key of `directory`.
TlsFiles TlsFilesOf(const std::string& directory);

}  // namespace profd::client
