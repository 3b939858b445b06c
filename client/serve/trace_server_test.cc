#include "client/serve/trace_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "client/serve/test_support.h"
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
    std::string request = line + " HTTP/1.1\r\nhost: " + host + "\r\n";
    if (!origin.empty()) request += "Origin: " + origin + "\r\n";
    request += "\r\n";
    const UniqueFd client = ConnectTo(server_->port());
    SendText(client, request);
    return Rest(client);
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
