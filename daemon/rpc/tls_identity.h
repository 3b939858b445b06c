// From a client's certificate to a Peer: role by OU, local user by CN. What is in a certificate was
// signed by an authority the operator named, but is still a stranger's text: bounded and cleaned.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "daemon/rpc/roles.h"
#include "daemon/session/peer.h"

namespace profd {

struct CertificateFacts {
  std::string common_name;
  v1::Role role = v1::ROLE_VIEWER;
  std::string subject;  // "CN=alice,OU=profd-user", printable, for logs and messages
};

// The first certificate of `pem`. PermissionDenied where it names no role, several, or no usable
// common name (one, 1..64 printable characters without '='); Unauthenticated where it is no
// certificate.
Result<CertificateFacts> ReadCertificate(std::string_view pem);

struct LocalUser {
  uint32_t uid = UINT32_MAX;
  uint32_t gid = UINT32_MAX;
  std::vector<uint32_t> groups;
};
using LocalUsers = std::map<std::string, LocalUser, std::less<>>;

// tls.users: ["alice=1000", "ci=profd-ci"]. Names are looked up now; every problem is one element
// of
// `*problems`. uid 0 is refused: administrators come by role.
LocalUsers ResolveLocalUsers(const std::vector<std::string>& entries,
                             std::vector<std::string>* problems);

// Checks certificates against the authorities as they are now, also for connections that were made
// under earlier ones. Immutable: a change makes another. Thread-safe.
class TlsAuthorities {
 public:
  // `ca_pem` has been checked by LoadTlsFiles.
  static Result<std::shared_ptr<const TlsAuthorities>> Make(std::string_view ca_pem);
  ~TlsAuthorities();

  // `leaf` and `chain` (may be empty) as PEM.
  Result<Peer> Identify(std::string_view leaf, std::string_view chain,
                        const LocalUsers& users) const;

 private:
  struct Impl;
  explicit TlsAuthorities(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace profd
