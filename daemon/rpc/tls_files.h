// The node's certificate, its key and the authorities of its clients: read, bounded and checked as
// a whole before anything is served with them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/openssl_ptr.h"
#include "base/status.h"
#include "daemon/config/daemon_config.h"

namespace profd {

struct TlsPaths {
  std::string certificate;
  std::string key;
  std::string client_ca;
};
TlsPaths TlsPathsOf(const DaemonConfig& config);

// Contents that fit together.
struct TlsMaterial {
  std::string certificate_pem;
  std::string key_pem;
  std::string ca_pem;
  int64_t expires_s = 0;  // the node's certificate, seconds since the epoch

  bool operator==(const TlsMaterial&) const = default;
};

// All certificates of a PEM text; null when one of them is broken, or there are more than 256.
ossl::ChainPtr ParseCertificates(std::string_view pem);

// Every problem is one element of `*problems` and names key, file and what to do. An expired
// certificate is none: clients refuse it, and the unix socket must not go down with it.
TlsMaterial LoadTlsFiles(const TlsPaths& paths, std::vector<std::string>* problems);

// Changes whenever one of the files may have: inodes, sizes, modes and times.
std::string TlsFilesStamp(const TlsPaths& paths);

// The whole [tls] section, files and users included; nothing when tls.listen is empty.
void CheckTls(const DaemonConfig& config, std::vector<std::string>* problems);

// tls.listen.
struct TlsListen {
  std::string host;  // without brackets
  uint16_t port = 0;
};
Result<TlsListen> ParseTlsListen(const std::string& text);

}  // namespace profd
