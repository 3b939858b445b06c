#include "daemon/push/push_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class PushConfigTest : public ::testing::Test {
 protected:
  ~PushConfigTest() override { ::unlink(path_.c_str()); }
  void Headers(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
    config_.push_headers_file = path_;
  }
  PushConfig Make() {
    problems_.clear();
    return MakePushConfig(config_, &problems_);
  }

  DaemonConfig config_;
  std::vector<std::string> problems_;
  const std::string path_ = ::testing::TempDir() + "push_headers_" + std::to_string(::getpid());
};

TEST_F(PushConfigTest, OffByDefault) {
  config_.push_labels = {"wrong"};
  EXPECT_TRUE(Make().sinks.empty());
  EXPECT_THAT(problems_, ElementsAre());
}

TEST_F(PushConfigTest, BothReceivers) {
  config_.push_otlp_url = "http://collector:4318";
  config_.push_remote_write_url = "http://prometheus:9090/api/v1/write";
  config_.push_labels = {"cluster=a", "rack=r=1"};
  Headers("# who we are\nAuthorization: Bearer x\n\n  X-Scope-OrgID: 7  \n");
  PushConfig made = Make();
  EXPECT_THAT(problems_, ElementsAre());
  EXPECT_THAT(made.labels, ElementsAre(Pair("cluster", "a"), Pair("rack", "r=1")));
  ASSERT_EQ(made.sinks.size(), 2U);
  EXPECT_EQ(made.sinks[0].url.target, "/v1/metrics");
  EXPECT_THAT(made.sinks[0].headers, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_EQ(made.sinks[1].url.target, "/api/v1/write");
  EXPECT_THAT(made.sinks[1].headers, HasSubstr("Content-Encoding: snappy\r\n"));
  for (const PushSinkOptions& sink : made.sinks) {
    EXPECT_THAT(sink.headers, HasSubstr("\r\nAuthorization: Bearer x\r\nX-Scope-OrgID: 7\r\n"));
  }
}

TEST_F(PushConfigTest, EveryProblemIsNamed) {
  config_.push_otlp_url = "collector:4317";
  config_.push_remote_write_url = "http://h:0/";
  config_.push_labels = {"cluster", "=a", "a=", "__x=1", "1a=b"};
  Make();
  EXPECT_EQ(problems_.size(), 7U);
}

// A receiver of OTLP may refuse attributes with one key twice.
TEST_F(PushConfigTest, ALabelHasOneValue) {
  config_.push_otlp_url = "http://collector:4318";
  config_.push_labels = {"cluster=a", "rack=1", "cluster=b"};
  PushConfig made = Make();
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("push.labels: \"cluster=b\": this name was given a value before")));
  EXPECT_THAT(made.labels, ElementsAre(Pair("cluster", "a"), Pair("rack", "1")));
}

TEST_F(PushConfigTest, HeadersAreSecretAndOfOneLine) {
  config_.push_otlp_url = "http://collector:4318";
  for (const char* text : {"no colon\n", ": x\n", "A b: c\n", "A: b\x01\n"}) {
    Headers(text);
    Make();
    ASSERT_EQ(problems_.size(), 1U) << text;
    EXPECT_THAT(problems_[0], HasSubstr("line 1"));
    EXPECT_THAT(problems_[0], ::testing::Not(HasSubstr(": c")));
  }
  Headers("A: b\n", 0644);
  Make();
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_[0], HasSubstr("push.headers_file"));
}

}  // namespace
}  // namespace profd
