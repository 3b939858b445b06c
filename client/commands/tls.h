// `profctl tls init`: certificates to try mutual TLS with. Needs no daemon.
#pragma once

#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// Becomes the program profctl-tls-init beside this one; returns only when there is none.
int RunTlsInit(const Io& io, std::vector<std::string> arguments, bool json);

}  // namespace profd::client
