// ProfdApi over gRPC on the daemon's unix socket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/api.h"

namespace profd::client {

// `timeout_ms` replaces our own patience: for the whole of a plain call, for the silence between
// two messages of a stream. Connects on the first call, so that a process may fork before.
std::unique_ptr<ProfdApi> MakeGrpcApi(std::string socket, std::optional<int64_t> timeout_ms);

}  // namespace profd::client
