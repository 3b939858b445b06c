// What a session's options mean for the vendor's aclprof inside its processes. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proto/attach/attach_protocol.h"

namespace profd {

// Whether this option with this value can be served by aclprof only: the session then uses it for all of its options,
// since a process runs one of the vendor's profilers at a time.
bool NeedsAclprof(std::string_view option, std::string_view value);

// Its part of the options of the application that are on, by name. Nothing: none of them is its.
// `storage_limit_mb` 0: none is asked for.
std::optional<attach::AclprofRequest> AclprofRequestOf(const std::map<std::string, std::string>& options,
                                                   uint64_t storage_limit_mb);
// Whether the request brings what this option is about.
bool Serves(const attach::AclprofRequest& request, std::string_view option);

}  // namespace profd
