// Input: a byte of flags and PEM text, or DER that is put into PEM. It is taken for a client's
// certificate, for the authorities' file and for the daemon's own key, and is its own authority, so
// that what a signed certificate may say is met.
#include <openssl/evp.h>
#include <sys/stat.h>

#include <string>

#include "daemon/rpc/tls_identity.h"
#include "daemon/rpc/tls_pem.h"
#include "tests/fuzz/file_tree.h"

namespace profd {
namespace {

constexpr uint8_t kDer = 1;
constexpr uint8_t kKey = 2;

std::string Pem(std::string_view der, const std::string& what) {
  std::string base64(4 * ((der.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                                     reinterpret_cast<const unsigned char*>(der.data()),
                                     static_cast<int>(der.size()));
  base64.resize(static_cast<size_t>(length));
  std::string text = "-----BEGIN " + what + "-----\n";
  for (size_t at = 0; at < base64.size(); at += 64) text += base64.substr(at, 64) + "\n";
  return text + "-----END " + what + "-----\n";
}

void CheckText(std::string_view text, size_t most) {
  FUZZ_EXPECT(text.size() <= most);
  for (char c : text) FUZZ_EXPECT(c >= 0x20 && c < 0x7F);
}

void Identify(const std::string& pem) {
  Result<CertificateFacts> facts = ReadCertificate(pem);
  if (facts.ok()) {
    CheckText(facts->subject, 256);
    CheckText(facts->common_name, 64);
    FUZZ_EXPECT(!facts->common_name.empty());
  } else {
    CheckText(facts.status().message(), 1024);
  }
  Result<std::shared_ptr<const TlsAuthorities>> own = TlsAuthorities::Make(pem);
  if (!own.ok()) return;
  LocalUsers users;
  users["alice"] = {1000, 1000, {}};
  for (std::string_view chain : {std::string_view(), std::string_view(pem)}) {
    Result<Peer> peer = (*own)->Identify(pem, chain, users);
    if (!peer.ok()) continue;
    FUZZ_EXPECT(facts.ok() && peer->remote && peer->certificate == facts->subject);
    FUZZ_EXPECT(!(peer->admin && peer->viewer));
    FUZZ_EXPECT(peer->admin == (facts->role == v1::ROLE_ADMIN));
    FUZZ_EXPECT(peer->viewer || peer->admin || peer->uid == 1000);
  }
}

void Load(const std::string& pem) {
  static fuzz::TreeDirectory tree;
  ::umask(077);
  tree.Clear();
  for (const char* name : {"a", "b", "c"}) tree.Write(name, pem);
  const TlsPaths paths{tree.path() + "/a", tree.path() + "/b", tree.path() + "/c"};
  std::vector<std::string> problems;
  TlsMaterial material = LoadTlsFiles(paths, &problems);
  for (const std::string& problem : problems)
    FUZZ_EXPECT(!problem.empty() && problem.size() < 2048);
  if (problems.empty()) FUZZ_EXPECT(material.certificate_pem == pem);
}

}  // namespace

void fuzz::Run(Input input) {
  const auto flags = input.Take<uint8_t>();
  std::string pem(input.rest());
  if ((flags & kDer) != 0) {
    pem = Pem(input.rest(), (flags & kKey) != 0 ? "PRIVATE KEY" : "CERTIFICATE");
  }
  if ((flags & kKey) == 0) Identify(pem);
  Load(pem);
}

}  // namespace profd
