#include "daemon/rpc/tls_files.h"

#include "daemon/rpc/tcp_listener.h"
#include "daemon/rpc/tls_identity.h"

namespace profd {

TlsPaths TlsPathsOf(const DaemonConfig& config) {
  return {config.tls_certificate, config.tls_key, config.tls_client_ca};
}

void CheckTls(const DaemonConfig& config, std::vector<std::string>* problems) {
  if (config.tls_listen.empty()) return;
  if (Result<TcpAddress> listen = ParseTcpAddress(config.tls_listen, "tls.listen"); !listen.ok()) {
    problems->push_back(listen.status().message());
  }
  (void)LoadTlsFiles(TlsPathsOf(config), problems);
  (void)ResolveLocalUsers(config.tls_users, problems);
}

}  // namespace profd
