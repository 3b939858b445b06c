#include "client/tls_files.h"

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

namespace profd::client {
namespace {

constexpr off_t kMaxFile = 1 << 20;
constexpr std::string_view kWhereFrom =
    "--tls-dir DIR (ca.crt, client.crt, client.key) or --tls-ca, --tls-cert, --tls-key name the "
    "files;\nthe node's administrator issues them (profctl tls init).";

Status TlsProblem(std::string text) { return {StatusCode::kUnauthenticated, std::move(text)}; }

Result<std::string> ReadPem(const std::string& path, std::string_view what, bool secret) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return TlsProblem(
        fmt::format("cannot read {} {}: {}\n{}", what, path, std::generic_category().message(errno),
                    kWhereFrom));
  }
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxFile) {
    return TlsProblem(fmt::format("{} {} is not a PEM file", what, path));
  }
  if (secret && (info.st_mode & 0077) != 0 && info.st_uid == ::geteuid()) {
    return TlsProblem(fmt::format("{} {} is open to others (mode {:04o}): chmod 600 {}", what, path,
                               info.st_mode & 07777U, path));
  }
  Result<std::string> text = ReadWhole(fd.get(), kMaxFile);
  if (!text.ok()) return TlsProblem(fmt::format("{}: {}", path, text.status().message()));
  return text;
}

Status CheckPair(const TlsFiles& files, const ClientTls& tls) {
  ossl::X509Ptr certificate = FirstCertificate(tls.certificate_pem);
  if (certificate == nullptr) {
    return TlsProblem(fmt::format("{} holds no certificate (PEM)", files.certificate));
  }
  if (FirstCertificate(tls.ca_pem) == nullptr) {
    return TlsProblem(fmt::format("{} holds no certificate (PEM)", files.ca));
  }
  ossl::KeyPtr key = ossl::ParseKey(tls.key_pem);
  if (key == nullptr) {
    return TlsProblem(fmt::format("{} holds no private key without a passphrase (PEM)", files.key));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return TlsProblem(fmt::format("{} is not the key of {}", files.key, files.certificate));
  }
  const ASN1_TIME* until = X509_get0_notAfter(certificate.get());
  if (X509_cmp_current_time(until) < 0) {
    return TlsProblem(fmt::format("your certificate {} expired on {}; ask for a new one",
                               files.certificate, TimeText(until)));
  }
  const ASN1_TIME* from = X509_get0_notBefore(certificate.get());
  if (X509_cmp_current_time(from) > 0) {
    return TlsProblem(fmt::format("your certificate {} is valid from {} only; is the clock right?",
                               files.certificate, TimeText(from)));
  }
  return Status::Ok();
}

}  // namespace

ossl::X509Ptr FirstCertificate(std::string_view pem) {
  ossl::BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return nullptr;
  return ossl::X509Ptr(PEM_read_bio_X509(bio.get(), nullptr, ossl::NoPassphrase, nullptr));
}

std::string TimeText(const ASN1_TIME* time) {
  std::tm when{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &when) != 1) return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", when.tm_year + 1900, when.tm_mon + 1,
                     when.tm_mday, when.tm_hour, when.tm_min);
}

Result<ClientTls> LoadClientTls(const TlsFiles& files) {
  Result<std::string> ca = ReadPem(files.ca, "CA certificate", false);
  if (!ca.ok()) return ca.status();
  Result<std::string> certificate = ReadPem(files.certificate, "your certificate", false);
  if (!certificate.ok()) return certificate.status();
  Result<std::string> key = ReadPem(files.key, "your key", true);
  if (!key.ok()) return key.status();
  ClientTls tls{std::move(ca).value(), std::move(certificate).value(), std::move(key).value()};
  Status status = CheckPair(files, tls);
  ERR_clear_error();
  if (!status.ok()) return status;
  return tls;
}

}  // namespace profd::client
