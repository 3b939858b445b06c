#include "client/clickhouse/clickhouse_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>

#include "base/http_connection.h"
#include "base/text.h"

namespace profd::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using SteadyTime = std::chrono::steady_clock::time_point;
using Request = http::request<http::span_body<const char>>;

constexpr uint32_t kMaxHead = 64 * 1024;
constexpr auto kSlice = std::chrono::milliseconds(100);
constexpr int kQueryTries = 2;

std::string EncodedUrl(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.';
    if (plain) encoded += c;
    else encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

// Errors of the server, not of what it was asked: it may work again later.
constexpr auto kPassing = std::to_array<int>({
    3,    // unexpected end of what another server sent
    32,   // the same
    159,  // in time
    160,  // too slow
    198,  // a name of another server
    202,  // too many queries at once
    209,  // another server is silent
    210,  // another server cannot be reached
    225,  // no ZooKeeper
    236,  // aborted, by its end
    241,  // memory
    242,  // a replica without ZooKeeper only reads
    243,  // space
    252,  // too many parts
    279,  // no server of a shard can be reached
    285,  // too few replicas
    286,  // no quorum
    319,  // ZooKeeper was lost during an insert
    394,  // the query was killed
    425,  // an error of its system
    999,  // ZooKeeper
    1000, 1001, 1002,  // of libraries
});

// All replicas of a shard were tried; the reasons are in lines behind it.
constexpr std::string_view kNoServer = "All connection tries failed";

// Without codes and stacks.
std::string_view FirstReason(std::string_view text) {
  for (const std::string_view mark : {"DB::Exception: ", "DB::NetException: "}) {
    const size_t found = text.find(mark);
    if (found == std::string_view::npos) continue;
    text.remove_prefix(found + mark.size());
    break;
  }
  for (const std::string_view end : {", e.what()", " (version ", "\n", "Stack trace"}) text = text.substr(0, text.find(end));
  return text;
}

// The different ones, of servers that were tried several times.
std::string ReasonsOf(std::string_view body) {
  body.remove_prefix(std::min(body.size(), body.find(kNoServer)));
  std::vector<std::string_view> reasons;
  for (std::string_view line; NextLine(&body, &line);) {
    const std::string_view reason = FirstReason(line);
    if (!reason.empty() && line.find(kNoServer) == std::string_view::npos && std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

// One statement on a connection of its own; this thread waits for each step until it is over.
class Exchange {
 public:
  Exchange(const ClickHouseUrl& url, const std::function<bool()>& go_on) : url_(url), connection_(url.host, url.port, go_on) {
    Allow(ClickHouseServer::kConnectSeconds);
  }

  Status Connect() {
    error_code error = connection_.Resolve();
    if (!error) error = connection_.Connect();
    return error ? Explain(error, "cannot be reached") : Status();
  }

  Status Handshake(asio::ssl::context& context) {
    if (!connection_.UseTls(context)) return InvalidArgument(url_.host + ": not a name for TLS");
    const error_code error = connection_.Handshake();
    if (!error) return {};
    if (const char* fault = connection_.CertificateFault()) {
      return Status(StatusCode::kUnauthenticated,
                    fmt::format("{}: its certificate: {}; --tls-ca names the authority that signed it", url_.Shown(), fault));
    }
    return Explain(error, "TLS");
  }

  Result<std::string> Send(const Request& request) {
    Allow(ClickHouseServer::kStatementSeconds);
    // A server that refuses may answer before it has read all, and hang up.
    const error_code broken = connection_.Do([&](auto& stream, auto done) { http::async_write(stream, request, done); });
    if (connection_.over()) return Explain(broken, "broken");
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.header_limit(kMaxHead);
    parser.body_limit(ClickHouseServer::kMaxAnswer);
    const error_code error = connection_.Do([&](auto& stream, auto done) { http::async_read(stream, buffer, parser, done); });
    if (error == http::error::body_limit) return ResourceExhausted(fmt::format("{}: the answer is too long; ask for fewer ranks (--ranks)", url_.Shown()));
    // With TLS, some servers end without a word; what came is complete by its own length.
    unanswered_ = error && !connection_.over() && !parser.got_some();
    if (error && !parser.is_done()) return Explain(broken ? broken : error, unanswered_ ? "the server ended the connection without an answer" : "the connection broke");
    std::string body = std::move(parser.get().body());
    const auto status = static_cast<int>(parser.get().result_int());
    // Exceptions after the first rows come in the body of a good answer.
    if (status < 300 && !body.starts_with("Code: ")) return body;
    const auto header = parser.get()["X-ClickHouse-Exception-Code"];
    const int code = ServerErrorCode({header.data(), header.size()}, body);
    return Status(StatusCodeOf(code, status), fmt::format("{}: {}", url_.Shown(), ServerErrorText(body.empty() ? fmt::format("HTTP status {}", status) : body)));
  }

  // The connection ended before the first byte of an answer.
  bool unanswered() const { return unanswered_; }

 private:
  void Allow(int seconds) { connection_.SetDeadline(std::chrono::steady_clock::now() + std::chrono::seconds(seconds)); }

  Status Explain(const error_code& error, std::string_view what) const {
    if (connection_.stopped()) return Status(StatusCode::kCancelled, "interrupted");
    if (connection_.timed_out()) return DeadlineExceeded(fmt::format("{}: no answer in time", url_.Shown()));
    return Unavailable(fmt::format("{}: {}: {}", url_.Shown(), what, error.message()));
  }

  const ClickHouseUrl& url_;
  HttpConnection connection_;
  bool unanswered_ = false;
};

}  // namespace

int ServerErrorCode(std::string_view header, std::string_view body) {
  constexpr std::string_view kMark = "Code: ";
  const size_t mark = body.find(kMark);
  if (header.empty() && mark != std::string_view::npos) header = body.substr(mark + kMark.size());
  int code = 0;
  std::from_chars(header.data(), header.data() + header.size(), code);
  return code;
}

StatusCode StatusCodeOf(int server_code, int http_status) {
  switch (server_code) {
    case 192:  // unknown user
    case 193:  // wrong password
    case 194:  // a password is required
    case 516:  // authentication failed
      return StatusCode::kUnauthenticated;
    case 164:  // read only
    case 497:  // not enough privileges
      return StatusCode::kPermissionDenied;
    case 60:  // unknown table, or database: nothing was loaded there
    case 81:
      return StatusCode::kNotFound;
    case 0:
      break;
    default:
      return std::ranges::find(kPassing, server_code) != kPassing.end() ? StatusCode::kUnavailable : StatusCode::kFailedPrecondition;
  }
  if (http_status == 401 || http_status == 403) return StatusCode::kUnauthenticated;
  return http_status >= 500 ? StatusCode::kUnavailable : StatusCode::kFailedPrecondition;
}

std::string ServerErrorText(std::string_view body) {
  constexpr size_t kMost = 500;
  if (body.find(kNoServer) != std::string_view::npos) return "no server of a shard can be used: " + ReasonsOf(body).substr(0, kMost);
  return std::string(FirstReason(body).substr(0, kMost));
}

struct ClickHouseServer::Tls {
  asio::ssl::context context{asio::ssl::context::tls_client};
};

ClickHouseServer::ClickHouseServer(ClickHouseUrl url, TlsFiles tls, std::function<bool()> go_on)
    : url_(std::move(url)), files_(std::move(tls)), go_on_(std::move(go_on)) {}
ClickHouseServer::~ClickHouseServer() = default;

Status ClickHouseServer::PrepareTls() {
  if (tls_ != nullptr) return {};
  auto made = std::make_unique<Tls>();
  const auto fault = [](std::string_view name, const std::string& path, const error_code& error) {
    return FailedPrecondition(fmt::format("--tls-{} {}: {}", name == "certificate" ? "cert" : name, path, error.message()));
  };
  RETURN_IF_ERROR(PrepareTlsClient(files_, fault, &made->context));
  tls_ = std::move(made);
  return {};
}

Result<std::string> ClickHouseServer::Send(std::string_view statement, std::string_view rows) {
  // Settings only where they matter: a user who may read and nothing else may not change any.
  if (rows.empty()) return Post("", statement, statement.starts_with("SELECT ") ? kQueryTries : 1);
  // An insert into a distributed table is over when all shards have it.
  return Post("&insert_distributed_sync=1&query=" + EncodedUrl(statement), rows);
}

Result<std::string> ClickHouseServer::SendToCluster(std::string_view statement, int wait_s) {
  return Post(fmt::format("&distributed_ddl_task_timeout={}", wait_s), statement);
}

Result<std::string> ClickHouseServer::Post(const std::string& settings, std::string_view body, int tries) {
  if (url_.tls) RETURN_IF_ERROR(PrepareTls());
  // An answer begins when the query is over.
  Request request(http::verb::post, "/?wait_end_of_query=1" + settings, 11);
  request.set(http::field::host, fmt::format("{}:{}", url_.host, url_.port));
  request.set(http::field::user_agent, "profctl");
  if (!url_.user.empty()) request.set("X-ClickHouse-User", url_.user);
  if (!url_.password.empty()) request.set("X-ClickHouse-Key", url_.password);
  request.body() = {body.data(), body.size()};
  request.prepare_payload();
  request.keep_alive(false);
  try {
    for (int left = tries;; --left) {
      Exchange exchange(url_, go_on_);
      RETURN_IF_ERROR(exchange.Connect());
      if (url_.tls) RETURN_IF_ERROR(exchange.Handshake(tls_->context));
      Result<std::string> answer = exchange.Send(request);
      if (left <= 1 || !exchange.unanswered()) return answer;
    }
  } catch (const boost::system::system_error& error) {
    // Its descriptors are made by constructors.
    return Unavailable(fmt::format("{}: {}", url_.Shown(), error.what()));
  }
}

void ClickHouseServer::Pause(int ms) {
  const SteadyTime end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end && (!go_on_ || go_on_())) std::this_thread::sleep_for(kSlice);
}

}  // namespace profd::client
