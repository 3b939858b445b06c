#include "daemon/web/web_connection.h"

#include <fmt/format.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/web/http_text.h"

namespace profd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::seconds;

constexpr uint32_t kMaxHeaderBytes = 8 * 1024;
// Space for a complete header beside what an earlier read brought of it.
constexpr size_t kMaxBufferBytes = 2 * kMaxHeaderBytes;
constexpr size_t kReadBytes = 4096;
// Each covers a complete step, not one read or write of it: a client that sends single bytes gains nothing.
constexpr seconds kReadDeadline(10);   // a request's header, or the handshake
constexpr seconds kWriteDeadline(10);  // an answer, until the kernel has all of it
constexpr seconds kIdleDeadline(30);   // between two requests
constexpr seconds kCloseDeadline(2);
constexpr size_t kWorthCompressing = 1024;
constexpr size_t kMaxAgent = 128;
constexpr std::string_view kNoBodies = "Requests have no body here.\n";

class WebConnection : public std::enable_shared_from_this<WebConnection> {
 public:
  WebConnection(WebCore& core, asio::ip::tcp::socket socket, std::string address,
                Admission admission)
      : core_(core),
        address_(std::move(address)),
        admission_(admission),
        state_(core.state->current()),
        stream_(std::move(socket)),
        buffer_(kMaxBufferBytes) {
    core_.connections.fetch_add(1, std::memory_order_relaxed);
  }
  ~WebConnection() {
    core_.connections.fetch_sub(1, std::memory_order_relaxed);
    core_.limits.Leave(address_, admission_);
  }
  WebConnection(const WebConnection&) = delete;
  WebConnection& operator=(const WebConnection&) = delete;

  void Start();

 private:
  using Ssl = asio::ssl::stream<beast::tcp_stream&>;

  template <class Step>
  void OnStream(Step step) {
    ssl_ ? step(*ssl_) : step(stream_);
  }
  // Counts what the client did not do in time; true when the step failed.
  bool Failed(error_code error);
  void OnDetected(error_code error, bool speaks_tls);
  void OnHandshake(error_code error, size_t used);
  void AwaitRequest();
  void ReadHeader();
  void OnHeader(error_code error);
  void Handle();
  void Authorize(HttpTarget target);
  void Dispatch(const HttpTarget& target);
  void Refuse(int status, std::string text, HttpHeaders headers = {});
  void RefuseBad(int status, std::string text);
  bool Pack(std::string text);
  void Send(WebResponse response, HttpHeaders headers = {});
  void OnSent(error_code error);
  void Close();
  void Drain(size_t left);

  bool IsHead() const {
    return parser_ && parser_->is_header_done() && parser_->get().method() == http::verb::head;
  }

  WebCore& core_;
  const std::string address_;
  const Admission admission_;
  WebStatePtr state_;  // that it was accepted under; its TLS context lives as long as this
  beast::tcp_stream stream_;
  std::optional<Ssl> ssl_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;  // one per request
  std::string head_;  // of the answer that is being sent
  std::string body_;
  AnswerBuffer* buffer_of_body_ = nullptr;  // where it goes when it has been sent
  bool close_ = false;
};

void WebConnection::Start() {
  stream_.expires_after(kReadDeadline);
  if (state_->tls == nullptr) {
    ReadHeader();
    return;
  }
  beast::async_detect_ssl(
      stream_, buffer_, [self = shared_from_this()](error_code error, bool speaks_tls) {
        self->OnDetected(error, speaks_tls);
      });
}

bool WebConnection::Failed(error_code error) {
  if (error == beast::error::timeout) core_.timeouts.fetch_add(1, std::memory_order_relaxed);
  return static_cast<bool>(error);
}

void WebConnection::OnDetected(error_code error, bool speaks_tls) {
  if (Failed(error)) return;
  if (!speaks_tls) {
    RefuseBad(400, "This port speaks HTTPS: use https:// instead of http://.\n");
    return;
  }
  ssl_.emplace(stream_, *state_->tls);
  ssl_->async_handshake(Ssl::server, buffer_.data(),
                        [self = shared_from_this()](error_code failed, size_t used) {
                          self->OnHandshake(failed, used);
                        });
}

void WebConnection::OnHandshake(error_code error, size_t used) {
  buffer_.consume(used);
  if (!Failed(error)) {
    ReadHeader();
    return;
  }
  if (error == beast::error::timeout) return;
  core_.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
  log::Debug("TLS handshake of /metrics failed", {{"peer", address_}, {"why", error.message()}});
}

// Between two requests a client may rest longer than within one.
void WebConnection::AwaitRequest() {
  if (buffer_.size() > 0) {
    stream_.expires_after(kReadDeadline);
    ReadHeader();
    return;
  }
  stream_.expires_after(kIdleDeadline);
  OnStream([this](auto& stream) {
    stream.async_read_some(buffer_.prepare(kReadBytes),
                           [self = shared_from_this()](error_code error, size_t count) {
                             if (error) return;
                             self->buffer_.commit(count);
                             self->stream_.expires_after(kReadDeadline);
                             self->ReadHeader();
                           });
  });
}

void WebConnection::ReadHeader() {
  parser_.emplace();
  parser_->header_limit(kMaxHeaderBytes);
  OnStream([this](auto& stream) {
    http::async_read_header(stream, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, size_t) {
                              self->OnHeader(error);
                            });
  });
}

void WebConnection::OnHeader(error_code error) {
  if (!error) {
    Handle();
    return;
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    RefuseBad(431, fmt::format("A request has at most {} bytes of header.\n", kMaxHeaderBytes));
  } else if (error == http::error::body_limit) {
    RefuseBad(413, std::string(kNoBodies));
  } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    RefuseBad(400, fmt::format("Invalid HTTP request: {}.\n", error.message()));
  } else {
    (void)Failed(error);
  }
}

void WebConnection::Handle() {
  core_.state->Look(SystemClock().SteadyNs());
  const auto& request = parser_->get();
  // Those of an earlier web.yml get their last answer, by the rules of the new one.
  close_ = !request.keep_alive() || core_.state->current() != state_;
  if (admission_ != Admission::kServe) {
    bool total = admission_ == Admission::kRefuseTotal;
    Refuse(total ? 503 : 429,
           total ? "Too many connections (metrics.max_connections).\n"
                 : "Too many connections from your address "
                   "(metrics.max_connections_per_address).\n",
           {{"Retry-After", "10"}});
    return;
  }
  if (!parser_->is_done()) {
    RefuseBad(413, std::string(kNoBodies));
    return;
  }
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Send({405, "text/plain; charset=utf-8", "Only GET and HEAD are answered here.\n"},
         {{"Allow", "GET, HEAD"}});
    return;
  }
  std::optional<HttpTarget> target =
      ParseTarget({request.target().data(), request.target().size()});
  if (!target) {
    RefuseBad(400, "The request target must be a path, as in GET /metrics.\n");
    return;
  }
  Authorize(std::move(*target));
}

void WebConnection::Authorize(HttpTarget target) {
  const WebUsers& users = core_.state->current()->config.users;
  if (users.empty() || core_.open_paths.contains(target.path)) {
    Dispatch(target);
    return;
  }
  auto turn_away = [](WebConnection& self) {
    self.core_.unauthorized.fetch_add(1, std::memory_order_relaxed);
    self.Send({401, "text/plain; charset=utf-8", "A user and a password are needed.\n"},
              {{"WWW-Authenticate", "Basic realm=\"profd\", charset=\"UTF-8\""}});
  };
  beast::string_view header = parser_->get()[http::field::authorization];
  std::optional<BasicLogin> login = ParseBasicLogin({header.data(), header.size()});
  if (!login) {
    turn_away(*this);
    return;
  }
  PasswordChecker::Answer answer = core_.passwords.Check(
      users, *login, address_, [self = shared_from_this(), target, turn_away](bool right) {
        right ? self->Dispatch(target) : turn_away(*self);
      });
  if (answer == PasswordChecker::Answer::kRight) {
    Dispatch(target);
  } else if (answer == PasswordChecker::Answer::kBusy) {
    core_.busy.fetch_add(1, std::memory_order_relaxed);
    Refuse(503, "Too many passwords to check at once.\n", {{"Retry-After", "5"}});
  }
}

void WebConnection::Dispatch(const HttpTarget& target) {
  auto handler = core_.handlers.find(target.path);
  if (handler == core_.handlers.end()) {
    std::string text = "There is nothing here. There is:\n";
    for (const auto& [path, unused] : core_.handlers) text += path + "\n";
    Send({404, "text/plain; charset=utf-8", std::move(text)});
    return;
  }
  beast::string_view agent = parser_->get()[http::field::user_agent];
  std::string buffer = core_.text_buffer.Take();
  Send(handler->second({target.path, target.query, address_,
                        {agent.data(), std::min(agent.size(), kMaxAgent)}, &buffer}));
  core_.text_buffer.Give(std::move(buffer));  // was not needed
}

// An answer after which the connection is closed, because of what was received or is still to be received.
void WebConnection::Refuse(int status, std::string text, HttpHeaders headers) {
  close_ = true;
  Send({status, "text/plain; charset=utf-8", std::move(text)}, std::move(headers));
}

void WebConnection::RefuseBad(int status, std::string text) {
  core_.bad_requests.fetch_add(1, std::memory_order_relaxed);
  Refuse(status, std::move(text));
}

// The body as it is sent; true when it is compressed.
bool WebConnection::Pack(std::string text) {
  buffer_of_body_ = &core_.text_buffer;
  body_ = std::move(text);
  if (body_.size() < kWorthCompressing || !parser_) return false;
  beast::string_view accepts = parser_->get()[http::field::accept_encoding];
  if (!AcceptsGzip({accepts.data(), accepts.size()})) return false;
  std::string packed = core_.packed_buffer.Take();
  if (!core_.gzip.Compress(body_, &packed)) return false;
  core_.text_buffer.Give(std::move(body_));
  buffer_of_body_ = &core_.packed_buffer;
  body_ = std::move(packed);
  return true;
}

void WebConnection::Send(WebResponse response, HttpHeaders headers) {
  headers.emplace_back("Content-Type", response.content_type);
  if (response.body.size() >= kWorthCompressing) headers.emplace_back("Vary", "Accept-Encoding");
  if (Pack(std::move(response.body))) headers.emplace_back("Content-Encoding", "gzip");
  HttpHeaders safe = {{"Cache-Control", "no-store"},
                      {"Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"}};
  bool old_client = parser_ && parser_->is_header_done() && parser_->get().version() < 11;
  if (close_) {
    safe.emplace_back("Connection", "close");
  } else if (old_client) {
    safe.emplace_back("Connection", "keep-alive");
  }
  head_ = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Length: {}\r\n", response.status,
                      ReasonOf(response.status), HttpDate(SystemClock().WallNs() / kNsPerSecond),
                      body_.size());
  for (const HttpHeaders& table :
       {std::move(headers),
        MergeHeaders(std::move(safe), core_.state->current()->config.headers)}) {
    for (const auto& [name, value] : table) {
      fmt::format_to(std::back_inserter(head_), "{}: {}\r\n", name, value);
    }
  }
  head_ += "\r\n";
  stream_.expires_after(kWriteDeadline);
  OnStream([this](auto& stream) {
    const std::array<asio::const_buffer, 2> all = {
        asio::buffer(head_), IsHead() ? asio::const_buffer() : asio::buffer(body_)};
    asio::async_write(stream, all, [self = shared_from_this()](error_code error, size_t) {
      self->OnSent(error);
    });
  });
}

void WebConnection::OnSent(error_code error) {
  // A long answer is not kept in memory while the client rests, but for one.
  buffer_of_body_->Give(std::exchange(body_, {}));
  if (Failed(error)) return;
  core_.requests.fetch_add(1, std::memory_order_relaxed);
  close_ ? Close() : AwaitRequest();
}

void WebConnection::Close() {
  stream_.expires_after(kCloseDeadline);
  if (ssl_) {
    ssl_->async_shutdown([self = shared_from_this()](error_code) {});
    return;
  }
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  // Closing with bytes unread would reset the connection, and the answer could get lost on the way.
  constexpr size_t kMaxDrained = 256 * 1024;
  Drain(kMaxDrained);
}

void WebConnection::Drain(size_t left) {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this(), left](error_code error, size_t count) {
                            if (!error && count < left) self->Drain(left - count);
                          });
}

}  // namespace

void ServeWebConnection(WebCore& core, asio::ip::tcp::socket socket, std::string address,
                        Admission admission) {
  std::make_shared<WebConnection>(core, std::move(socket), std::move(address), admission)->Start();
}

}  // namespace profd
