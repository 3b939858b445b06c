#include "client/tls_diagnosis.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "client/tls_files.h"

namespace profd::client {
namespace {

constexpr int kConnectMs = 3000;
constexpr int kHandshakeS = 5;

using SslContextPtr = std::unique_ptr<SSL_CTX, ossl::Deleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, ossl::Deleter<SSL_free>>;

// 0, or the errno of the last address tried.
int ConnectTo(const addrinfo* addresses, UniqueFd* out) {
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) continue;
    if (::connect(fd.get(), one->ai_addr, one->ai_addrlen) != 0) {
      error = errno;
      if (error != EINPROGRESS) continue;
      pollfd waiting{fd.get(), POLLOUT, 0};
      if (::poll(&waiting, 1, kConnectMs) <= 0) {
        error = ETIMEDOUT;
        continue;
      }
      socklen_t size = sizeof error;
      if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
      if (error != 0) continue;
    }
    *out = std::move(fd);
    return 0;
  }
  return error;
}

std::string NotConnected(const Endpoint& endpoint, int error) {
  std::string where = endpoint.address;
  switch (error) {
    case ECONNREFUSED:
      return fmt::format(
          "No process listens on {}: profd does not run there, or its [tls] listen is empty or another "
          "port.",
          where);
    case ETIMEDOUT:
      return fmt::format("{} does not answer: the machine is down, or a firewall drops port {}.",
                         where, PortOf(where));
    default:
      return fmt::format("Connecting to {}: {}", where, std::generic_category().message(error));
  }
}

// What the node's certificate is wrong in, by our check of it.
std::string BadServer(const Endpoint& endpoint, long error, X509* certificate) {
  std::string name =
      endpoint.tls.server_name.empty() ? HostOf(endpoint.address) : endpoint.tls.server_name;
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("The certificate of {} expired on {}: the node needs a new one.",
                         endpoint.address,
                         certificate == nullptr ? "?" : TimeText(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("The certificate of {} is not valid yet: is the clock right?",
                         endpoint.address);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "The certificate of {} is not for the name {}.\nUse a name it has, or --tls-server-name "
          "NAME if you know that this is the right node.",
          endpoint.address, name);
    default:
      return fmt::format(
          "The certificate of {} is not signed by an authority in {} ({}).\nIs that the right "
          "cluster's ca.crt?",
          endpoint.address, endpoint.tls.ca, X509_verify_cert_error_string(error));
  }
}

// The node's opinion of ours: the alert it sent.
std::string BadClient(const Endpoint& endpoint, unsigned long error) {
  switch (ERR_GET_REASON(error)) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return fmt::format(
          "{} does not accept your certificate {}: signed by none of its authorities.",
          endpoint.address, endpoint.tls.certificate);
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return fmt::format("{} does not accept your certificate {}: it has expired.",
                         endpoint.address, endpoint.tls.certificate);
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return fmt::format("{} wants a certificate and did not accept {}.", endpoint.address,
                         endpoint.tls.certificate);
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return fmt::format("{} does not speak TLS: that is another service's port.",
                         endpoint.address);
    case 0:
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      // gRPC hangs up without an alert.
      return fmt::format(
          "{} hung up during the TLS handshake: most likely it does not accept your certificate {} "
          "(not signed by one of its authorities, or expired by its clock).",
          endpoint.address, endpoint.tls.certificate);
    default: {
      const char* reason = ERR_reason_error_string(error);
      return fmt::format("The TLS handshake with {} failed: {}", endpoint.address,
                         reason == nullptr ? "unknown reason" : reason);
    }
  }
}

bool SetUp(SSL_CTX* context, const Endpoint& endpoint) {
  const TlsFiles& files = endpoint.tls;
  return SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) == 1 &&
         SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) == 1 &&
         SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
         SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

bool SetName(SSL* ssl, const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> ip{};
  if (::inet_pton(AF_INET, name.c_str(), ip.data()) == 1 ||
      ::inet_pton(AF_INET6, name.c_str(), ip.data()) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  }
  return SSL_set1_host(ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
}

std::string Handshake(const Endpoint& endpoint, int fd) {
  SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr || !SetUp(context.get(), endpoint)) return "";
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SslPtr ssl(SSL_new(context.get()));
  constexpr std::array<unsigned char, 3> kH2 = {2, 'h', '2'};
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1 ||
      SSL_set_alpn_protos(ssl.get(), kH2.data(), kH2.size()) != 0 ||
      !SetName(ssl.get(), endpoint.tls.server_name.empty() ? HostOf(endpoint.address)
                                                           : endpoint.tls.server_name)) {
    return "";
  }
  ERR_clear_error();
  if (const int connected = SSL_connect(ssl.get()); connected != 1) {
    long verified = SSL_get_verify_result(ssl.get());
    unsigned long error = ERR_peek_error();
    // The time is over; where it hung up, it is an error of the connection.
    if (SSL_get_error(ssl.get(), connected) == SSL_ERROR_WANT_READ) {
      return fmt::format("{} takes the connection and does not answer: profd is overloaded or stuck, or it is another service's port.",
                         endpoint.address);
    }
    if (verified != X509_V_OK && ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      return BadServer(endpoint, verified, SSL_get0_peer_certificate(ssl.get()));
    }
    return BadClient(endpoint, error);
  }
  // With TLS 1.3 the node judges our certificate after this: its first byte is SETTINGS or an
  // alert.
  char first = 0;
  if (SSL_read(ssl.get(), &first, 1) <= 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return fmt::format("{} does not answer after the handshake: profd is overloaded or stuck.",
                         endpoint.address);
    }
    return BadClient(endpoint, ERR_peek_error());
  }
  return "";
}

}  // namespace

std::string DiagnoseTls(const Endpoint& endpoint) {
  if (Result<ClientTls> own = LoadClientTls(endpoint.tls); !own.ok()) return own.status().message();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(HostOf(endpoint.address).c_str(), PortOf(endpoint.address).c_str(),
                            &hints, &found);
  if (error != 0) {
    return fmt::format("The name {} cannot be resolved: {}", HostOf(endpoint.address),
                       ::gai_strerror(error));
  }
  std::unique_ptr<addrinfo, ossl::Deleter<::freeaddrinfo>> owner(found);
  UniqueFd fd;
  if (int failed = ConnectTo(found, &fd); failed != 0) return NotConnected(endpoint, failed);
  // Blocking from here on, with a limit.
  int flags = ::fcntl(fd.get(), F_GETFL);
  timeval limit{kHandshakeS, 0};
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    return "";
  }
  std::string text = Handshake(endpoint, fd.get());
  ERR_clear_error();
  return text;
}

}  // namespace profd::client
