#include "daemon/push/push_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "daemon/push/push_test_support.h"

namespace profd {
namespace {

using profd::testing::BodyOf;
using profd::testing::Receiver;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\n\r\n";

PushSinkOptions OptionsFor(uint16_t port, int64_t interval_ms) {
  return {.name = "otlp", .url = {false, "127.0.0.1", port, "/"}, .interval_ns = interval_ms * kNsPerMs,
          .timeout_ns = 20 * kNsPerSecond, .queue_bytes = 1 << 20, .first_pause_ns = kNsPerMs};
}

// "0", "1", ...: a message each time.
PushSink::Take Numbers() {
  return [next = std::make_shared<int>(0)] {
    return std::vector<PushMessage>{{std::to_string((*next)++), 10}};
  };
}

// Messages once, then none.
class Once {
 public:
  explicit Once(std::vector<PushMessage> messages) : messages_(std::move(messages)) {}
  PushSink::Take Take() {
    return [this] {
      const std::scoped_lock lock(mutex_);
      ++takes_;
      taken_.notify_all();
      return std::exchange(messages_, {});
    };
  }
  // What was sent before it is counted: the sink's thread takes and sends by turns.
  void AwaitNextTake() {
    std::unique_lock lock(mutex_);
    taken_.wait(lock, [this, before = takes_] { return takes_ > before; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable taken_;
  std::vector<PushMessage> messages_;
  int takes_ = 0;
};

TEST(PushSink, SendsInOrderAtEveryInterval) {
  Receiver receiver({std::string(kOk)});
  PushSink sink(OptionsFor(receiver.port(), 20), Numbers());
  sink.Start();
  const std::vector<std::string> requests = receiver.Requests(5);
  ASSERT_GE(requests.size(), 5U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(BodyOf(requests[i]), std::to_string(i));
  EXPECT_GE(sink.stats().samples, 40U) << "with the fifth request four were answered";
  EXPECT_GT(sink.stats().last_success_s, 1'600'000'000);
  EXPECT_TRUE(sink.stats().failures.empty());
}

TEST(PushSink, RetriesFailedMessages) {
  Receiver receiver({"HTTP/1.1 503 Busy\r\n\r\n", "gibberish\r\n\r\n", std::string(kOk)});
  Once once({{"0", 10}});
  PushSink sink(OptionsFor(receiver.port(), 20), once.Take());
  sink.Start();
  const std::vector<std::string> requests = receiver.Requests(3);
  ASSERT_EQ(requests.size(), 3U);
  for (const std::string& request : requests) EXPECT_EQ(BodyOf(request), "0");
  once.AwaitNextTake();
  EXPECT_EQ(sink.stats().messages, 1U);
  EXPECT_THAT(sink.stats().failures, ElementsAre(Pair("broken", 1), Pair("status_503", 1)));
  EXPECT_TRUE(sink.stats().dropped_samples.empty());
  EXPECT_EQ(sink.stats().queued_bytes, 0U);
}

TEST(PushSink, DropsMessagesRefusedPermanently) {
  Receiver receiver({"HTTP/1.1 400 Bad Request\r\n\r\n", std::string(kOk)});
  PushSink sink(OptionsFor(receiver.port(), 20), Numbers());
  sink.Start();
  const std::vector<std::string> requests = receiver.Requests(2);
  ASSERT_GE(requests.size(), 2U);
  EXPECT_EQ(BodyOf(requests[1]), "1");
  EXPECT_THAT(sink.stats().dropped_samples, ElementsAre(Pair("rejected", 10)));
  EXPECT_THAT(sink.stats().failures, ElementsAre(Pair("status_400", 1)));
}

std::string Protobuf(std::string_view status, const std::string& body) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: application/x-protobuf\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(PushSink, CountsWhatAReceiverOfOtlpRejects) {
  // partial_success (1) with rejected_data_points (1) = 3 and error_message (2) = "old".
  const std::string partial("\x0a\x07\x08\x03\x12\x03old", 9);
  Receiver receiver({Protobuf("200 OK", partial), Protobuf("200 OK", "")});
  Once once({{"0", 10}, {"1", 10}});
  PushSink sink(OptionsFor(receiver.port(), 20), once.Take());
  sink.Start();
  const std::vector<std::string> requests = receiver.Requests(2);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(BodyOf(requests[1]), "1") << "what was taken in part is not sent again";
  once.AwaitNextTake();
  once.AwaitNextTake();
  EXPECT_EQ(sink.stats().messages, 2U);
  EXPECT_EQ(sink.stats().samples, 17U);
  EXPECT_THAT(sink.stats().dropped_samples, ElementsAre(Pair("rejected", 3)));
  EXPECT_TRUE(sink.stats().failures.empty());
}

TEST(PushSink, AFullQueueDropsTheOldest) {
  Receiver receiver({std::string(kOk)});
  PushSinkOptions options = OptionsFor(receiver.port(), 20);
  options.queue_bytes = 3000;
  std::vector<PushMessage> messages;
  for (uint64_t i = 0; i < 5; ++i) messages.push_back({std::to_string(i) + std::string(999, '.'), i + 1});
  Once once(messages);
  PushSink sink(options, once.Take());
  sink.Start();
  const std::vector<std::string> requests = receiver.Requests(3);
  ASSERT_EQ(requests.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(BodyOf(requests[i]), messages[i + 2].body);
  EXPECT_THAT(sink.stats().dropped_samples, ElementsAre(Pair("queue_full", 1 + 2)));
}

TEST(PushSink, AReceiverThatDoesNotAnswerIsAskedAgain) {
  Receiver receiver({"", std::string(kOk)});
  PushSinkOptions options = OptionsFor(receiver.port(), 20);
  options.timeout_ns = 100 * kNsPerMs;
  PushSink sink(options, Numbers());
  sink.Start();
  ASSERT_GE(receiver.Requests(2).size(), 2U);
  EXPECT_GE(sink.stats().failures["timeout"], 1U);
}

TEST(PushSink, CountsSamplesThatCouldNotBePacked) {
  Receiver receiver({std::string(kOk)});
  PushSink sink(OptionsFor(receiver.port(), 20),
                [] { return std::vector<PushMessage>{{"", 7}, {"body", 1}}; });
  sink.Start();
  EXPECT_EQ(BodyOf(receiver.Requests(1).at(0)), "body");
  EXPECT_GE(sink.stats().dropped_samples["not_packed"], 7U);
}

TEST(PushSink, OnlyWhatMayHelpIsTriedAgain) {
  auto answer = [](int status) { return PostResult{.reason = kPushAnswer, .status = status}; };
  for (std::string_view sink : {kOtlpSink, kRemoteWriteSink}) {
    for (int status : {429, 502, 503, 504}) EXPECT_TRUE(PushMayRetry(sink, answer(status))) << status;
    for (int status : {301, 400, 401, 403, 404, 413, 415}) EXPECT_FALSE(PushMayRetry(sink, answer(status))) << status;
    for (std::string_view reason : {kPushConnect, kPushTls, kPushTimeout, kPushBroken}) {
      EXPECT_TRUE(PushMayRetry(sink, {.reason = reason})) << reason;
    }
  }
  EXPECT_TRUE(PushMayRetry(kRemoteWriteSink, answer(500)));
  EXPECT_FALSE(PushMayRetry(kOtlpSink, answer(500))) << "OTLP/HTTP: all other 4xx and 5xx must not be retried";
}

// A receiver that never answers delays neither the end nor a request for figures.
TEST(PushSink, EndsWhileTheReceiverIsSilent) {
  Receiver receiver({""});
  PushSinkOptions options = OptionsFor(receiver.port(), 10);
  options.timeout_ns = 3600 * kNsPerSecond;
  {
    PushSink sink(options, Numbers());
    sink.Start();
    ASSERT_EQ(receiver.Requests(1).size(), 1U);
    EXPECT_EQ(sink.stats().messages, 0U);
  }
}

}  // namespace
}  // namespace profd
