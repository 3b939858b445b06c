// A small certificate authority for trying TLS and for small clusters: EC P-256, SHA-256,
// everything signed at once, nothing kept but the files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/openssl_ptr.h"
#include "base/status.h"

namespace profd::client {

// Both PEM.
struct IssuedPair {
  std::string certificate;
  std::string key;
};

class TlsAuthority {
 public:
  // Certificates are valid from a few minutes ago (clocks differ) for `days`.
  static Result<TlsAuthority> Make(int days);

  const std::string& certificate_pem() const { return pair_.certificate; }
  const std::string& key_pem() const { return pair_.key; }
  // "2026-03-01 12:00 UTC"
  const std::string& valid_until() const { return valid_until_; }

  // For a node, under all the names and addresses it is reached by (checked by IsHostName).
  Result<IssuedPair> IssueNode(const std::vector<std::string>& hosts) const;
  // For a person or program; `role` is "profd-viewer", "profd-user" or "profd-admin".
  Result<IssuedPair> IssueClient(const std::string& name, const std::string& role) const;

 private:
  TlsAuthority() = default;
  struct Order;
  Result<IssuedPair> Issue(const Order& order) const;

  int days_ = 0;
  ossl::X509Ptr certificate_;
  ossl::KeyPtr key_;
  IssuedPair pair_;
  std::string valid_until_;
};

// A DNS name (also "*.cluster") or an IP address.
bool IsHostName(const std::string& text);
// [A-Za-z0-9._@-]{1,64}, not "." or "..": a common name and a folder's name.
bool IsClientName(const std::string& text);

}  // namespace profd::client
