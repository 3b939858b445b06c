// ProfdApi over gRPC: on the unix socket, or to another machine with mutual TLS.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "client/api.h"
#include "client/endpoint.h"

namespace profd::client {

// `timeout_ms` replaces our own patience: for a complete plain call, for the silence between
// two messages of a stream. Connects on the first call, so that a process may fork before;
// what is wrong with the TLS files is that call's error.
std::unique_ptr<ProfdApi> MakeGrpcApi(Endpoint endpoint, std::optional<int64_t> timeout_ms);

}  // namespace profd::client
