#include "daemon/rpc/tls_identity.h"

#include <fmt/format.h>
#include <grp.h>
#include <openssl/err.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/openssl_ptr.h"
#include "base/text.h"
#include "base/utf8.h"
#include "daemon/rpc/tls_pem.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// X.520's upper bound of a common name; OpenSSL reads longer ones.
constexpr size_t kMaxCommonName = 64;
constexpr size_t kMaxSubject = 256;
constexpr int kMaxNameEntries = 32;
constexpr int kMaxGroups = 1024;
constexpr size_t kMaxPem = 256 * 1024;
constexpr int kMaxChain = 10;
constexpr std::string_view kRoleHelp =
    "it takes exactly one of OU=profd-viewer, OU=profd-user, OU=profd-admin";

Status Unauthenticated(std::string message) {
  return {StatusCode::kUnauthenticated, std::move(message)};
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7F; }

// As UTF-8, whatever the encoding in the certificate; nothing where it has none.
std::optional<std::string> TextOf(const ASN1_STRING* value) {
  unsigned char* utf8 = nullptr;
  int length = ASN1_STRING_to_UTF8(&utf8, value);
  if (length < 0) return std::nullopt;
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<size_t>(length));
  OPENSSL_free(utf8);
  return text;
}

struct Subject {
  std::vector<std::string> common_names;
  std::vector<std::string> units;
  std::string text;
};

Result<Subject> SubjectOf(const X509* certificate) {
  const X509_NAME* name = X509_get_subject_name(certificate);
  int count = X509_NAME_entry_count(name);
  if (count > kMaxNameEntries) return PermissionDenied("the certificate's subject is too long");
  Subject subject;
  for (int i = 0; i < count; ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(name, i);
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    std::optional<std::string> text = TextOf(X509_NAME_ENTRY_get_data(entry));
    if (!text) return PermissionDenied("the certificate's subject cannot be read");
    if (nid == NID_commonName) subject.common_names.push_back(*text);
    if (nid == NID_organizationalUnitName) subject.units.push_back(*text);
    const char* shown = nid == NID_undef ? "?" : OBJ_nid2sn(nid);
    subject.text +=
        fmt::format("{}{}={}", i == 0 ? "" : ",", shown, AsciiOnly(*text, kMaxCommonName));
  }
  if (subject.text.size() > kMaxSubject) subject.text.resize(kMaxSubject);
  return subject;
}

std::optional<v1::Role> RoleOfUnit(std::string_view unit) {
  constexpr std::string_view kPrefix = "profd-";
  if (!unit.starts_with(kPrefix)) return std::nullopt;
  for (v1::Role role : {v1::ROLE_VIEWER, v1::ROLE_USER, v1::ROLE_ADMIN}) {
    if (unit.substr(kPrefix.size()) == EnumWord(role)) return role;
  }
  return std::nullopt;
}

Result<CertificateFacts> FactsOf(const X509* certificate) {
  Result<Subject> subject = SubjectOf(certificate);
  if (!subject.ok()) return subject.status();
  CertificateFacts facts;
  facts.subject = subject->text;
  std::vector<v1::Role> roles;
  for (const std::string& unit : subject->units) {
    if (std::optional<v1::Role> role = RoleOfUnit(unit)) roles.push_back(*role);
  }
  if (roles.size() != 1) {
    return PermissionDenied(fmt::format("the certificate {} names {}: {}", facts.subject,
                                        roles.empty() ? "no role" : "more than one role",
                                        kRoleHelp));
  }
  facts.role = roles.front();
  if (subject->common_names.size() != 1) {
    return PermissionDenied(
        fmt::format("the certificate {} must have exactly one common name (CN)", facts.subject));
  }
  facts.common_name = subject->common_names.front();
  if (facts.common_name.empty() || facts.common_name.size() > kMaxCommonName ||
      facts.common_name.find('=') != std::string::npos ||
      !std::ranges::all_of(facts.common_name, IsPlain)) {
    return PermissionDenied(fmt::format(
        "the certificate {}: a common name has 1 to {} printable ASCII characters and no \"=\"",
        facts.subject, kMaxCommonName));
  }
  return facts;
}

// By number, or by name where there is none.
std::optional<passwd> Account(const std::optional<uint32_t>& uid, const std::string& name, std::vector<char>* buffer) {
  buffer->resize(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  const int error = uid ? ::getpwuid_r(*uid, &entry, buffer->data(), buffer->size(), &found)
                        : ::getpwnam_r(name.c_str(), &entry, buffer->data(), buffer->size(), &found);
  return error != 0 || found == nullptr ? std::nullopt : std::optional(entry);
}

std::vector<uint32_t> GroupsOf(const passwd& account) {
  std::vector<gid_t> groups(kMaxGroups);
  int count = kMaxGroups;
  if (::getgrouplist(account.pw_name, account.pw_gid, groups.data(), &count) < 0) count = 0;
  groups.resize(static_cast<size_t>(count));
  return {groups.begin(), groups.end()};
}

Result<LocalUser> ResolveUser(const std::string& text) {
  LocalUser user;
  std::vector<char> buffer;
  std::optional<uint32_t> uid;
  if (uint32_t number = 0; ParseNumber(text, &number)) uid = number;
  if (const std::optional<passwd> account = Account(uid, text, &buffer)) {
    user = {account->pw_uid, account->pw_gid, GroupsOf(*account)};
  } else if (uid && *uid != UINT32_MAX) {
    // No account: the private group Debian would give it, and no others.
    user = {*uid, *uid, {}};
  } else {
    return NotFound(fmt::format("unknown user \"{}\"", AsciiOnly(text)));
  }
  if (user.uid == 0) {
    return InvalidArgument("root is not for tls.users; an administrator has OU=profd-admin");
  }
  return user;
}

}  // namespace

Result<CertificateFacts> ReadCertificate(std::string_view pem) {
  ossl::ChainPtr certificates = ParseCertificates(pem);
  if (certificates == nullptr || sk_X509_num(certificates.get()) == 0) {
    return Unauthenticated("the client's certificate cannot be read");
  }
  return FactsOf(sk_X509_value(certificates.get(), 0));
}

LocalUsers ResolveLocalUsers(const std::vector<std::string>& entries,
                             std::vector<std::string>* problems) {
  LocalUsers users;
  for (const std::string& entry : entries) {
    size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size() ||
        entry.find('=') != equals) {
      problems->push_back(
          fmt::format("tls.users: \"{}\" must be CN=USER, as in \"alice=1000\" or \"ci=profd-ci\"",
                      AsciiOnly(entry)));
      continue;
    }
    Result<LocalUser> user = ResolveUser(entry.substr(equals + 1));
    if (!user.ok()) {
      problems->push_back(
          fmt::format("tls.users: \"{}\": {}", AsciiOnly(entry), user.status().message()));
    } else if (!users.emplace(entry.substr(0, equals), std::move(user).value()).second) {
      problems->push_back(
          fmt::format("tls.users: \"{}\": this name was given a user before", AsciiOnly(entry)));
    }
  }
  return users;
}

struct TlsAuthorities::Impl {
  ossl::StorePtr store;

  Status Verify(X509* leaf, STACK_OF(X509) * chain) const;
};

TlsAuthorities::TlsAuthorities(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsAuthorities::~TlsAuthorities() = default;

Result<std::shared_ptr<const TlsAuthorities>> TlsAuthorities::Make(std::string_view ca_pem) {
  auto impl = std::make_unique<Impl>();
  impl->store.reset(X509_STORE_new());
  ossl::ChainPtr authorities = ParseCertificates(ca_pem);
  if (authorities == nullptr || impl->store == nullptr) {
    return InvalidArgument("no certificate of an authority");
  }
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i) {
    if (X509_STORE_add_cert(impl->store.get(), sk_X509_value(authorities.get(), i)) != 1) {
      return Internal("an authority's certificate cannot be used");
    }
  }
  ERR_clear_error();
  return std::shared_ptr<const TlsAuthorities>(new TlsAuthorities(std::move(impl)));
}

Status TlsAuthorities::Impl::Verify(X509* leaf, STACK_OF(X509) * chain) const {
  ossl::StoreCtxPtr context(X509_STORE_CTX_new());
  if (context == nullptr || X509_STORE_CTX_init(context.get(), store.get(), leaf, chain) != 1 ||
      X509_STORE_CTX_set_default(context.get(), "ssl_client") != 1) {
    return Internal("the certificate cannot be checked");
  }
  X509_STORE_CTX_set_depth(context.get(), kMaxChain);
  bool good = X509_verify_cert(context.get()) == 1;
  int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (good) return Status::Ok();
  return Unauthenticated(fmt::format("the client's certificate is not accepted: {}",
                                     X509_verify_cert_error_string(error)));
}

Result<Peer> TlsAuthorities::Identify(std::string_view leaf, std::string_view chain,
                                      const LocalUsers& users) const {
  if (leaf.size() > kMaxPem || chain.size() > kMaxPem) {
    return Unauthenticated("the client's certificate is too large");
  }
  ossl::ChainPtr own = ParseCertificates(leaf);
  if (own == nullptr || sk_X509_num(own.get()) != 1) {
    return Unauthenticated("the client's certificate cannot be read");
  }
  ossl::ChainPtr between = chain.empty() ? nullptr : ParseCertificates(chain);
  X509* certificate = sk_X509_value(own.get(), 0);
  RETURN_IF_ERROR(impl_->Verify(certificate, between.get()));
  Result<CertificateFacts> facts = FactsOf(certificate);
  if (!facts.ok()) return facts.status();
  Peer peer{.admin = facts->role == v1::ROLE_ADMIN, .viewer = facts->role == v1::ROLE_VIEWER, .remote = true,
            .certificate = facts->subject};
  if (peer.viewer) return peer;
  auto user = users.find(facts->common_name);
  if (user != users.end()) {
    peer.uid = user->second.uid;
    peer.gid = user->second.gid;
    peer.groups = user->second.groups;
  } else if (peer.admin) {
    // What a remote administrator starts is the daemon's own, as it is for root on the socket.
    peer.uid = ::geteuid();
    peer.gid = ::getegid();
  } else {
    return PermissionDenied(fmt::format(
        "no local user for the certificate {}: add \"{}=USER\" to tls.users in this node's "
        "configuration",
        facts->subject, facts->common_name));
  }
  return peer;
}

}  // namespace profd
