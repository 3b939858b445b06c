#include "daemon/web/web_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace profd {
namespace {

namespace asio = boost::asio;
using SslContext = asio::ssl::context;

constexpr int64_t kLookNs = kNsPerSecond;

int VersionNumber(TlsVersion version) {
  return version == TlsVersion::k13 ? TLS1_3_VERSION : TLS1_2_VERSION;
}

int TakeAnyCertificate(int, X509_STORE_CTX*) { return 1; }

void SetClientAuth(SSL_CTX* raw, ClientAuth auth) {
  switch (auth) {
    case ClientAuth::kNone:
      return;
    case ClientAuth::kRequest:
      ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, TakeAnyCertificate);
      return;
    case ClientAuth::kRequireAny:
      ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           TakeAnyCertificate);
      return;
    case ClientAuth::kVerifyIfGiven:
      ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
      return;
    case ClientAuth::kRequireAndVerify:
      ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      return;
  }
}

bool AddAuthorities(SSL_CTX* raw, const std::string& pem) {
  if (pem.empty()) return true;
  ossl::ChainPtr authorities = ParseCertificates(pem);
  if (authorities == nullptr) return false;
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i) {
    X509* one = sk_X509_value(authorities.get(), i);
    if (X509_STORE_add_cert(::SSL_CTX_get_cert_store(raw), one) != 1) return false;
    if (::SSL_CTX_add_client_CA(raw, one) != 1) return false;
  }
  return true;
}

// The files have been checked to belong together; what OpenSSL still refuses (a key that is too short
// for its security level) it reports itself.
Status Fill(SslContext* context, const WebConfig& config, const TlsMaterial& material) {
  SSL_CTX* raw = context->native_handle();
  ::SSL_CTX_set_min_proto_version(raw, VersionNumber(config.min_version));
  ::SSL_CTX_set_max_proto_version(raw, VersionNumber(config.max_version));
  // No resumption: a changed file applies to every next connection.
  ::SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  boost::system::error_code error;
  context->use_certificate_chain(asio::buffer(material.certificate_pem), error);
  if (!error) context->use_private_key(asio::buffer(material.key_pem), SslContext::pem, error);
  if (error) {
    return FailedPrecondition("OpenSSL does not take cert_file and key_file: " + error.message());
  }
  SetClientAuth(raw, config.client_auth);
  if (!AddAuthorities(raw, material.ca_pem)) {
    return FailedPrecondition("OpenSSL does not take client_ca_file");
  }
  ::ERR_clear_error();
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<WebStateKeeper>> WebStateKeeper::Open(const std::string& path) {
  std::unique_ptr<WebStateKeeper> retention(new WebStateKeeper(path));
  std::vector<std::string> problems;
  WebStatePtr state = retention->Load(&retention->timestamp_, &problems);
  if (state == nullptr) return InvalidArgument(fmt::format("{}", fmt::join(problems, "\n")));
  retention->Adopt(std::move(state));
  return retention;
}

WebStatePtr WebStateKeeper::Load(std::string* timestamp, std::vector<std::string>* problems) {
  auto state = std::make_shared<WebState>();
  TlsMaterial material;
  // Once more when it names other files than before, whose timestamp must be older than what is read.
  for (int round = 0; round < 2; ++round) {
    *timestamp = path_.empty() ? "" : TlsFilesStamp({path_, "", ""}) + TlsFilesStamp(named_);
    problems->clear();
    state->config = ReadWebConfig(path_, &material, problems);
    if (state->config.files == named_) break;
    named_ = state->config.files;
  }
  if (!problems->empty()) return nullptr;
  if (!state->config.tls) return state;
  state->tls = std::make_unique<SslContext>(SslContext::tls_server);
  if (Status filled = Fill(state->tls.get(), state->config, material); !filled.ok()) {
    problems->push_back(fmt::format("{}: {}", path_, filled.message()));
    return nullptr;
  }
  state->expires_s = material.expires_s;
  return state;
}

void WebStateKeeper::Adopt(WebStatePtr state) {
  state_ = std::move(state);
  expires_s = state_->expires_s;
  tls = state_->tls != nullptr;
  authenticates = !state_->config.users.empty() ||
                  state_->config.client_auth == ClientAuth::kRequireAndVerify;
}

void WebStateKeeper::Look(int64_t now_ns) {
  if (path_.empty() || now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookNs;
  if (TlsFilesStamp({path_, "", ""}) + TlsFilesStamp(named_) == timestamp_) return;
  std::string now;
  std::vector<std::string> problems;
  if (WebStatePtr fresh = Load(&now, &problems); fresh != nullptr) {
    timestamp_ = now;
    doubted_.clear();
    Adopt(std::move(fresh));
    reloads.fetch_add(1, std::memory_order_relaxed);
    log::Info("web.yml reloaded", {{"file", path_},
                                   {"tls", tls.load()},
                                   {"users", state_->config.users.size()},
                                   {"expires", expires_s.load()}});
    return;
  }
  if (std::exchange(doubted_, now) != now) return;
  timestamp_ = now;
  errors.fetch_add(1, std::memory_order_relaxed);
  log::Error("web.yml or its certificates changed but are not usable; the earlier ones stay in use",
             {{"problems", fmt::format("{}", fmt::join(problems, "; "))}});
}

}  // namespace profd
