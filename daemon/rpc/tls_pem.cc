#include "daemon/rpc/tls_pem.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "dump/dump_io.h"

namespace profd {
namespace {

constexpr off_t kMaxFile = 1 << 20;
constexpr int kMaxCertificates = 256;

// Who can write one of the files decides who may start sessions; who can read the key can pretend to be the
// node.
Status CheckMode(const struct stat& info, bool secret) {
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return FailedPrecondition(fmt::format("belongs to uid {}, not to root", info.st_uid));
  }
  mode_t forbidden = secret ? 0037 : 0022;
  if ((info.st_mode & forbidden) == 0) return Status::Ok();
  if (secret) {
    return FailedPrecondition(fmt::format(
        "mode {:04o} lets others at the key; chmod 0600 (or 0640)", info.st_mode & 07777U));
  }
  return FailedPrecondition(fmt::format("mode {:04o} lets others than root change it; chmod 0644",
                                        info.st_mode & 07777U));
}

int64_t ExpiryOf(const X509* certificate) {
  std::tm when{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &when) != 1) return 0;
  return static_cast<int64_t>(::timegm(&when));
}

Status CheckAuthorities(std::string_view pem) {
  ossl::ChainPtr authorities = ParseCertificates(pem);
  if (authorities == nullptr) return FailedPrecondition("is not a PEM file of certificates");
  if (sk_X509_num(authorities.get()) == 0) return FailedPrecondition("holds no certificate");
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i) {
    if (X509_check_ca(sk_X509_value(authorities.get(), i)) == 0) {
      return FailedPrecondition(
          fmt::format("certificate {} in it is not one of an authority (CA:TRUE)", i + 1));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> ReadTrustedFile(const std::string& path, bool secret) {
  if (path.empty() || path.front() != '/') return InvalidArgument("must be an absolute path");
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailedPrecondition(std::generic_category().message(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return FailedPrecondition(std::generic_category().message(errno));
  }
  if (!S_ISREG(info.st_mode)) return FailedPrecondition("is not a regular file");
  if (info.st_size > kMaxFile) return FailedPrecondition("is larger than 1 MiB");
  RETURN_IF_ERROR(CheckMode(info, secret));
  Result<std::string> text = ReadWhole(fd.get(), kMaxFile);
  if (!text.ok()) return FailedPrecondition(text.status().message());
  return text;
}

ossl::ChainPtr ParseCertificates(std::string_view pem) {
  if (pem.size() > static_cast<size_t>(kMaxFile)) return nullptr;
  ossl::ChainPtr all(sk_X509_new_null());
  ossl::BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (all == nullptr || bio == nullptr) return nullptr;
  ERR_clear_error();
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, ossl::NoPassphrase, nullptr)) {
    if (sk_X509_num(all.get()) == kMaxCertificates || sk_X509_push(all.get(), one) == 0) {
      X509_free(one);
      return nullptr;
    }
  }
  // The end of the text is the one error that is none.
  bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return at_end ? std::move(all) : nullptr;
}

TlsMaterial LoadTlsFiles(const TlsPaths& paths, std::vector<std::string>* problems,
                         const TlsFileNames& names) {
  auto problem = [problems](std::string_view name, const std::string& path,
                            std::string_view what) {
    problems->push_back(fmt::format("{} = \"{}\": {}", name, path, what));
  };
  auto read = [&](std::string_view name, const std::string& path, std::string* text) {
    Result<std::string> content = ReadTrustedFile(path, name == names.key);
    if (!content.ok()) {
      problem(name, path, content.status().message());
      return false;
    }
    *text = std::move(content).value();
    return true;
  };
  TlsMaterial material;
  bool has_certificate = read(names.certificate, paths.certificate, &material.certificate_pem);
  bool has_key = read(names.key, paths.key, &material.key_pem);
  bool has_ca = !names.client_ca.empty() && read(names.client_ca, paths.client_ca, &material.ca_pem);
  if (has_ca) {
    if (Status ca = CheckAuthorities(material.ca_pem); !ca.ok()) {
      problem(names.client_ca, paths.client_ca, ca.message());
    }
  }
  ossl::ChainPtr chain;
  if (has_certificate) {
    chain = ParseCertificates(material.certificate_pem);
    if (chain != nullptr && sk_X509_num(chain.get()) == 0) chain.reset();
    if (chain == nullptr) {
      problem(names.certificate, paths.certificate, "is not a PEM file with a certificate");
    } else {
      material.expires_s = ExpiryOf(sk_X509_value(chain.get(), 0));
    }
  }
  ossl::KeyPtr key;
  if (has_key) {
    key = ossl::ParseKey(material.key_pem);
    if (key == nullptr) {
      problem(names.key, paths.key, "is not a PEM file with an unencrypted private key");
    }
  }
  if (chain != nullptr && key != nullptr &&
      X509_check_private_key(sk_X509_value(chain.get(), 0), key.get()) != 1) {
    problem(names.key, paths.key,
            fmt::format("is not the key of the certificate in {}", paths.certificate));
  }
  ERR_clear_error();
  return material;
}

std::string TlsFilesStamp(const TlsPaths& paths) {
  std::string timestamp;
  for (const std::string* path : {&paths.certificate, &paths.key, &paths.client_ca}) {
    struct stat info {};
    if (::stat(path->c_str(), &info) != 0) {
      timestamp += fmt::format("{};", errno);
      continue;
    }
    timestamp += fmt::format("{}.{}.{}.{}.{}.{}.{}.{};", info.st_dev, info.st_ino, info.st_size,
                             info.st_mode, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                             info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
  }
  return timestamp;
}

}  // namespace profd
