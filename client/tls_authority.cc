#include "client/tls_authority.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "client/tls_files.h"

namespace profd::client {
namespace {

constexpr long kBackdateS = 300;
constexpr size_t kMaxHost = 253;
constexpr size_t kMaxName = 64;

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsIp(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> out{};
  return ::inet_pton(AF_INET, text.c_str(), out.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), out.data()) == 1;
}

Status Failed(std::string_view what) {
  unsigned long error = ERR_get_error();
  ERR_clear_error();
  return Internal(
      fmt::format("OpenSSL: {}: {}", what, error == 0 ? "failed" : ERR_reason_error_string(error)));
}

Result<std::string> TextOf(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  if (size <= 0 || data == nullptr) return Failed("PEM");
  return std::string(data, static_cast<size_t>(size));
}

Result<IssuedPair> ToPem(X509* certificate, EVP_PKEY* key) {
  ossl::BioPtr out(BIO_new(BIO_s_mem()));
  ossl::BioPtr secret(BIO_new(BIO_s_mem()));
  if (out == nullptr || secret == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(secret.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("PEM");
  }
  Result<std::string> first = TextOf(out.get());
  if (!first.ok()) return first.status();
  Result<std::string> second = TextOf(secret.get());
  if (!second.ok()) return second.status();
  return IssuedPair{std::move(first).value(), std::move(second).value()};
}

bool AddEntry(X509_NAME* name, const char* field, const std::string& value) {
  return value.empty() ||
         X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool SetSerial(X509* certificate) {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return false;
  random[0] = static_cast<unsigned char>((random[0] & 0x7F) | 0x40);  // positive, of full length
  ossl::BignumPtr number(BN_bin2bn(random.data(), static_cast<int>(random.size()), nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  if (value.empty()) return true;
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  ossl::ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

}  // namespace

struct TlsAuthority::Order {
  std::string common_name;
  std::string unit;
  std::string basic = "critical,CA:FALSE";
  std::string usage = "critical,digitalSignature";
  std::string purpose;
  std::string names;
};

bool IsHostName(const std::string& text) {
  if (IsIp(text)) return true;
  std::string_view name = text;
  if (name.starts_with("*.")) name.remove_prefix(2);
  return !name.empty() && name.size() <= kMaxHost && !name.starts_with('.') &&
         !name.starts_with('-') && std::all_of(name.begin(), name.end(), [](char c) {
           return IsAlnum(c) || c == '.' || c == '-' || c == '_';
         });
}

bool IsClientName(const std::string& text) {
  return !text.empty() && text.size() <= kMaxName && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlnum(c) || c == '.' || c == '-' || c == '_' || c == '@';
         });
}

// Without a key of its own yet (`certificate_` is null) it signs itself.
Result<IssuedPair> TlsAuthority::Issue(const Order& order) const {
  ossl::KeyPtr fresh;
  bool self = certificate_ == nullptr;
  if (!self) {
    fresh.reset(EVP_EC_gen("P-256"));
    if (fresh == nullptr) return Failed("making a key");
  }
  EVP_PKEY* key = self ? key_.get() : fresh.get();
  ossl::X509Ptr certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), 2) != 1 ||
      !SetSerial(certificate.get()) || X509_set_pubkey(certificate.get(), key) != 1 ||
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kBackdateS) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(certificate.get()), days_, 0, nullptr) == nullptr) {
    return Failed("making a certificate");
  }
  X509* issuer = self ? certificate.get() : certificate_.get();
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  bool good =
      AddEntry(subject, "OU", order.unit) && AddEntry(subject, "CN", order.common_name) &&
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) == 1 &&
      AddExtension(certificate.get(), issuer, NID_basic_constraints, order.basic) &&
      AddExtension(certificate.get(), issuer, NID_key_usage, order.usage) &&
      AddExtension(certificate.get(), issuer, NID_ext_key_usage, order.purpose) &&
      AddExtension(certificate.get(), issuer, NID_subject_alt_name, order.names) &&
      AddExtension(certificate.get(), issuer, NID_subject_key_identifier, "hash") &&
      AddExtension(certificate.get(), issuer, NID_authority_key_identifier, "keyid:always") &&
      X509_sign(certificate.get(), key_.get(), EVP_sha256()) > 0;
  if (!good) return Failed("signing a certificate");
  return ToPem(certificate.get(), key);
}

Result<TlsAuthority> TlsAuthority::Make(int days) {
  TlsAuthority authority;
  authority.days_ = days;
  authority.key_.reset(EVP_EC_gen("P-256"));
  if (authority.key_ == nullptr) return Failed("making a key");
  Order order;
  order.common_name = "profd test authority";
  order.basic = "critical,CA:TRUE,pathlen:0";
  order.usage = "critical,keyCertSign,cRLSign";
  Result<IssuedPair> pair = authority.Issue(order);
  if (!pair.ok()) return pair.status();
  authority.pair_ = std::move(pair).value();
  authority.certificate_ = FirstCertificate(authority.pair_.certificate);
  if (authority.certificate_ == nullptr) return Failed("reading the certificate back");
  authority.valid_until_ = TimeText(X509_get0_notAfter(authority.certificate_.get()));
  return authority;
}

Result<IssuedPair> TlsAuthority::IssueNode(const std::vector<std::string>& hosts) const {
  Order order;
  order.common_name = hosts.front().substr(0, kMaxName);
  order.purpose = "serverAuth";
  for (const std::string& host : hosts) {
    order.names +=
        fmt::format("{}{}:{}", order.names.empty() ? "" : ",", IsIp(host) ? "IP" : "DNS", host);
  }
  return Issue(order);
}

Result<IssuedPair> TlsAuthority::IssueClient(const std::string& name,
                                             const std::string& role) const {
  Order order;
  order.common_name = name;
  order.unit = role;
  order.purpose = "clientAuth";
  return Issue(order);
}

}  // namespace profd::client
