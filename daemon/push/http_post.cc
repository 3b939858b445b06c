#include "daemon/push/http_post.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/http_connection.h"
#include "base/text.h"
#include "daemon/rpc/tls_pem.h"

namespace profd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Request = http::request<http::span_body<const char>>;

// Of a receiver's answer; a longer body is of no interest.
constexpr uint32_t kMaxHead = 16 * 1024;
constexpr uint64_t kMaxBody = 64 * 1024;
constexpr size_t kMaxDetail = 200;

PostResult Failed(std::string_view reason, std::string detail) {
  return {.reason = reason, .detail = std::move(detail)};
}

// OpenSSL's error for a file that cannot be opened is "asio.ssl error".
std::string WhyUnusable(const std::string& path, const error_code& error) {
  return ::access(path.c_str(), R_OK) == 0 ? error.message() : std::generic_category().message(errno);
}

Result<std::unique_ptr<asio::ssl::context>> MakeContext(const PushTls& tls) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return InvalidArgument("push.certificate and push.key go together");
  }
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  const auto fault = [](std::string_view name, const std::string& path, const error_code& error) {
    const std::string why = name == "key" ? error.message() : WhyUnusable(path, error);
    return FailedPrecondition(fmt::format("push.{} = \"{}\": {}", name, path, why));
  };
  RETURN_IF_ERROR(PrepareTlsClient(tls, fault, context.get()));
  return context;
}

// Seconds, or a date (RFC 9110 10.2.3); 0: neither, or past.
int64_t RetryAfter(const std::string& value) {
  int64_t seconds = 0;
  if (ParseNumber(value, &seconds)) return seconds;
  tm date{};
  if (::strptime(value.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date) == nullptr) return 0;
  return std::max<int64_t>(::timegm(&date) - SystemClock().WallNs() / kNsPerSecond, 0);
}

// One exchange on a connection of its own, until the deadline or `wake`.
class Exchange {
 public:
  Exchange(const PushUrl& url, int64_t deadline_steady_ns, int wake)
      : url_(url), connection_(url.host, url.port), wake_(connection_.io()) {
    connection_.SetDeadline(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_steady_ns)));
    const int own = wake < 0 ? -1 : ::dup(wake);
    if (own < 0) return;
    wake_.assign(own);
    wake_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      if (!error) connection_.Stop();
    });
  }

  std::optional<PostResult> Connect() {
    if (const error_code error = connection_.Resolve()) return Explain(error, kPushConnect, url_.host);
    if (const error_code error = connection_.Connect()) return Explain(error, kPushConnect, url_.Authority());
    return std::nullopt;
  }

  std::optional<PostResult> Handshake(asio::ssl::context& context) {
    if (!connection_.UseTls(context)) return Failed(kPushTls, url_.host + ": not a name for TLS");
    const error_code error = connection_.Handshake();
    if (!error) return std::nullopt;
    if (const char* fault = connection_.CertificateFault()) {
      return Failed(kPushTls, fmt::format("the certificate of {}: {}", url_.Authority(), fault));
    }
    return Explain(error, kPushTls, url_.Authority());
  }

  PostResult Send(const Request& request) {
    // A receiver that refuses may answer before it has read all, and hang up.
    const error_code broken =
        connection_.Do([&](auto& stream, auto done) { http::async_write(stream, request, done); });
    if (connection_.over()) return Explain(broken, kPushBroken, url_.Authority());
    beast::flat_buffer buffer;
    std::optional<http::response_parser<http::string_body>> parser;
    error_code error;
    bool is_interim = false;
    do {  // as 100 Continue; they may come unasked (RFC 9110 15.2). After 101 another protocol follows
      parser.emplace();
      parser->header_limit(kMaxHead);
      parser->body_limit(kMaxBody);
      error = connection_.Do([&](auto& stream, auto done) { http::async_read_header(stream, buffer, *parser, done); });
      is_interim = parser->get().result_int() < 200 && parser->get().result() != http::status::switching_protocols;
    } while (!error && is_interim);
    if (error) {
      const error_code& cause = broken ? broken : error;
      if (connection_.over() || broken) return Explain(cause, kPushBroken, url_.Authority());
      return Failed(kPushBroken, fmt::format("{} answers no HTTP, or hung up: {}", url_.Authority(),
                                             error.message()));
    }
    // It has answered: a body that breaks off or is too long changes nothing, and one of unknown length might not end.
    if (parser->need_eof()) {
      const auto rest = buffer.cdata();
      parser->get().body().assign(static_cast<const char*>(rest.data()), rest.size());
    } else {
      (void)connection_.Do([&](auto& stream, auto done) { http::async_read(stream, buffer, *parser, done); });
    }
    return Answer(parser->get());
  }

 private:
  PostResult Explain(const error_code& error, std::string_view reason, const std::string& who) const {
    if (connection_.stopped()) return Failed(kPushStopped, "stopped");
    if (connection_.timed_out()) return Failed(kPushTimeout, "no answer of " + url_.Authority());
    return Failed(reason, fmt::format("{}: {}", who, error.message()));
  }

  PostResult Answer(const http::response<http::string_body>& answer) const {
    auto field = [&answer](http::field name) {
      const auto value = answer[name];
      return std::string_view(value.data(), value.size());
    };
    const std::string words(answer.reason());
    PostResult result{.reason = kPushAnswer, .status = static_cast<int>(answer.result_int())};
    result.retry_after_s = RetryAfter(std::string(field(http::field::retry_after)));
    result.detail = fmt::format("{} answers {} {}", url_.Authority(), result.status, words);
    const std::string_view type = field(http::field::content_type);
    std::string_view body = answer.body();
    if (type.starts_with("application/x-protobuf")) result.protobuf = body;
    body = body.substr(0, std::min(body.find('\n'), kMaxDetail));
    if (result.status >= 300 && type.starts_with("text/") && !body.empty()) result.detail += fmt::format(": {}", body);
    return result;
  }

  const PushUrl& url_;
  HttpConnection connection_;
  asio::posix::stream_descriptor wake_;
};

Request MakeRequest(const PushUrl& url, std::string_view headers, std::string_view body) {
  Request request(http::verb::post, url.target, 11);
  request.set(http::field::host, url.Authority());
  for (std::string_view line; NextLine(&headers, &line);) {
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = Trim(line.substr(std::min(colon + 1, line.size())));
    if (!name.empty()) request.insert({name.data(), name.size()}, {value.data(), value.size()});
  }
  request.body() = {body.data(), body.size()};
  request.prepare_payload();
  request.keep_alive(false);
  return request;
}

}  // namespace

struct HttpPoster::Impl {
  PushTls tls;
  std::string stamp;
  std::unique_ptr<asio::ssl::context> context;

  // Made anew when the files have changed.
  Status Prepare() {
    std::string now = TlsFilesStamp({tls.certificate, tls.key, tls.ca});
    if (context != nullptr && now == stamp) return Status::Ok();
    auto made = MakeContext(tls);
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
  if (url.tls) {
    if (Status ready = impl_->Prepare(); !ready.ok()) return Failed(kPushTls, ready.message());
  }
  try {
    Exchange exchange(url, deadline_steady_ns, wake);
    if (auto failed = exchange.Connect()) return *failed;
    if (url.tls) {
      if (auto failed = exchange.Handshake(*impl_->context)) return *failed;
    }
    return exchange.Send(MakeRequest(url, headers, body));
  } catch (const boost::system::system_error& error) {
    // Its descriptors are made by constructors.
    return Failed(kPushConnect, fmt::format("{}: {}", url.Authority(), error.what()));
  }
}

}  // namespace profd
