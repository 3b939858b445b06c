// A user's certificate, key and authorities: read and judged before anything is sent with them,
// since what a handshake reports about them afterwards does not help.
#pragma once

#include <string>
#include <string_view>

#include "base/openssl_ptr.h"
#include "base/status.h"
#include "client/endpoint.h"

namespace profd::client {

struct ClientTls {
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
};

// Unauthenticated with a text that names file, problem and what to do.
Result<ClientTls> LoadClientTls(const TlsFiles& files);

// The first certificate of a PEM text; null if there is none.
ossl::X509Ptr FirstCertificate(std::string_view pem);
// "2026-03-01 12:00 UTC"
std::string TimeText(const ASN1_TIME* time);

}  // namespace profd::client
