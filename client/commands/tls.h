// `profctl tls init`: certificates to try mutual TLS with. Needs no daemon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

struct TlsInitOptions {
  std::string directory;
  std::string hosts;
  std::optional<std::string> users;
  std::optional<std::string> admin;
  std::optional<std::string> viewer;
  std::optional<std::string> days;
  bool force = false;
};

int RunTlsInit(const Io& io, const TlsInitOptions& options, bool json);

}  // namespace profd::client
