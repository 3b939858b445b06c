#include "client/serve/web_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client/json.h"
#include "client/serve/test_support.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WebServerTest : public ::testing::Test {
 protected:
  WebServerTest() {
    auto server = WebServer::Open("127.0.0.1", 0, [this](const WebRequest& request) { return handler_(request); });
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->Run([this] { return !stop_.load(); }); });
  }
  ~WebServerTest() override {
    stop_ = true;
    thread_.join();
  }

  UniqueFd Connect() const { return ConnectTo(server_->port()); }
  std::string Ask(const std::string& request) const {
    const UniqueFd client = Connect();
    SendText(client, request);
    return Rest(client);
  }

  // In the one form that clients of the API parse.
  static void ExpectError(const std::string& answer, int status, const std::string& code, const std::string& message) {
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(status) + " "));
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
    const size_t head = answer.find("\r\n\r\n");
    ASSERT_NE(head, std::string::npos);
    const Json body = Json::parse(answer.substr(head + 4));
    EXPECT_EQ(body["error"]["code"], code);
    EXPECT_THAT(body["error"]["message"].get<std::string>(), HasSubstr(message));
    EXPECT_EQ(body["error_msg"], body["error"]["message"]);
  }

  std::function<WebAnswer(const WebRequest&)> handler_ = [](const WebRequest&) { return WebAnswer{200, "text/plain", "fine"}; };
  std::unique_ptr<WebServer> server_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
};

TEST_F(WebServerTest, TheHandlerGetsTheRequest) {
  WebRequest got;
  handler_ = [&got](const WebRequest& request) {
    got = request;
    return WebAnswer{404, "text/plain", "no", {{"X-Mine", "1"}}};
  };
  const std::string answer = Ask("POST /a%20b/c+d?x=1%262&y=a+b&z HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer, HasSubstr("X-Mine: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), "no");
  EXPECT_EQ(got.method, "POST");
  EXPECT_EQ(got.path, "/a b/c+d");
  EXPECT_EQ(got.body, "body");
  EXPECT_EQ(got.Query("x"), "1&2");
  EXPECT_EQ(got.Query("y"), "a b");
  EXPECT_EQ(got.Query("z"), "");
  EXPECT_EQ(got.Header("host"), "h");
  EXPECT_EQ(got.Header("authorization"), "Bearer t");
}

TEST_F(WebServerTest, RefusesLongOrInvalidRequests) {
  const std::string long_header = "GET /api/runs HTTP/1.1\r\nHost: h\r\nX: " + std::string(WebServer::kMaxHeader, 'x') + "\r\n\r\n";
  ExpectError(Ask(long_header), 431, "invalid_argument", "the header of the request is too long");
  ExpectError(Ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999\r\n\r\n"), 413, "invalid_argument", "the body of the request is too long");
  ExpectError(Ask("nonsense\r\n\r\n"), 400, "invalid_argument", "no valid HTTP request");
}

TEST_F(WebServerTest, AFileWithoutASizeIsAnInternalError) {
  handler_ = [](const WebRequest&) {
    WebAnswer answer{200, "text/plain", ""};
    answer.file = UniqueFd(1 << 30);  // more than any process can have open: EBADF
    return answer;
  };
  ExpectError(Ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 500, "internal", "Bad file descriptor");
}

TEST_F(WebServerTest, ConnectionsAreLimitedAndSilentOnesHarmNoOther) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < WebServer::kMaxConnections - 1; ++i) {
    silent.push_back(Connect());
    SendText(silent.back(), "GET / HTT");
  }
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), HasSubstr("fine"));
  silent.push_back(Connect());
  // The server may be late to see who came, and who went; one that is not served may be closed before it has asked.
  const auto ask = [this] {
    const UniqueFd client = Connect();
    const std::string request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    return send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0 ? Rest(client) : std::string();
  };
  std::string last = "not asked";
  for (int i = 0; i < 1000 && !last.empty(); ++i) last = ask();
  EXPECT_EQ(last, "") << "more than kMaxConnections were answered";
  silent.clear();
  for (int i = 0; i < 1000 && last.empty(); ++i) last = ask();
  EXPECT_THAT(last, HasSubstr("fine"));
}

TEST_F(WebServerTest, ALargeAnswerIsCompleteForASlowReader) {
  const std::string large(20'000'000, 'x');
  handler_ = [&large](const WebRequest&) { return WebAnswer{200, "text/plain", large}; };
  const UniqueFd client = Connect();
  SendText(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string answer(1000, '\0');
  EXPECT_EQ(recv(client.get(), answer.data(), answer.size(), MSG_WAITALL), 1000);
  answer += Rest(client);
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, large.size());
}

TEST(DecodedUrl, EscapesAreTakenAndOthersStay) {
  EXPECT_EQ(DecodedUrl("%41%2fb+c", false), "A/b+c");
  EXPECT_EQ(DecodedUrl("%41%2Fb+c", true), "A/b c");
  EXPECT_EQ(DecodedUrl("100%", true), "100%");
  EXPECT_EQ(DecodedUrl("%4", true), "%4");
  EXPECT_EQ(DecodedUrl("%zz", true), "%zz");
}

}  // namespace
}  // namespace profd::client
