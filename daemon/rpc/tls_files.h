// The [tls] section: its files (tls_pem.h), address and users.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/daemon_config.h"
#include "daemon/rpc/tls_pem.h"

namespace profd {

TlsPaths TlsPathsOf(const DaemonConfig& config);

// The complete [tls] section, files and users included; nothing when tls.listen is empty.
void CheckTls(const DaemonConfig& config, std::vector<std::string>* problems);

}  // namespace profd
