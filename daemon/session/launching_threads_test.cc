#include "daemon/session/launching_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace profd {
namespace {

using attach::ApiLevel;
using ::testing::ElementsAre;

constexpr int64_t kNow = 1'000 * kNsPerSecond;
constexpr pid_t kPid = 4242;
constexpr uint64_t kAttached = 7;

class LaunchingThreadsTest : public ::testing::Test {
 protected:
  LaunchingThreadsTest()
      : launching_([this](uint64_t attach_id, std::function<void(Result<ProcessThreads>)> done) {
          looks_.push_back(attach_id);
          done_ = std::move(done);
        }) {}

  void Calls(uint32_t thread, size_t count, ApiLevel level = ApiLevel::kNode, int64_t now_ns = kNow) {
    std::vector<attach::ApiRecord> calls(count);
    for (attach::ApiRecord& call : calls) {
      call.thread = thread;
      call.level = static_cast<uint16_t>(level);
    }
    const ActivityFrame frame{attach::ActivityType::kApi, static_cast<uint16_t>(count), 0, std::as_bytes(std::span(calls))};
    launching_.Take({kAttached, kPid, {}, {&frame, 1}}, now_ns);
  }
  // Thread 101 of the process is 11 inside its container, and so on.
  static ProcessThreads Threads(const std::vector<std::string>& cpus) {
    ProcessThreads all;
    for (size_t i = 0; i < cpus.size(); ++i) {
      ThreadFacts& facts = all.threads.emplace_back();
      facts.thread = static_cast<pid_t>(101 + i);
      facts.inner = static_cast<pid_t>(11 + i);
      facts.cpus = cpus[i];
    }
    return all;
  }

  std::vector<uint64_t> looks_;
  std::function<void(Result<ProcessThreads>)> done_;
  LaunchingThreads launching_;
};

TEST_F(LaunchingThreadsTest, TheOneWithMostCalls) {
  Calls(11, 2);
  EXPECT_THAT(looks_, ElementsAre(kAttached));
  Calls(12, 5);
  Calls(11, 2);
  EXPECT_EQ(launching_.CpusOf(kPid), "");
  done_(Threads({"0-3", "64-67"}));
  EXPECT_EQ(launching_.CpusOf(kPid), "64-67");
  EXPECT_EQ(launching_.CpusOf(kPid + 1), "");
}

TEST_F(LaunchingThreadsTest, CallsThatLaunchNothingDoNotCount) {
  Calls(11, 100, ApiLevel::kAcl);
  Calls(0, 100);
  EXPECT_THAT(looks_, ElementsAre());
  Calls(12, 1, ApiLevel::kRuntime);
  done_(Threads({"0-3", "64-67"}));
  EXPECT_EQ(launching_.CpusOf(kPid), "64-67");
}

TEST_F(LaunchingThreadsTest, LooksAgainLessAndLessOften) {
  for (int64_t second = 0; second < 1800; ++second) Calls(11, 1, ApiLevel::kNode, kNow + second * kNsPerSecond);
  // After 2, 4, 8, ... 256 s: at 0, 2, 6, 14, 30, 62, 126, 254, 510 s, then every 300 s.
  EXPECT_EQ(looks_.size(), 13u);
  done_(Threads({"8"}));
  EXPECT_EQ(launching_.CpusOf(kPid), "8");
  done_(NotFound("the process has ended"));
  EXPECT_EQ(launching_.CpusOf(kPid), "8") << "what was known stays";
  done_(Threads({}));
  EXPECT_EQ(launching_.CpusOf(kPid), "8") << "the thread has ended";
}

TEST_F(LaunchingThreadsTest, ManyThreads) {
  for (uint32_t i = 0; i < 10'000; ++i) Calls(1000 + i, 1);
  Calls(1001, 1);
  ProcessThreads all;
  all.threads.push_back({});
  all.threads[0].inner = 1001;
  all.threads[0].cpus = "5";
  done_(all);
  EXPECT_EQ(launching_.CpusOf(kPid), "5");
}

TEST_F(LaunchingThreadsTest, AnAnswerAfterItsEnd) {
  Calls(11, 1);
  auto done = std::exchange(done_, nullptr);
  launching_ = LaunchingThreads(nullptr);
  done(Threads({"0-3"}));
  EXPECT_EQ(launching_.CpusOf(kPid), "");
}

}  // namespace
}  // namespace profd
