// Why a call to another machine did not get through: gRPC reports "failed to connect", so the same
// connection is tried once more, step by step.
#pragma once

#include <string>

#include "client/endpoint.h"

namespace profd::client {

// What is wrong and what to do, several lines; empty when a handshake succeeds now. Takes a few
// seconds at most.
std::string DiagnoseTls(const Endpoint& endpoint);

}  // namespace profd::client
