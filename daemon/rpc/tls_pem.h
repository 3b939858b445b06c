// PEM files that determine identities: read, bounded and checked completely before anything is served
// with them. Used for the port of [tls] and for web.yml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/openssl_ptr.h"
#include "base/status.h"

namespace profd {

struct TlsPaths {
  std::string certificate;
  std::string key;
  std::string client_ca;

  bool operator==(const TlsPaths&) const = default;
};

// What problems call the files. Without a name for it, the authorities' file is left alone.
struct TlsFileNames {
  std::string_view certificate = "tls.certificate";
  std::string_view key = "tls.key";
  std::string_view client_ca = "tls.client_ca";
};

// Contents that fit together.
struct TlsMaterial {
  std::string certificate_pem;
  std::string key_pem;
  std::string ca_pem;
  int64_t expires_s = 0;  // the node's certificate, seconds since the epoch

  bool operator==(const TlsMaterial&) const = default;
};

// A regular file of at most 1 MiB at an absolute path that belongs to root or the daemon's user and
// that no other user can write; nor read, where it is `secret`.
Result<std::string> ReadTrustedFile(const std::string& path, bool secret);

// All certificates of a PEM text; null when one of them is broken, or there are more than 256.
ossl::ChainPtr ParseCertificates(std::string_view pem);

// Every problem is one element of `*problems` and names key, file and what to do. An expired
// certificate is none: clients refuse it, and the unix socket must not go down with it.
TlsMaterial LoadTlsFiles(const TlsPaths& paths, std::vector<std::string>* problems,
                         const TlsFileNames& names = {});

// Changes whenever one of the files may have: inodes, sizes, modes and times.
std::string TlsFilesStamp(const TlsPaths& paths);

}  // namespace profd
