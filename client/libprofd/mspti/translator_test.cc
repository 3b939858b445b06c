// Times of the vendor's records in CLOCK_MONOTONIC_RAW, on a host whose CLOCK_REALTIME is set now and then. Clocks and
// records are the test's own.
#include "client/libprofd/mspti/translator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "client/libprofd/mspti/collector_test_support.h"

namespace profd::lib::mspti {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kReal = 1'700'000'000 * kSecond;  // CLOCK_REALTIME when CLOCK_MONOTONIC_RAW is 0

class TranslatorTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRingBytes = uint64_t{16} << 20;

  void SetUp() override {
    fd_ = ::memfd_create("ring", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(attach::ActivityRingBytes(kRingBytes))), 0);
    memory_ = ::mmap(nullptr, attach::ActivityRingBytes(kRingBytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    writer_ = std::make_unique<attach::ActivityWriter>(memory_, kRingBytes, 0, 0);
    translator_ = std::make_unique<Translator>(*writer_, std::vector<uint16_t>{});
    view_.Open(fd_);
  }
  void TearDown() override {
    ::munmap(memory_, attach::ActivityRingBytes(kRingBytes));
    ::close(fd_);
  }
  // Puts a record into the buffer; its correlation is where it belongs.
  template <class Record>
  void Put(Kind kind, int64_t start_raw_ns, int64_t end_raw_ns, int64_t offset_ns) {
    if (buffer_.empty()) lent_raw_ns_ = end_raw_ns;
    Record record{};
    record.kind = kind;
    record.start = static_cast<uint64_t>(start_raw_ns + offset_ns);
    record.end = static_cast<uint64_t>(end_raw_ns + offset_ns);
    record.correlation = static_cast<uint64_t>(start_raw_ns);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&record);
    buffer_.insert(buffer_.end(), bytes, bytes + sizeof record);
  }
  void Return(int64_t raw_ns, int64_t offset_ns) {
    const ClockPair now{raw_ns + offset_ns, raw_ns};
    if (!buffer_.empty()) translator_->Walk(buffer_.data(), buffer_.size(), now, lent_raw_ns_);
    buffer_.clear();
    translator_->NoteClock(now);
    writer_->Flush();
    view_.Take();
  }
  // How far off those are that are the furthest.
  template <class Taken>
  static int64_t Error(const std::vector<Taken>& all) {
    int64_t most = 0;
    for (const Taken& taken : all) {
      most = std::max(most, std::abs(taken.start_ns - static_cast<int64_t>(taken.record.correlation)));
    }
    return most;
  }

  int fd_ = -1;
  void* memory_ = nullptr;
  std::unique_ptr<attach::ActivityWriter> writer_;
  std::unique_ptr<Translator> translator_;
  RingView view_;
  std::vector<uint8_t> buffer_;
  int64_t lent_raw_ns_ = 0;
};

struct Steps {
  int64_t by_ns;
  int64_t flush_ns;
};

class StepTest : public TranslatorTest, public ::testing::WithParamInterface<Steps> {};

// Set at 2 s and back at 15.3 s. Times of the device follow 3.6 s later, those of the host at once.
TEST_P(StepTest, DisplacesNothing) {
  const auto& [by_ns, flush_ns] = GetParam();
  const auto offset_at = [by = by_ns](int64_t raw_ns) {
    return kReal + (raw_ns >= 2 * kSecond && raw_ns < 15'300 * kMs ? by : 0);
  };
  Return(kSecond, kReal);
  size_t count = 0;
  for (int64_t now = kSecond; now < 25 * kSecond; now += 2 * kMs) {
    if (now % flush_ns == 0) Return(now, offset_at(now));
    const int64_t length = ++count % 100 == 0 ? 900 * kMs : kMs;
    Put<KernelRecord>(kKernel, now - 5 * kMs - length, now - 5 * kMs, offset_at(now - 3'600 * kMs));
    Put<ApiRecord>(kAclApi, now - 2'000, now - 1'000, offset_at(now - 2'000));
  }
  Return(25 * kSecond, kReal);
  ASSERT_EQ(view_.kernels.size(), count);
  ASSERT_EQ(view_.apis.size(), count);
  EXPECT_EQ(Error(view_.kernels), 0);
  EXPECT_EQ(Error(view_.apis), 0);
  const Translator::ClockStep& step = translator_->last_step();
  EXPECT_EQ(step.by_ns, -by_ns);
  EXPECT_LE(step.from_raw_ns, 15'300 * kMs);
  EXPECT_GE(step.to_raw_ns, 15'300 * kMs);
  EXPECT_LE(step.to_raw_ns - step.from_raw_ns, flush_ns);
}

INSTANTIATE_TEST_SUITE_P(Translator, StepTest,
                         ::testing::Values(Steps{kSecond, 500 * kMs}, Steps{-kSecond, 500 * kMs},
                                           Steps{2 * kSecond, 200 * kMs}, Steps{-2 * kSecond, 200 * kMs},
                                           Steps{3600 * kSecond, 2 * kSecond}, Steps{-3600 * kSecond, 2 * kSecond}));

// One that is shorter than the delay of records shows in none of them: when the vendor's library has to have followed,
// the new pair is taken.
TEST_F(TranslatorTest, AShortStepIsOverIn10s) {
  const auto offset_at = [](int64_t raw_ns) { return kReal + (raw_ns >= 2 * kSecond ? 20 * kMs : 0); };
  Return(kSecond, kReal);
  for (int64_t now = kSecond; now < 20 * kSecond; now += 10 * kMs) {
    if (now % (500 * kMs) == 0) Return(now, offset_at(now));
    Put<KernelRecord>(kKernel, now - 101 * kMs, now - 100 * kMs, offset_at(now - 5 * kSecond));
  }
  Return(20 * kSecond, offset_at(20 * kSecond));
  EXPECT_LE(Error(view_.kernels), 20 * kMs);
  std::erase_if(view_.kernels, [](const auto& taken) {
    return taken.record.correlation > 6'800 * kMs && taken.record.correlation < 12 * kSecond;
  });
  EXPECT_EQ(Error(view_.kernels), 0);
}

TEST_F(TranslatorTest, ASlewIsNoStep) {
  int64_t offset = kReal;
  for (int64_t now = kSecond; now < 20 * kSecond; now += 500 * kMs) {
    Put<KernelRecord>(kKernel, now - 2 * kMs, now - kMs, offset);
    Return(now, offset);
    offset += 250'000;
  }
  EXPECT_EQ(translator_->last_step().by_ns, 0);
  EXPECT_EQ(Error(view_.kernels), 0);
}

TEST_F(TranslatorTest, WhatIsLateHasThePairOfTheOthers) {
  Return(kSecond, kReal);
  Put<KernelRecord>(kKernel, 1'100 * kMs, 1'110 * kMs, kReal);
  Return(1'500 * kMs, kReal + kSecond);
  buffer_.clear();
  Put<KernelRecord>(kKernel, 1'600 * kMs, 1'610 * kMs, kReal);
  Put<KernelRecord>(kKernel, 100 * kMs, 110 * kMs, kReal);
  Return(2 * kSecond, kReal + kSecond);
  EXPECT_EQ(view_.kernels.size(), 3u);
  EXPECT_EQ(Error(view_.kernels), 0);
}

// The collector was off meanwhile.
TEST_F(TranslatorTest, WhatWasForgottenIsNoStep) {
  Return(kSecond, kReal);
  translator_->StartClocks({1'500 * kMs + kReal + kSecond, 1'500 * kMs});
  Put<KernelRecord>(kKernel, 2 * kSecond - kMs, 2 * kSecond, kReal + kSecond);
  Return(2 * kSecond, kReal + kSecond);
  EXPECT_EQ(translator_->last_step().by_ns, 0);
  EXPECT_EQ(Error(view_.kernels), 0);
}

// As the daemon has them (process_facts_test).
TEST(VisibleDevicesTest, FromEitherVariable) {
  const auto visible = [](const char* runtime, const char* container) {
    for (const auto& [name, value] : {std::pair{"ASCEND_RT_VISIBLE_DEVICES", runtime}, {"ASCEND_VISIBLE_DEVICES", container}}) {
      value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    }
    return VisibleDevices();
  };
  using Devices = std::vector<uint16_t>;
  EXPECT_EQ(visible(nullptr, nullptr), Devices());
  EXPECT_EQ(visible("2, 3,0", nullptr), (Devices{2, 3, 0}));
  EXPECT_EQ(visible(nullptr, "4-6"), (Devices{4, 5, 6}));
  EXPECT_EQ(visible(nullptr, "0,4 - 5,2"), (Devices{0, 4, 5, 2}));
  EXPECT_EQ(visible("2", "4-6"), Devices{2});
  EXPECT_EQ(visible("", "4-6"), (Devices{4, 5, 6}));
  EXPECT_EQ(visible("0-63", nullptr).size(), 64u);
  for (const char* none : {"void", "-1", "3-2", "0-64", "0-63,64", "1;2", "65536"}) EXPECT_EQ(visible(none, nullptr), Devices()) << none;
  visible(nullptr, nullptr);
}

}  // namespace
}  // namespace profd::lib::mspti
