// web.yml, in the format of Prometheus's exporter-toolkit: TLS, who may read, extra headers. What that
// format has and profd does not is refused by name, so that no setting is silently without effect.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/rpc/tls_pem.h"

namespace profd {

// client_auth_type. "Any": a certificate is required, of any issuer.
enum class ClientAuth : uint8_t { kNone, kRequest, kRequireAny, kVerifyIfGiven, kRequireAndVerify };

enum class TlsVersion : uint8_t { k12, k13 };

// User names and bcrypt hashes.
using WebUsers = std::map<std::string, std::string, std::less<>>;

struct WebConfig {
  bool tls = false;
  TlsPaths files;  // absolute; client_ca may be empty
  ClientAuth client_auth = ClientAuth::kNone;
  TlsVersion min_version = TlsVersion::k12;
  TlsVersion max_version = TlsVersion::k13;
  WebUsers users;
  // As sent; an empty value takes away the header that profd would send.
  std::vector<std::pair<std::string, std::string>> headers;
};

// `path` is the file's, which its own relative paths start from. Every problem is one element of
// `*problems`, with file and line; the result is meaningful only if there is none.
WebConfig ParseWebConfig(std::string_view text, const std::string& path,
                         std::vector<std::string>* problems);

// The file and what it names, read and parsed; an empty path is plain HTTP without login.
WebConfig ReadWebConfig(const std::string& path, TlsMaterial* material,
                        std::vector<std::string>* problems);

}  // namespace profd
