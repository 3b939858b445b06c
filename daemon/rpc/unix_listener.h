// A unix socket of the daemon and the kernel's word on who is at its other end. Shared by the gRPC
// socket and the one training processes attach to.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd {

struct UnixListenerOptions {
  std::string path;
  std::string group;       // may connect; empty = root's group only
  int type = SOCK_STREAM;  // or SOCK_SEQPACKET
};

// Binds and listens, non-blocking. A socket file left behind by a dead daemon is replaced, one that
// answers is an error. A warning (no group of that name) goes to `*warning`.
Result<UniqueFd> ListenUnix(const UnixListenerOptions& options, std::string* warning);

// Nothing for an empty or unknown name.
std::optional<gid_t> GroupId(const std::string& name);

// A name or a number; nothing for an empty or unknown name.
std::optional<uid_t> UserId(const std::string& name);

// SO_PEERCRED and SO_PEERGROUPS. Administrators: root, the daemon's own user, `admin_group`.
Result<Peer> PeerOfSocket(int fd, std::optional<gid_t> admin_group);

}  // namespace profd
