#include "client/serve/web_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>

#include "base/text.h"
#include "client/serve/error_answer.h"

namespace profd::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

WebRequest RequestOf(const http::request<http::string_body>& from) {
  WebRequest request;
  request.method = std::string(View(from.method_string()));
  request.body = from.body();
  for (const auto& field : from) {
    request.headers[LowerCase(View(field.name_string()))] = std::string(View(field.value()));
  }
  request.SetTarget(View(from.target()));
  return request;
}

struct Shared {
  WebServer::Handler handler;
  std::atomic<int> connections{0};
};

// One request and its answer. Its handlers run one after the other.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared* shared) : stream_(std::move(socket)), shared_(*shared) { ++shared_.connections; }
  ~Connection() { --shared_.connections; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start() {
    parser_.header_limit(WebServer::kMaxHeader);
    parser_.body_limit(WebServer::kMaxBody);
    stream_.expires_after(std::chrono::seconds(WebServer::kSeconds));
    http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](error_code error, size_t) { self->OnRead(error); });
  }

 private:
  void OnRead(error_code error) {
    if (!error) {
      // The handler may take longer than a client may wait with a request.
      stream_.expires_never();
      return Send(shared_.handler(RequestOf(parser_.get())));
    }
    if (error == http::error::body_limit) return Send(ErrorAnswer(413, "invalid_argument", "the body of the request is too long"));
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return Send(ErrorAnswer(431, "invalid_argument", "the header of the request is too long"));
    }
    const bool bad = error.category() == http::make_error_code(http::error::bad_method).category();
    if (bad && error != http::error::end_of_stream && error != http::error::partial_message) {
      Send(ErrorAnswer(400, "invalid_argument", "no valid HTTP request: " + error.message()));
    }
  }

  void Send(WebAnswer answer) {
    sent_ = std::move(answer.sent);
    error_code error;
    if (answer.file.valid()) {
      beast::file_posix file;
      file.native_handle(answer.file.Release());
      auto& response = file_response_.emplace();
      response.body().reset(std::move(file), error);
      if (!error) return Write(answer, &response);
      answer = ErrorAnswer(500, "internal", error.message());
    }
    auto& response = response_.emplace();
    response.body() = std::move(answer.body);
    Write(answer, &response);
  }

  template <class Body>
  void Write(const WebAnswer& answer, http::response<Body>* response) {
    response->version(11);
    response->result(static_cast<unsigned>(answer.status));
    response->set(http::field::content_type, answer.type);
    response->set(http::field::cache_control, "no-store");
    response->set("X-Content-Type-Options", "nosniff");
    response->set("Referrer-Policy", "no-referrer");
    response->set("X-Frame-Options", "DENY");
    for (const auto& [name, value] : answer.headers) response->set(name, value);
    response->keep_alive(false);
    response->prepare_payload();
    auto& serializer = [&]() -> http::response_serializer<Body>& {
      if constexpr (std::is_same_v<Body, http::file_body>) {
        return file_serializer_.emplace(*response);
      } else {
        return serializer_.emplace(*response);
      }
    }();
    WriteSome(&serializer);
  }

  // A client that takes something now and then may take as long as it likes.
  template <class Serializer>
  void WriteSome(Serializer* serializer) {
    stream_.expires_after(std::chrono::seconds(WebServer::kSeconds));
    http::async_write_some(stream_, *serializer, [self = shared_from_this(), serializer](error_code error, size_t) {
      if (!error && !serializer->is_done()) return self->WriteSome(serializer);
      if (!error && self->sent_) self->sent_();
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_{2 * WebServer::kMaxHeader + WebServer::kMaxBody};
  http::request_parser<http::string_body> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::optional<http::response<http::file_body>> file_response_;
  std::optional<http::response_serializer<http::file_body>> file_serializer_;
  std::function<void()> sent_;
};

class Server : public WebServer {
 public:
  explicit Server(Handler handler) { shared_.handler = std::move(handler); }

  Status Listen(const std::string& address, uint16_t port) {
    error_code error;
    const asio::ip::address ip = asio::ip::make_address(address, error);
    if (error) return InvalidArgument(address + ": not an IP address");
    const tcp::endpoint wanted(ip, port);
    acceptor_.open(wanted.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(wanted, error);
    if (!error) acceptor_.listen(kMaxConnections, error);
    host_ = ip.is_v6() ? "[" + ip.to_string() + "]" : ip.to_string();
    if (error) return Status::FromErrno(error.value(), "listening on " + host_ + ":" + std::to_string(port));
    port_ = acceptor_.local_endpoint().port();
    return Status::Ok();
  }

  uint16_t port() const override { return port_; }
  std::string Address() const override { return host_ + ":" + std::to_string(port_); }

  void Run(const std::function<bool()>& go_on) override {
    Accept();
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([this] { io_.run(); });
    while (go_on()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    io_.stop();
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void Accept() {
    acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error && shared_.connections < kMaxConnections) std::make_shared<Connection>(std::move(socket), &shared_)->Start();
      if (!error) return Accept();
      // Out of descriptors, for example: not at once again.
      pause_.expires_after(std::chrono::milliseconds(100));
      pause_.async_wait([this](error_code stopped) {
        if (!stopped) Accept();
      });
    });
  }

  Shared shared_;  // outlives the connections, which io_ holds
  asio::io_context io_{kThreads};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  std::string host_;
  uint16_t port_ = 0;
};

}  // namespace

void WebRequest::SetTarget(std::string_view target) {
  std::string_view part;
  NextPart(&target, '?', &part);
  path = DecodedUrl(part, false);
  for (std::string_view value; NextPart(&target, '&', &value);) {
    std::string_view name;
    NextPart(&value, '=', &name);
    query[DecodedUrl(name, true)] = DecodedUrl(value, true);
  }
}

std::string_view WebRequest::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string_view() : found->second;
}

std::string_view WebRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

std::string DecodedUrl(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view hex = text.substr(i + 1, 2);
    uint8_t byte = 0;
    if (text[i] == '%' && hex.size() == 2 && std::from_chars(hex.data(), hex.data() + 2, byte, 16).ptr == hex.data() + 2) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

Result<std::unique_ptr<WebServer>> WebServer::Open(const std::string& address, uint16_t port, Handler handler) {
  auto server = std::make_unique<Server>(std::move(handler));
  if (Status listens = server->Listen(address, port); !listens.ok()) return listens;
  return std::unique_ptr<WebServer>(std::move(server));
}

}  // namespace profd::client
