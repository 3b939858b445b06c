#include "daemon/push/http_post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>

#include "base/clock.h"
#include "daemon/push/push_test_support.h"

namespace profd {
namespace {

using profd::testing::BodyOf;
using profd::testing::Receiver;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PushUrl, Parts) {
  const struct {
    std::string_view text;
    bool tls;
    std::string_view host;
    int port;
    std::string_view target;
    std::string_view authority;
  } kCases[] = {
      {"http://collector:4318", false, "collector", 4318, "/", "collector:4318"},
      {"http://10.0.0.1/api/v1/write", false, "10.0.0.1", 80, "/api/v1/write", "10.0.0.1"},
      {"https://p.example/w?x=1", true, "p.example", 443, "/w?x=1", "p.example"},
      {"https://[fd00::7]:9090/w", true, "fd00::7", 9090, "/w", "[fd00::7]:9090"},
      {"http://h?x", false, "h", 80, "/?x", "h"},
  };
  for (const auto& c : kCases) {
    Result<PushUrl> url = ParsePushUrl(c.text, "k");
    ASSERT_TRUE(url.ok()) << url.status().message();
    EXPECT_EQ(url->tls, c.tls);
    EXPECT_EQ(url->host, c.host);
    EXPECT_EQ(url->port, c.port);
    EXPECT_EQ(url->target, c.target);
    EXPECT_EQ(url->Authority(), c.authority);
  }
  for (std::string_view text : {"", "collector:4318", "ftp://x", "http://", "http://:80", "http://h:0", "http://h:x",
                                "http://h:70000", "http://u:p@h/", "http://h/a b", "http://h/#f", "http://[::1",
                                "http://[::1]x", "http://h/\r\nX: y"}) {
    Result<PushUrl> url = ParsePushUrl(text, "push.otlp_url");
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_THAT(url.status().message(), HasSubstr("push.otlp_url"));
  }
}

PostResult PostTo(uint16_t port, int64_t ms = 20'000, std::string_view body = "body", int wake = -1) {
  HttpPoster poster({});
  PushUrl url{false, "127.0.0.1", port, "/w"};
  return poster.Post(url, "X-One: 1\r\n", body, SystemClock().SteadyNs() + ms * kNsPerMs, wake);
}

TEST(HttpPoster, SendsWhatItIsGiven) {
  Receiver receiver({"HTTP/1.1 204 No Content\r\n\r\n"});
  const std::string body(3'000'000, 'x');
  PostResult result = PostTo(receiver.port(), 20'000, body);
  EXPECT_EQ(result.reason, kPushAnswer) << result.detail;
  EXPECT_EQ(result.status, 204);
  const std::string request = receiver.Requests(1)[0];
  EXPECT_THAT(request, StartsWith("POST /w HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(receiver.port())));
  EXPECT_THAT(request, HasSubstr("\r\nX-One: 1\r\n"));
  EXPECT_EQ(BodyOf(request), body);
}

TEST(HttpPoster, AnswersAreTakenApart) {
  Receiver receiver({"HTTP/1.1 503 Busy\r\nretry-after: 7\r\nContent-Type: text/plain\r\n\r\ntoo much\nmore",
                     "HTTP/1.0 400 Bad Request\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
                     "SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 2\r\n\r\n"});
  PostResult busy = PostTo(receiver.port());
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.retry_after_s, 7);
  EXPECT_THAT(busy.detail, HasSubstr("503 Busy: too much"));
  PostResult bad = PostTo(receiver.port());
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.retry_after_s, 0);
  EXPECT_EQ(PostTo(receiver.port()).reason, kPushBroken);
  EXPECT_EQ(PostTo(receiver.port()).reason, kPushBroken);
}

// RFC 9110 10.2.3 has two forms of Retry-After, and 15.2 answers that come before the real one.
TEST(HttpPoster, DatesAndInterimAnswers) {
  Receiver receiver({"HTTP/1.1 503 Busy\r\nRetry-After: Thu, 31 Dec 2099 23:59:59 GMT\r\n\r\n",
                     "HTTP/1.1 503 Busy\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
                     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nX: y\r\n\r\n"
                     "HTTP/1.1 204 No Content\r\n\r\n",
                     "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"});
  constexpr int64_t kLastSecondOf2099 = 4102444799;
  const int64_t wait_s = kLastSecondOf2099 - SystemClock().WallNs() / kNsPerSecond;
  const int64_t future_s = PostTo(receiver.port()).retry_after_s;
  EXPECT_LE(future_s, wait_s);
  EXPECT_GT(future_s, wait_s - 60);
  EXPECT_EQ(PostTo(receiver.port()).retry_after_s, 0);
  EXPECT_EQ(PostTo(receiver.port()).status, 204);
  EXPECT_EQ(PostTo(receiver.port()).reason, kPushBroken);
  EXPECT_EQ(PostTo(receiver.port()).status, 101);
}

TEST(HttpPoster, ProtobufIsReadToItsEnd) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n";
  Receiver receiver({head + "Content-Length: 3\r\n\r\nabc", head + "Content-Length: 30\r\n\r\nabc",
                     head + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"});
  for (int i = 0; i < 3; ++i) {
    const PostResult result = PostTo(receiver.port());
    EXPECT_EQ(result.status, 200);
    EXPECT_EQ(result.protobuf, "abc") << "the second breaks off: it is an answer all the same";
  }
  EXPECT_EQ(PostTo(receiver.port()).protobuf, "");
}

TEST(HttpPoster, WaitsNoLongerThanItMay) {
  Receiver silent({""});
  const int64_t begin = SystemClock().SteadyNs();
  EXPECT_EQ(PostTo(silent.port(), 200).reason, kPushTimeout);
  EXPECT_GE(SystemClock().SteadyNs() - begin, 200 * kNsPerMs);
  UniqueFd wake(::eventfd(1, EFD_CLOEXEC));
  EXPECT_EQ(PostTo(silent.port(), 60'000, "body", wake.get()).reason, kPushStopped);
}

TEST(HttpPoster, NoServerListens) {
  // Bound, so that it is no other process's, but not listening.
  const UniqueFd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(bound.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(bound.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  PostResult result = PostTo(ntohs(address.sin_port));
  EXPECT_EQ(result.reason, kPushConnect);
  EXPECT_THAT(result.detail, HasSubstr("refused"));
}

TEST(HttpPoster, PlainTextWhereTlsIsWanted) {
  Receiver receiver({"HTTP/1.1 400 Bad Request\r\n\r\n"});
  HttpPoster poster({});
  PushUrl url{true, "127.0.0.1", receiver.port(), "/"};
  // The receiver waits for an end of the head that never comes.
  PostResult result = poster.Post(url, "", "", SystemClock().SteadyNs() + 300 * kNsPerMs, -1);
  EXPECT_NE(result.reason, kPushAnswer);
}

TEST(HttpPoster, FilesOfTlsAreCheckedBefore) {
  EXPECT_TRUE(HttpPoster::Check({}).ok());
  EXPECT_EQ(HttpPoster::Check({"/nowhere/ca.crt", "", ""}).message(),
            "push.ca = \"/nowhere/ca.crt\": No such file or directory");
  EXPECT_THAT(HttpPoster::Check({"", "/nowhere/c", ""}).message(), HasSubstr("push.key"));
  EXPECT_EQ(HttpPoster::Check({"", "/nowhere/c", "/nowhere/k"}).message(),
            "push.certificate = \"/nowhere/c\": No such file or directory");
}

}  // namespace
}  // namespace profd
