// [push] of the configuration as receivers to push to.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/daemon_config.h"
#include "daemon/push/push_sink.h"

namespace profd {

struct PushConfig {
  std::vector<PushSinkOptions> sinks;  // none: nothing is pushed
  PushLabels labels;                   // push.labels
};

// Every problem is one element of `*problems`: addresses, labels, files of TLS and headers.
PushConfig MakePushConfig(const DaemonConfig& config, std::vector<std::string>* problems);

}  // namespace profd
