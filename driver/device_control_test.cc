#include "driver/device_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/bytes.h"
#include "driver/testing/recording_sink.h"
#include "driver/testing/scripted_hal.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::Call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordingSink;
using testing::ScriptedHal;
using testing::StartReading;

constexpr uint32_t kHbm = abi::kChannelHbm;

Bytes Hbm(uint64_t us) {
  Bytes bytes(24);
  StoreUnchecked(std::span(bytes), 0, us);
  return bytes;
}

// One answer that arrives on another thread.
template <class T>
class Answer {
 public:
  void Give(T value) {
    std::lock_guard lock(mutex_);
    EXPECT_FALSE(value_.has_value()) << "answered twice";
    value_.emplace(std::move(value));
    given_.notify_all();
  }
  const T& Wait() {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [&] { return value_.has_value(); });
    return *value_;
  }
  bool given() {
    std::lock_guard lock(mutex_);
    return value_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<T> value_;
};

struct Started {
  Status status;
  int64_t host_ns;
};

ChannelStart Every20Ms(uint32_t channel) {
  return {.channel = channel, .channel_type = 1, .sample_period = 20, .user_data = {}};
}

class DeviceControlTest : public ::testing::Test {
 protected:
  DeviceControlTest() {
    pump_options_.poll_timeout_seconds = 0;
    pump_options_.min_poll_interval_ns = 1000;
    pump_options_.max_backoff_ns = 100'000;
    pump_.emplace(hal_.Library(), clock_, pool_, sink_, pump_options_);
    control_.emplace(3, hal_.Library(), *pump_, clock_);
  }
  void Start(Answer<Started>& answer, ChannelStart start = Every20Ms(kHbm)) {
    control_->StartChannel(std::move(start), 1, [&answer](const Status& status, int64_t ns) {
      answer.Give({status, ns});
    });
  }
  void Stop(Answer<StopOutcome>& answer) {
    control_->StopChannel(kHbm, [&answer](const StopOutcome& outcome) { answer.Give(outcome); });
  }
  Started StartNow(ChannelStart start = Every20Ms(kHbm)) {
    Answer<Started> started;
    Start(started, std::move(start));
    return started.Wait();
  }
  void MustStart() {
    const Status status = StartNow().status;
    ASSERT_TRUE(status.ok()) << status.message();
  }
  StopOutcome StopNow() {
    Answer<StopOutcome> stopped;
    Stop(stopped);
    return stopped.Wait();
  }
  void RunOnce() {
    MustStart();
    StopNow();
  }
  void Refuse() { ASSERT_FALSE(StartNow().status.ok()); }
  // The driver answers after the deadline.
  void StartTooLate() {
    hal_.Hold(Call::kStart, 3);
    Answer<Started> started;
    Start(started);
    hal_.WaitUntilHeld(1);
    control_->CheckDeadlines(MuchLater());
    EXPECT_EQ(started.Wait().status.code(), StatusCode::kDeadlineExceeded);
    hal_.Release(Call::kStart, 3);
    while (!control_->Health().ok()) std::this_thread::yield();
  }
  int StatusNow() {
    Answer<Result<int>> answer;
    control_->QueryStatus([&](const Result<int>& status) { answer.Give(status); });
    return answer.Wait().value_or(-7);
  }
  int64_t MuchLater() const { return clock_.SteadyNs() + 100 * kNsPerSecond; }

  SystemClock clock_;
  BlockPool pool_{4 << 20};
  RecordingSink sink_;
  PumpOptions pump_options_;
  ScriptedHal hal_;
  std::optional<ChannelPump> pump_;
  std::optional<DeviceControl> control_;
};

TEST_F(DeviceControlTest, StartsWithTheParametersGivenAndReads) {
  const int64_t before = clock_.MonotonicRawNs();
  ChannelStart start = Every20Ms(kHbm);
  start.user_data = {std::byte{0xAB}, std::byte{1}};
  const Started started = StartNow(start);
  ASSERT_TRUE(started.status.ok());
  EXPECT_GE(started.host_ns, before);
  EXPECT_LE(started.host_ns, clock_.MonotonicRawNs());
  EXPECT_THAT(hal_.log(), ElementsAre("start 3/1 type 1 period 20 real 1 data ab01"));
  hal_.Data(3, kHbm, Hbm(1000));
  sink_.WaitForRecords(1);
}

TEST_F(DeviceControlTest, AFailedStartLeavesNothingRegistered) {
  hal_.Code(Call::kStart, abi::kProfNotEnoughSubChannel);
  const Started started = StartNow();
  EXPECT_EQ(started.status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(started.status.message(), HasSubstr("held by another process"));
  EXPECT_EQ(started.host_ns, 0);
  EXPECT_EQ(pump_->table()->Remove(3, kHbm).code(), StatusCode::kNotFound);
}

TEST_F(DeviceControlTest, StopFetchesWhatFlushAndStopBringForth) {
  hal_.Code(Call::kFlush, abi::kDrvErrorNotSupport);
  hal_.OnFlush(3, kHbm, Hbm(1000));
  hal_.OnStop(3, kHbm, Hbm(2000));
  MustStart();
  const StopOutcome stopped = StopNow();
  ASSERT_TRUE(stopped.status.ok()) << stopped.status.message();
  EXPECT_FALSE(stopped.data_lost);
  Bytes expected = Hbm(1000);
  Bytes last = Hbm(2000);
  expected.insert(expected.end(), last.begin(), last.end());
  EXPECT_EQ(sink_.bytes(), expected);
  EXPECT_THAT(hal_.log(), ElementsAre(HasSubstr("start 3/1"), "flush 3/1", "stop 3/1"));
  EXPECT_EQ(pump_->table()->Remove(3, kHbm).code(), StatusCode::kNotFound);
}

// A driver that cuts no chunk in two answers the rest of a buffer with 0, or with "not enough".
TEST_F(DeviceControlTest, AStopFetchesAllOfADriverThatHandsOutCompleteChunks) {
  for (int code : {0, abi::kProfNotEnoughBuf}) {
    hal_.set_uncut(code);
    const size_t before = sink_.bytes().size();
    MustStart();
    hal_.Hold(Call::kFlush, 3);
    hal_.Hold(Call::kPoll);
    Answer<StopOutcome> stopped;
    Stop(stopped);
    hal_.WaitUntilHeld(2);
    Bytes all;
    for (uint64_t chunk = 0; chunk < 16; ++chunk) {
      Bytes bytes;
      for (uint64_t i = 0; i < 500; ++i) {
        const Bytes record = Hbm(1000 * (chunk * 500 + i));
        bytes.insert(bytes.end(), record.begin(), record.end());
      }
      hal_.Data(3, kHbm, bytes);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    hal_.Release(Call::kFlush, 3);
    EXPECT_TRUE(stopped.Wait().status.ok()) << stopped.Wait().status.message();
    hal_.Release(Call::kPoll);
    const Bytes got = sink_.bytes();
    EXPECT_EQ(Bytes(got.begin() + static_cast<ptrdiff_t>(before), got.end()), all) << code;
    EXPECT_EQ(pump_->Counters(3, kHbm).read_errors, 0u);
  }
}

TEST_F(DeviceControlTest, AStopReportsAChunkThatFitsNoBuffer) {
  hal_.set_uncut(abi::kProfNotEnoughBuf);
  hal_.OnStop(3, kHbm, Bytes(1 << 20));
  MustStart();
  const StopOutcome stopped = StopNow();
  EXPECT_EQ(stopped.status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(stopped.status.message(), HasSubstr("does not fit"));
}

// driver-abi 1.2: a negative answer is a failed read. What the driver had is missing, without any other sign of it.
TEST_F(DeviceControlTest, AStopReportsWhatCouldNotBeRead) {
  hal_.set_empty_code(abi::kProfError);
  MustStart();
  StopOutcome stopped = StopNow();
  EXPECT_TRUE(stopped.status.ok()) << "stopped it is";
  EXPECT_EQ(stopped.unread.code(), StatusCode::kUnavailable);
  EXPECT_THAT(stopped.unread.message(), HasSubstr("prof_channel_read: PROF_ERROR (-1)"));
  // These say that there is nothing (driver-abi 1.4).
  for (int code : {0, abi::kProfStoppedAlready, abi::kProfNotReadableData, abi::kProfErestartsys}) {
    hal_.set_empty_code(code);
    MustStart();
    EXPECT_TRUE(StopNow().unread.ok()) << code;
  }
  // Nothing is left in the end: then nothing is missing.
  MustStart();
  hal_.set_empty_code(0);
  hal_.ReadCode(3, kHbm, abi::kProfError);
  EXPECT_TRUE(StopNow().unread.ok());
}

TEST_F(DeviceControlTest, StopCodesThatAreSuccess) {
  for (int code : {abi::kProfOk, abi::kProfStoppedAlready, abi::kProfStopDataLoss}) {
    MustStart();
    hal_.Code(Call::kStop, code);
    const StopOutcome stopped = StopNow();
    EXPECT_TRUE(stopped.status.ok()) << code;
    EXPECT_EQ(stopped.data_lost, code == abi::kProfStopDataLoss);
  }
}

TEST_F(DeviceControlTest, AFailedStopReportsItAndUnregisters) {
  MustStart();
  hal_.Code(Call::kStop, abi::kProfError);
  EXPECT_EQ(StopNow().status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(pump_->table()->Remove(3, kHbm).code(), StatusCode::kNotFound);
}

// A stop that failed leaves bytes with the driver. They are not the next session's.
TEST_F(DeviceControlTest, DataOfAFailedStopIsNotInTheNextRun) {
  MustStart();
  hal_.Code(Call::kStop, abi::kProfError);
  ASSERT_FALSE(StopNow().status.ok());
  hal_.Code(Call::kStop, abi::kProfOk);
  hal_.Data(3, kHbm, Hbm(1000));
  hal_.OnStop(3, kHbm, Hbm(2000));
  MustStart();
  ASSERT_TRUE(StopNow().status.ok());
  EXPECT_EQ(sink_.bytes(), Hbm(2000));
  EXPECT_EQ(pump_->Counters(3, kHbm).discarded_bytes, Hbm(1000).size());
}

// Nor are those of a driver whose last word was not that it holds none.
TEST_F(DeviceControlTest, ChannelsLeftByOurRunHaveNoOwner) {
  hal_.set_empty_code(abi::kProfStoppedAlready);
  RunOnce();
  hal_.Data(3, kHbm, Hbm(1000));
  hal_.OnStop(3, kHbm, Hbm(2000));
  RunOnce();
  EXPECT_EQ(sink_.bytes(), Hbm(2000));
  const ChannelCounters counters = pump_->Counters(3, kHbm);
  EXPECT_EQ(counters.discarded_bytes, Hbm(1000).size());
  EXPECT_EQ(counters.bytes, 2 * Hbm(1000).size());
  EXPECT_EQ(counters.dropped_bytes, 0u);
}

// What another process runs is not for us to read, whether the channel was ever ours or not.
TEST_F(DeviceControlTest, ChannelsOfOtherProcessesAreLeftAlone) {
  hal_.Code(Call::kStart, abi::kProfNotEnoughSubChannel);
  Refuse();
  Refuse();
  EXPECT_EQ(hal_.read_calls(), 0);
  hal_.Code(Call::kStart, abi::kProfOk);
  RunOnce();
  const int reads = hal_.read_calls();
  hal_.Data(3, kHbm, Hbm(1000));
  hal_.Code(Call::kStart, abi::kProfNotEnoughSubChannel);
  Refuse();
  Refuse();
  EXPECT_EQ(hal_.read_calls(), reads);
  EXPECT_FALSE(hal_.drained(3, kHbm));
}

// A start that fails for another reason does not mean that another process has the channel.
TEST_F(DeviceControlTest, AFailedStartKeepsInMindWhatIsLeft) {
  hal_.set_empty_code(abi::kProfError);
  RunOnce();
  hal_.Code(Call::kStart, abi::kProfError);
  Refuse();
  hal_.Data(3, kHbm, Hbm(1000));
  hal_.Code(Call::kStart, abi::kProfOk);
  RunOnce();
  EXPECT_EQ(sink_.bytes(), Bytes());
  EXPECT_EQ(pump_->Counters(3, kHbm).discarded_bytes, Hbm(1000).size());
}

// Between the question and the answer the channel may be another process's, and it is its data then.
TEST_F(DeviceControlTest, NothingIsReadBeforeTheDriverHasStarted) {
  hal_.Code(Call::kStart, abi::kProfNotEnoughSubChannel);
  ASSERT_TRUE(StartReading(*pump_, 4, kHbm, nullptr, 1).ok());  // the pump polls
  hal_.Hold(Call::kStart, 3);
  Answer<Started> refused;
  Start(refused);
  hal_.WaitUntilHeld(1);
  hal_.Data(3, kHbm, Hbm(1000));
  for (const uint64_t seen = pump_->stats().foreign_hits; pump_->stats().foreign_hits < seen + 2;) {
    std::this_thread::yield();
  }
  hal_.Release(Call::kStart, 3);
  ASSERT_FALSE(refused.Wait().status.ok());
  EXPECT_EQ(hal_.read_calls(), 0);
  EXPECT_FALSE(hal_.drained(3, kHbm));
}

// What a poll reported in that time may not be reported again.
TEST_F(DeviceControlTest, ReadsRecordsOfTheDriversStart) {
  hal_.set_edge_triggered(true);
  ASSERT_TRUE(StartReading(*pump_, 4, kHbm, nullptr, 1).ok());  // the pump polls
  hal_.Hold(Call::kStart, 3);
  Answer<Started> started;
  Start(started);
  hal_.WaitUntilHeld(1);
  hal_.Data(3, kHbm, Hbm(1000));
  while (pump_->stats().foreign_hits == 0) std::this_thread::yield();
  hal_.Release(Call::kStart, 3);
  ASSERT_TRUE(started.Wait().status.ok());
  sink_.WaitForRecords(1);
  EXPECT_EQ(sink_.bytes(), Hbm(1000));
}

TEST_F(DeviceControlTest, AChannelNeverStartedCanBeStopped) {
  hal_.Code(Call::kStop, abi::kProfStoppedAlready);
  EXPECT_TRUE(StopNow().status.ok());
}

TEST_F(DeviceControlTest, AStopThatNeverAnswersCostsOnlyItsDevice) {
  MustStart();
  hal_.Hold(Call::kStop, 3);
  Answer<StopOutcome> stopped;
  Stop(stopped);
  hal_.WaitUntilHeld(1);
  EXPECT_FALSE(stopped.given());
  control_->CheckDeadlines(MuchLater());
  EXPECT_EQ(stopped.Wait().status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(control_->Health().message(), HasSubstr("stopping channel hbm of device 3"));
  EXPECT_EQ(StopNow().status.code(), StatusCode::kUnavailable);

  DeviceControl other(4, hal_.Library(), *pump_, clock_);
  Answer<StopOutcome> fine;
  other.StopChannel(kHbm, [&](const StopOutcome& outcome) { fine.Give(outcome); });
  EXPECT_TRUE(fine.Wait().status.ok());

  hal_.Release(Call::kStop, 3);
  while (!control_->Health().ok()) std::this_thread::yield();
  EXPECT_EQ(pump_->table()->Remove(3, kHbm).code(), StatusCode::kNotFound);
}

TEST_F(DeviceControlTest, AStopThatHangsKeepsOnlyItsChannelWaiting) {
  RunOnce();
  hal_.Hold(Call::kStop, 3);
  Answer<StopOutcome> stopped;
  Stop(stopped);
  hal_.WaitUntilHeld(1);
  // These wait behind it.
  Answer<Result<int>> status;
  control_->QueryStatus([&](const Result<int>& result) { status.Give(result); });
  control_->CheckDeadlines(MuchLater());
  EXPECT_EQ(stopped.Wait().status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(status.Wait().ok());

  const Status started = StartNow(Every20Ms(abi::kChannelPcie)).status;
  EXPECT_TRUE(started.ok()) << started.message();
  const Status same = StartNow().status;
  EXPECT_EQ(same.code(), StatusCode::kUnavailable);
  EXPECT_THAT(same.message(), HasSubstr("stopping channel hbm of device 3"));
  EXPECT_THAT(control_->Health().message(), HasSubstr("stopping channel hbm of device 3"));

  // A driver that lets no other stop in either: the device is stuck, not every thread we have.
  Answer<StopOutcome> second;
  control_->StopChannel(abi::kChannelPcie,
                        [&](const StopOutcome& outcome) { second.Give(outcome); });
  hal_.WaitUntilHeld(2);
  control_->CheckDeadlines(MuchLater());
  EXPECT_EQ(second.Wait().status.code(), StatusCode::kDeadlineExceeded);
  const Status third = StartNow(Every20Ms(abi::kChannelHccs)).status;
  EXPECT_EQ(third.code(), StatusCode::kUnavailable);
  EXPECT_THAT(third.message(), HasSubstr("stopping channel"));

  hal_.Release(Call::kStop, 3);
  while (!control_->Health().ok()) std::this_thread::yield();
  RunOnce();
}

TEST_F(DeviceControlTest, AStartThatHangsKeepsOnlyItsChannelWaiting) {
  hal_.Hold(Call::kStart, 3);
  Answer<Started> started;
  Start(started);
  hal_.WaitUntilHeld(1);
  Answer<StopOutcome> other;  // waits behind it
  control_->StopChannel(abi::kChannelPcie, [&](const StopOutcome& outcome) { other.Give(outcome); });
  control_->CheckDeadlines(MuchLater());
  EXPECT_EQ(started.Wait().status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(other.Wait().status.ok()) << other.Wait().status.message();
  EXPECT_EQ(StartNow().status.code(), StatusCode::kUnavailable);
  hal_.Release(Call::kStart, 3);
  while (!control_->Health().ok()) std::this_thread::yield();
  RunOnce();
}

TEST_F(DeviceControlTest, AStartThatSucceedsTooLateIsStoppedAgain) {
  hal_.Data(3, kHbm, Hbm(1000));
  StartTooLate();
  while (hal_.log().size() < 2) std::this_thread::yield();
  EXPECT_EQ(hal_.log()[1], "stop 3/1");
  RunOnce();  // after the late one has gone
  EXPECT_EQ(sink_.bytes(), Bytes());
  EXPECT_EQ(pump_->Counters(3, kHbm).discarded_bytes, Hbm(1000).size());
  control_.reset();
  EXPECT_EQ(pump_->table()->Remove(3, kHbm).code(), StatusCode::kNotFound);
}

// The driver would refuse another start for as long as the forgotten run continues.
TEST_F(DeviceControlTest, StopsALeftoverRunBeforeTheNextStart) {
  hal_.Code(Call::kStop, abi::kProfError);
  StartTooLate();
  while (hal_.log().size() < 2) std::this_thread::yield();
  Refuse();
  EXPECT_THAT(hal_.log(), ElementsAre(HasSubstr("start 3/1"), "stop 3/1", "stop 3/1"));
  hal_.Code(Call::kStop, abi::kProfOk);
  RunOnce();
  EXPECT_THAT(hal_.log(), ElementsAre(HasSubstr("start 3/1"), "stop 3/1", "stop 3/1", "stop 3/1",
                                      HasSubstr("start 3/1"), "flush 3/1", "stop 3/1"));
}

TEST_F(DeviceControlTest, EverythingMayGoWhileAStopIsStuck) {
  MustStart();
  hal_.Hold(Call::kStop, 3);
  hal_.OnStop(3, kHbm, Hbm(1000));
  Answer<StopOutcome> stopped;
  Stop(stopped);
  hal_.WaitUntilHeld(1);
  control_->CheckDeadlines(MuchLater());
  control_.reset();
  pump_.reset();
  hal_.Release(Call::kStop, 3);
  EXPECT_EQ(stopped.Wait().status.code(), StatusCode::kDeadlineExceeded);
}

TEST_F(DeviceControlTest, CorrelatesTheClock) {
  hal_.Info(abi::kModuleSystem, abi::kInfoMonotonicRaw, 0, 555);
  hal_.Info(abi::kModuleSystem, abi::kInfoSysCount, 0, 777);
  Answer<Result<ClockPair>> answer;
  control_->CorrelateClock([&](const Result<ClockPair>& pair) { answer.Give(pair); });
  ASSERT_TRUE(answer.Wait().ok());
  EXPECT_EQ(answer.Wait()->device_ns, 555);
  EXPECT_EQ(answer.Wait()->device_count, 777u);
  EXPECT_GT(answer.Wait()->host_ns, 0);
  EXPECT_GT(answer.Wait()->host_count, 0u);
}

TEST_F(DeviceControlTest, AStuckClockAnswersByItsDeadline) {
  hal_.Hold(Call::kInfo, 3);
  Answer<Result<ClockPair>> answer;
  control_->CorrelateClock([&](const Result<ClockPair>& pair) { answer.Give(pair); });
  hal_.WaitUntilHeld(1);
  control_->CheckDeadlines(MuchLater());
  EXPECT_EQ(answer.Wait().status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(DeviceControlTest, ReadsTheStatus) {
  EXPECT_EQ(StatusNow(), abi::kDrvStatusWork);
  hal_.Code(Call::kStatus, abi::kDrvErrorNotSupport);
  EXPECT_EQ(StatusNow(), -1);
  hal_.Code(Call::kStatus, abi::kDrvErrorNoDevice);
  EXPECT_EQ(StatusNow(), -1);
}

}  // namespace
}  // namespace profd
