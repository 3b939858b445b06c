// Who is calling: on the unix socket as the kernel reports it (SO_PEERCRED, SO_PEERGROUPS), over TLS as
// the client's certificate and the node's own table of users say.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace profd {

struct Peer {
  pid_t pid = 0;  // 0 over TLS: there is no process of this node
  uint32_t uid = UINT32_MAX;
  uint32_t gid = UINT32_MAX;
  std::vector<uint32_t> groups = {};  // supplementary
  bool admin = false;            // root, in the administrators' group, or by certificate
  // Sees everything, starts, ends and takes away nothing; has no uid. Never together with `admin`.
  bool viewer = false;
  bool remote = false;           // connected over TLS
  // The user of archive.user: may take what waits for the database, and nothing else. Never together with `admin`.
  bool archiver = false;
  std::string certificate = {};  // its subject, cleaned; empty on the unix socket

  // The daemon itself.
  static Peer Daemon() { return {.pid = ::getpid(), .uid = ::geteuid(), .gid = ::getegid(), .admin = true}; }
  bool InGroup(uint32_t group) const {
    return gid == group || std::ranges::find(groups, group) != groups.end();
  }
  // May see and end what belongs to `owner`.
  bool Owns(uint32_t owner) const { return admin || (!viewer && uid == owner); }
  // May see it.
  bool Sees(uint32_t owner) const { return viewer || Owns(owner); }
};

}  // namespace profd
