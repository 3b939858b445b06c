// Who is calling, as the kernel says (SO_PEERCRED, SO_PEERGROUPS).
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace profd {

struct Peer {
  pid_t pid = 0;
  uint32_t uid = UINT32_MAX;
  uint32_t gid = UINT32_MAX;
  std::vector<uint32_t> groups;  // supplementary
  bool admin = false;            // root, or in the administrators' group

  bool InGroup(uint32_t group) const {
    return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
  }
  // May see and end what belongs to `owner`.
  bool Owns(uint32_t owner) const { return admin || uid == owner; }
};

}  // namespace profd
