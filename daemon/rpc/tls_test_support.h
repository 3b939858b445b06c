// For tests only: certificates of every kind, also such as no authority should sign.
#pragma once

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <string>
#include <utility>
#include <vector>

#include "base/openssl_ptr.h"

namespace profd {

struct TestPair {
  ossl::X509Ptr certificate;
  ossl::KeyPtr key;
};

struct CertificateSpec {
  // Field and raw value; the values' bytes are taken as they are.
  std::vector<std::pair<std::string, std::string>> subject;
  const TestPair* issuer = nullptr;  // null = signs itself
  bool authority = false;
  std::string purpose = "clientAuth";
  long valid_s = 3600;
  int encoding = MBSTRING_UTF8;
};

inline void AddTestExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  ossl::ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  ASSERT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

inline TestPair MakeTestPair(const CertificateSpec& spec) {
  TestPair pair{ossl::X509Ptr(X509_new()), ossl::KeyPtr(EVP_EC_gen("P-256"))};
  X509* certificate = pair.certificate.get();
  const TestPair& issuer = spec.issuer == nullptr ? pair : *spec.issuer;
  EXPECT_EQ(X509_set_version(certificate, 2), 1);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate), spec.valid_s);
  X509_set_pubkey(certificate, pair.key.get());
  for (const auto& [field, value] : spec.subject) {
    EXPECT_EQ(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), field.c_str(),
                                         spec.encoding,
                                         reinterpret_cast<const unsigned char*>(value.data()),
                                         static_cast<int>(value.size()), -1, 0),
              1)
        << field;
  }
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer.certificate.get()));
  AddTestExtension(certificate, issuer.certificate.get(), NID_basic_constraints,
                   spec.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!spec.authority) {
    AddTestExtension(certificate, issuer.certificate.get(), NID_ext_key_usage,
                     spec.purpose.c_str());
  }
  EXPECT_GT(X509_sign(certificate, issuer.key.get(), EVP_sha256()), 0);
  return pair;
}

inline std::string BioText(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

inline std::string CertificatePem(const TestPair& pair) {
  ossl::BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(bio.get(), pair.certificate.get()), 1);
  return BioText(bio.get());
}

inline std::string KeyPem(const TestPair& pair, const char* passphrase = nullptr) {
  ossl::BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_PrivateKey(bio.get(), pair.key.get(),
                                     passphrase == nullptr ? nullptr : EVP_aes_128_cbc(), nullptr,
                                     0, nullptr, const_cast<char*>(passphrase)),
            1);
  return BioText(bio.get());
}

}  // namespace profd
