#include "daemon/push/http_post.h"

#include <fmt/format.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/openssl_ptr.h"
#include "base/text.h"

namespace profd {
namespace {

using SslContextPtr = std::unique_ptr<SSL_CTX, ossl::Deleter<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, ossl::Deleter<SSL_free>>;

// Of a receiver's answer; its body is of no interest beyond the first line.
constexpr size_t kMaxHead = 16 * 1024;
constexpr size_t kMaxDetail = 200;

std::string SslText() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "TLS failed" : reason;
}

Result<SslContextPtr> MakeContext(const PushTls& tls) {
  ERR_clear_error();
  SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return Internal(SslText());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const bool has_ca = tls.ca.empty()
                          ? SSL_CTX_set_default_verify_paths(context.get()) == 1
                          : SSL_CTX_load_verify_locations(context.get(), tls.ca.c_str(), nullptr) == 1;
  if (!has_ca) return FailedPrecondition(fmt::format("push.ca = \"{}\": {}", tls.ca, SslText()));
  if (tls.certificate.empty() != tls.key.empty()) {
    return InvalidArgument("push.certificate and push.key go together");
  }
  if (tls.certificate.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(context.get(), tls.certificate.c_str()) != 1) {
    return FailedPrecondition(fmt::format("push.certificate = \"{}\": {}", tls.certificate, SslText()));
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return FailedPrecondition(fmt::format("push.key = \"{}\": {}", tls.key, SslText()));
  }
  return context;
}

// Changes whenever one of the files may have.
std::string StampOf(const PushTls& tls) {
  std::string stamp;
  for (const std::string* path : {&tls.ca, &tls.certificate, &tls.key}) {
    struct stat info {};
    if (path->empty() || ::stat(path->c_str(), &info) != 0) info = {};
    stamp += fmt::format("{}.{}.{}.{} ", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                         info.st_mtim.tv_nsec);
  }
  return stamp;
}

// Waits for the socket, the deadline and whoever wants an end of it.
class Waiter {
 public:
  Waiter(int64_t deadline_ns, int wake) : deadline_ns_(deadline_ns), wake_(wake) {}

  // Empty, or why not.
  std::string_view For(int fd, short events) const {
    for (;;) {
      const int64_t left_ms = (deadline_ns_ - SystemClock().SteadyNs() + kNsPerMs - 1) / kNsPerMs;
      if (left_ms <= 0) return kPushTimeout;
      std::array<pollfd, 2> fds = {pollfd{fd, events, 0}, pollfd{wake_, POLLIN, 0}};
      const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
      if (fds[1].revents != 0) return kPushStopped;
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return kPushBroken;
    }
  }

 private:
  int64_t deadline_ns_;
  int wake_;
};

// A connected socket, with TLS around it or not. Errors are results.
class Link {
 public:
  Link(const PushUrl& url, const Waiter& waiter) : url_(url), waiter_(waiter) {}

  std::optional<PostResult> Connect() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found);
    if (error != 0) {
      return Failed(kPushConnect, fmt::format("{}: {}", url_.host, ::gai_strerror(error)));
    }
    std::unique_ptr<addrinfo, ossl::Deleter<::freeaddrinfo>> owner(found);
    std::optional<PostResult> last = Failed(kPushConnect, "no address");
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      last = ConnectTo(*one);
      if (!last || last->reason == kPushStopped || last->reason == kPushTimeout) return last;
    }
    return last;
  }

  std::optional<PostResult> Handshake(SSL_CTX* context) {
    ssl_.reset(SSL_new(context));
    if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), fd_.get()) != 1 || !SetName()) {
      return Failed(kPushTls, SslText());
    }
    for (;;) {
      ERR_clear_error();
      const int done = SSL_connect(ssl_.get());
      if (done == 1) return std::nullopt;
      if (auto failed = WaitForSsl(done, kPushTls)) return failed;
    }
  }

  std::optional<PostResult> Write(std::string_view data) {
    while (!data.empty()) {
      ssize_t put = 0;
      if (ssl_ != nullptr) {
        ERR_clear_error();
        put = SSL_write(ssl_.get(), data.data(), static_cast<int>(std::min<size_t>(data.size(), 1 << 20)));
        if (put <= 0) {
          if (auto failed = WaitForSsl(static_cast<int>(put), kPushBroken)) return failed;
          continue;
        }
      } else {
        put = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
        if (put < 0) {
          if (auto failed = WaitForSocket(POLLOUT)) return failed;
          continue;
        }
      }
      data.remove_prefix(static_cast<size_t>(put));
    }
    return std::nullopt;
  }

  // At most what fits; 0 at the end.
  std::optional<PostResult> Read(std::string* out) {
    std::array<char, 4096> part{};
    for (;;) {
      ssize_t got = 0;
      if (ssl_ != nullptr) {
        ERR_clear_error();
        got = SSL_read(ssl_.get(), part.data(), part.size());
        if (got <= 0) {
          if (SSL_get_error(ssl_.get(), static_cast<int>(got)) == SSL_ERROR_ZERO_RETURN) return std::nullopt;
          if (auto failed = WaitForSsl(static_cast<int>(got), kPushBroken)) return failed;
          continue;
        }
      } else {
        got = ::recv(fd_.get(), part.data(), part.size(), 0);
        if (got < 0) {
          if (auto failed = WaitForSocket(POLLIN)) return failed;
          continue;
        }
      }
      out->append(part.data(), static_cast<size_t>(got));
      return std::nullopt;
    }
  }

  PostResult Failed(std::string_view reason, std::string detail) const {
    PostResult result;
    result.reason = reason;
    result.detail = std::move(detail);
    return result;
  }

 private:
  std::optional<PostResult> ConnectTo(const addrinfo& address) {
    fd_ = UniqueFd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_.valid()) return Failed(kPushConnect, std::generic_category().message(errno));
    if (::connect(fd_.get(), address.ai_addr, address.ai_addrlen) == 0) return std::nullopt;
    int error = errno;
    if (error == EINPROGRESS) {
      std::string_view why = waiter_.For(fd_.get(), POLLOUT);
      if (!why.empty()) return Failed(why, "no connection to " + url_.Authority());
      socklen_t size = sizeof error;
      if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    }
    if (error == 0) return std::nullopt;
    return Failed(kPushConnect,
                  fmt::format("{}: {}", url_.Authority(), std::generic_category().message(error)));
  }

  bool SetName() {
    X509_VERIFY_PARAM* check = SSL_get0_param(ssl_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(check, url_.host.c_str()) == 1) return true;
    ERR_clear_error();
    return SSL_set1_host(ssl_.get(), url_.host.c_str()) == 1 &&
           SSL_set_tlsext_host_name(ssl_.get(), url_.host.c_str()) == 1;
  }

  std::optional<PostResult> WaitForSsl(int done, std::string_view reason) {
    const int error = SSL_get_error(ssl_.get(), done);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      std::string_view why = waiter_.For(fd_.get(), error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
      if (why.empty()) return std::nullopt;
      return Failed(why, "no answer of " + url_.Authority());
    }
    const long verified = SSL_get_verify_result(ssl_.get());
    if (verified != X509_V_OK) {
      ERR_clear_error();
      return Failed(kPushTls, fmt::format("the certificate of {}: {}", url_.Authority(),
                                          X509_verify_cert_error_string(verified)));
    }
    return Failed(reason, fmt::format("{}: {}", url_.Authority(), SslText()));
  }

  std::optional<PostResult> WaitForSocket(short events) {
    if (errno == EINTR) return std::nullopt;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      return Failed(kPushBroken,
                    fmt::format("{}: {}", url_.Authority(), std::generic_category().message(errno)));
    }
    std::string_view why = waiter_.For(fd_.get(), events);
    if (why.empty()) return std::nullopt;
    return Failed(why, "no answer of " + url_.Authority());
  }

  const PushUrl& url_;
  const Waiter& waiter_;
  UniqueFd fd_;
  SslPtr ssl_;  // goes first
};

// The value of a header line, in a head of lines that end with CRLF.
std::string_view HeaderOf(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    const bool same = std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    });
    if (!same) continue;
    line.remove_prefix(name.size() + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    return line;
  }
  return {};
}

PostResult ReadAnswer(const PushUrl& url, Link& link) {
  std::string text;
  size_t end = std::string::npos;
  while (end == std::string::npos) {
    const size_t before = text.size();
    if (auto failed = link.Read(&text)) return *failed;
    end = text.find("\r\n\r\n");
    if (end == std::string::npos && (text.size() == before || text.size() > kMaxHead)) {
      return link.Failed(kPushBroken, url.Authority() + " answers no HTTP, or hung up");
    }
  }
  const std::string_view head = std::string_view(text).substr(0, end);
  PostResult result;
  // "HTTP/1.1 204 No Content"
  const bool is_http = head.starts_with("HTTP/1.") && head.size() >= 12 && head[8] == ' ' &&
                       ParseNumber(head.substr(9, 3), &result.status);
  if (!is_http) return link.Failed(kPushBroken, url.Authority() + " answers no HTTP");
  result.reason = kPushAnswer;
  int64_t seconds = 0;
  if (ParseNumber(HeaderOf(head, "Retry-After"), &seconds)) result.retry_after_s = seconds;
  // What came together with the head says why.
  std::string_view body = std::string_view(text).substr(end + 4);
  body = body.substr(0, std::min(body.find('\n'), kMaxDetail));
  result.detail = fmt::format("{} answers {}", url.Authority(), head.substr(9, head.find("\r\n") - 9));
  const bool is_text = HeaderOf(head, "Content-Type").starts_with("text/");
  if (result.status >= 300 && is_text && !body.empty()) result.detail += fmt::format(": {}", body);
  return result;
}

}  // namespace

struct HttpPoster::Impl {
  PushTls tls;
  std::string stamp;
  SslContextPtr context;

  // Made anew when the files have changed.
  Status Prepare() {
    std::string now = StampOf(tls);
    if (context != nullptr && now == stamp) return Status::Ok();
    Result<SslContextPtr> made = MakeContext(tls);
    if (!made.ok()) return made.status();
    context = std::move(made).value();
    stamp = std::move(now);
    return Status::Ok();
  }
};

HttpPoster::HttpPoster(PushTls tls) : impl_(std::make_unique<Impl>()) { impl_->tls = std::move(tls); }
HttpPoster::~HttpPoster() = default;

Status HttpPoster::Check(const PushTls& tls) { return MakeContext(tls).status(); }

PostResult HttpPoster::Post(const PushUrl& url, std::string_view headers, std::string_view body,
                            int64_t deadline_steady_ns, int wake) {
  const Waiter waiter(deadline_steady_ns, wake);
  Link link(url, waiter);
  if (url.tls) {
    if (Status ready = impl_->Prepare(); !ready.ok()) return link.Failed(kPushTls, ready.message());
  }
  if (auto failed = link.Connect()) return *failed;
  if (url.tls) {
    if (auto failed = link.Handshake(impl_->context.get())) return *failed;
  }
  const std::string head =
      fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
                  url.target, url.Authority(), body.size(), headers);
  if (auto failed = link.Write(head)) return *failed;
  // A receiver that refuses may answer before it has read all, and hang up.
  const std::optional<PostResult> broken = link.Write(body);
  if (broken && broken->reason != kPushBroken) return *broken;
  PostResult result = ReadAnswer(url, link);
  return broken && result.reason != kPushAnswer ? *broken : result;
}

}  // namespace profd
