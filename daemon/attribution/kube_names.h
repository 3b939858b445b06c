// The names that belong to container ids, from the container runtime (CRI v1). Blocks for up to 4 s.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>

#include "base/status.h"

namespace profd {

// Strings as labels take them.
struct ContainerNames {
  std::string name_space;
  std::string pod;
  std::string container;
};

// Those of `ids` that run here. kNotFound: there is no such socket.
Result<std::map<std::string, ContainerNames>> AskRuntime(const std::string& socket, uid_t own_uid,
                                                         const std::set<std::string>& ids);

}  // namespace profd
