// The composition root: the only place where the daemon's objects meet.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "daemon/config/daemon_config.h"

namespace profd {

struct AppOptions {
  DaemonConfig config;
  // Reads the configuration again for SIGHUP: file, then flags. The error lists every problem.
  std::function<Result<DaemonConfig>()> reload;
  bool simulated = false;
  // Both libraries are the simulator's: a node without devices then means a scenario it refused.
  bool simulator_only = false;
};

class App {
 public:
  explicit App(AppOptions options);
  ~App();

  // Serves until SIGTERM or SIGINT; these and SIGHUP must be blocked in all threads before the call.
  // The error says what kept it from serving.
  Status Run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
