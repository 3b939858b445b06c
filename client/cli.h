// The command line: parses it, builds the context, runs one command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/api.h"
#include "client/context.h"
#include "client/endpoint.h"

namespace profd::client {

// What main() takes from the process; tests bring their own.
struct Environment {
  using ApiFactory = std::function<std::unique_ptr<ProfdApi>(Endpoint endpoint,
                                                             std::optional<int64_t> timeout_ms)>;
  Io& io;
  const Clock& clock;
  ApiFactory make_api;
  // $PROFD_SOCKET and $PATH; empty = unset.
  std::string default_socket;
  std::string search_path;
  // $PROFD_ADDRESS, $PROFD_TLS_DIR and $HOME; empty = unset.
  std::string default_address = {};
  std::string default_tls_dir = {};
  std::string home = {};
  // $PROFILING_OPTIONS and $ASCEND_WORK_PATH; empty = unset. Where the process runs; empty = unknown.
  std::string profiling_options = {};
  std::string ascend_work_path = {};
  std::string working_directory = {};
  // Any variable; empty = unset. Null: none is set.
  std::function<std::string(const char* name)> variable = nullptr;
  // Whether the files of TLS are usable, asked before many nodes are; and what is wrong on the way to a
  // daemon that could not be reached. Null: not looked at.
  std::function<Status(const TlsFiles&)> check_tls = nullptr;
  std::function<std::string(const Endpoint&)> diagnose = nullptr;
};

// `arguments` without the program's name. Returns the exit code (docs/profctl.md).
int RunProfctl(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace profd::client
