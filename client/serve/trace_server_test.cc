#include "client/serve/trace_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TraceServerTest : public ::testing::Test {
 protected:
  TraceServerTest() {
    std::ofstream(dir_ / "t.perfetto-trace") << content_;
    auto server = TraceServer::Open(dir_ / "t.perfetto-trace", 0);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
    thread_ = std::thread([this] {
      taken_ = server_->Serve(60'000, [this] { return !stop_.load(); });
    });
  }
  ~TraceServerTest() override { Join(); }
  void Join() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // The whole answer to a request with this first line and these headers.
  std::string Ask(const std::string& line, const std::string& origin, std::string host = {}) {
    if (host.empty()) host = "127.0.0.1:" + std::to_string(server_->port());
    UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::string request = line + " HTTP/1.1\r\nhost: " + host + "\r\n";
    if (!origin.empty()) request += "Origin: " + origin + "\r\n";
    request += "\r\n";
    EXPECT_EQ(send(client.get(), request.data(), request.size(), 0),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t count = 0; (count = recv(client.get(), buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(count));
    }
    return answer;
  }

  TempDir dir_;
  const std::string content_ = std::string(1'000'000, 'x') + "end";
  std::unique_ptr<TraceServer> server_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  bool taken_ = false;
};

TEST_F(TraceServerTest, PerfettoGetsTheFileOnce) {
  EXPECT_EQ(server_->Url(), "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:" +
                                std::to_string(server_->port()) + "/t.perfetto-trace");
  // What a browser asks first where a public page wants something of this machine.
  std::string answer = Ask("OPTIONS /t.perfetto-trace", kPerfettoOrigin);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Private-Network: true\r\n"));
  answer = Ask("GET /t.perfetto-trace", kPerfettoOrigin);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n"));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), content_);
  thread_.join();
  EXPECT_TRUE(taken_);
}

TEST_F(TraceServerTest, NoOtherClientGetsIt) {
  for (const std::string& answer :
       {Ask("GET /t.perfetto-trace", ""), Ask("GET /t.perfetto-trace", "https://example.org"),
        Ask("GET /t.perfetto-trace", kPerfettoOrigin, "attacker.example:9001"),
        Ask("GET /", kPerfettoOrigin), Ask("GET /../t.perfetto-trace", kPerfettoOrigin),
        Ask("POST /t.perfetto-trace", kPerfettoOrigin)}) {
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 40"));
    EXPECT_THAT(answer, Not(HasSubstr("xxxx")));
    EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
  }
  Join();
  EXPECT_FALSE(taken_);
}

TEST_F(TraceServerTest, ReportsAPortInUse) {
  auto second = TraceServer::Open(dir_ / "t.perfetto-trace", server_->port());
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(server_->port())));
  auto none = TraceServer::Open(dir_ / "none", 0);
  EXPECT_THAT(none.status().message(), HasSubstr("none"));
}

}  // namespace
}  // namespace profd::client
