#include "daemon/web/web_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "base/fd.h"

namespace profd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// "secret".
constexpr const char* kUsers =
    "basic_auth_users:\n"
    "  ann: $2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
constexpr const char* kRight = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
constexpr const char* kWrong = "Authorization: Basic YW5uOm5vbmU=\r\n";

class WebServerTest : public ::testing::Test {
 protected:
  void Serve(WebServer::Options options = {}) {
    options.address = "127.0.0.1:0";
    WebServer::Handler large = [](const WebRequest&) {
      return WebResponse{200, "text/plain", std::string(1 << 20, 'x')};
    };
    WebServer::Handler echo = [](const WebRequest& request) {
      return WebResponse{200, "text/plain",
                         std::string(request.path) + "?" + std::string(request.query) + " " +
                             std::string(request.peer) + " " + std::string(request.agent)};
    };
    auto server = WebServer::Listen(
        std::move(options), {{"/echo", echo}, {"/large", large}, {"/healthz", echo}});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
  }

  UniqueFd Connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(server_->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  UniqueFd Send(const std::string& text) const {
    UniqueFd fd = Connect();
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return fd;
  }
  static std::string ReadAll(const UniqueFd& fd) {
    std::string text;
    std::array<char, 65536> piece{};
    for (ssize_t got = 0; (got = ::recv(fd.get(), piece.data(), piece.size(), 0)) > 0;) {
      text.append(piece.data(), static_cast<size_t>(got));
    }
    return text;
  }
  std::string Get(const std::string& path, const std::string& headers = "") const {
    return ReadAll(Send("GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n"));
  }
  static void Until(const std::function<bool()>& condition) {
    while (!condition()) std::this_thread::yield();
  }

  std::unique_ptr<WebServer> server_;
};

class WebFile {
 public:
  explicit WebFile(const std::string& text) {
    int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    UniqueFd owner(fd);
    std::ofstream(path_) << text;
  }
  ~WebFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "profd-web-XXXXXX";
};

TEST_F(WebServerTest, HandlersSeeTheRequest) {
  Serve();
  std::string answer = Get("/%65cho?a=%20b", "User-Agent: curious/1\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n/echo?a=%20b 127.0.0.1 curious/1"));
  EXPECT_THAT(Get("/none"), HasSubstr("/echo\n"));
  EXPECT_FALSE(server_->tls());
  EXPECT_FALSE(server_->authenticates());
  EXPECT_GE(server_->counters().requests, 2U);
}

TEST_F(WebServerTest, PasswordsAndOpenPaths) {
  WebFile file(kUsers);
  WebServer::Options options;
  options.web_config = file.path();
  Serve(options);
  EXPECT_TRUE(server_->authenticates());
  EXPECT_THAT(Get("/echo"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get("/echo", kWrong), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get("/echo", kRight), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/echo", kRight), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/none"), StartsWith("HTTP/1.1 401")) << "strangers do not learn what there is";
  EXPECT_EQ(server_->counters().unauthorized, 3U);
}

TEST_F(WebServerTest, ConnectionsBeyondTheLimitAreAnsweredAndCounted) {
  WebServer::Options options{.max_connections = 2, .max_connections_per_address = 16};
  Serve(options);
  UniqueFd first = Connect();
  UniqueFd second = Connect();
  Until([this] { return server_->counters().connections == 2; });
  EXPECT_THAT(Get("/echo"), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(server_->counters().refused_total, 1U);
  first.Reset();
  Until([this] { return server_->counters().connections == 1; });
  EXPECT_THAT(Get("/echo"), StartsWith("HTTP/1.1 200"));
}

TEST_F(WebServerTest, ClientsThatVanishLeaveNothingBehind) {
  WebServer::Options options;
  options.max_connections = options.max_connections_per_address = 1000;
  Serve(options);
  for (int i = 0; i < 10; ++i) {
    (void)Connect();
    (void)Send("GET /echo HT");
    (void)Send("GET /large HTTP/1.1\r\n\r\n");
    (void)Send("GET /large HTTP/1.1\r\n\r\nGET /large HTTP/1.1\r\n\r\n");
  }
  EXPECT_EQ(Get("/large").size() / (1 << 20), 1U);
  Until([this] { return server_->counters().connections == 0; });
}

TEST_F(WebServerTest, StopsWithOpenConnections) {
  WebFile file(kUsers);
  WebServer::Options options;
  options.web_config = file.path();
  Serve(options);
  std::vector<UniqueFd> clients;
  clients.push_back(Connect());
  clients.push_back(Send("GET /ec"));
  clients.push_back(Send(std::string("GET /large HTTP/1.1\r\n") + kRight + "\r\n"));
  for (int i = 0; i < 8; ++i) {
    clients.push_back(Send(std::string("GET /echo HTTP/1.1\r\n") + kWrong + "\r\n"));
  }
  Until([this] { return server_->counters().connections > 4; });
  server_->Stop();
  // Answered with 401 a moment ago.
  const std::string late = "GET /echo HTTP/1.1\r\n\r\n";
  EXPECT_EQ(::send(clients[0].get(), late.data(), late.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(late.size()));
  server_.reset();
  EXPECT_EQ(ReadAll(clients[0]), "");
  EXPECT_EQ(ReadAll(clients[1]), "");  // never asked a complete question
  for (const UniqueFd& client : clients) (void)ReadAll(client);  // all have been closed: it ends
}

TEST_F(WebServerTest, WrongFilesAndAddresses) {
  WebFile file("what: 1\nelse: 2\n");
  WebServer::Options options{.address = "127.0.0.1:0", .web_config = file.path()};
  std::string why = WebServer::Listen(options, {}).status().message();
  EXPECT_THAT(why, HasSubstr(":1: unknown key what\n"));
  EXPECT_THAT(why, HasSubstr(":2: unknown key else"));
  std::vector<std::string> problems;
  CheckWebConfig(file.path(), &problems);
  EXPECT_EQ(problems.size(), 2U);
  Serve();
  options.web_config.clear();
  options.address = "127.0.0.1:" + std::to_string(server_->port());
  EXPECT_THAT(WebServer::Listen(options, {}).status().message(), HasSubstr("--metrics-listen"));
}

}  // namespace
}  // namespace profd
