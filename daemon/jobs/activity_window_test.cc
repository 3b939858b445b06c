#include "daemon/jobs/activity_window.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace profd {
namespace {

using attach::CommunicationRecord;
using attach::KernelRecord;

constexpr int64_t kMs = kNsPerMs;
constexpr int64_t kSecond = kNsPerSecond;
// When the window begins: within second 1000, so that 1001 is the first whole one.
constexpr int64_t kStart = 1000 * kSecond + 500 * kMs;

// Hands records to a window as a ring's frames do, one frame a call.
class ActivityWindowTest : public ::testing::Test {
 protected:
  template <class Record>
  void Take(const std::vector<Record>& records, int64_t base_ns, uint64_t lost = 0) {
    const ActivityFrame frame{attach::kTypeOf<Record>, static_cast<uint16_t>(records.size()), base_ns,
                              std::as_bytes(std::span(records))};
    window_.Take({&frame, 1}, lost);
  }
  template <class Record>
  static Record At(int64_t begin_ns, int64_t ns, int64_t base_ns) {
    Record record{};
    record.start = static_cast<uint32_t>(begin_ns - base_ns);
    record.duration = static_cast<uint32_t>(ns);
    record.duration_high = static_cast<uint32_t>(ns >> 32);
    return record;
  }
  void Kernel(int64_t begin_ns, int64_t ns, uint32_t name = 1, uint16_t device = 0) {
    auto record = At<KernelRecord>(begin_ns, ns, begin_ns);
    record.name = name;
    record.device = device;
    Take<KernelRecord>({record}, begin_ns);
  }
  void Communication(int64_t begin_ns, int64_t ns, uint16_t device = 0) {
    auto record = At<CommunicationRecord>(begin_ns, ns, begin_ns);
    record.device = device;
    Take<CommunicationRecord>({record}, begin_ns);
  }
  // Second 1000 + s, `ms` after its beginning.
  static int64_t T(int64_t s, int64_t ms = 0) { return (1000 + s) * kSecond + ms * kMs; }

  ActivityWindow window_{kStart};
};

TEST_F(ActivityWindowTest, NothingIsKnownBeforeASecondIsClosed) {
  EXPECT_TRUE(window_.Last().empty());
  window_.Advance(T(3, 999));
  EXPECT_TRUE(window_.Last().empty());
  window_.Advance(T(4));
  const ActivityAccount account = window_.Last();
  EXPECT_EQ(account.begin_ns, T(1));
  EXPECT_EQ(account.end_ns, T(2));
  EXPECT_EQ(account.devices, 0u);
  EXPECT_EQ(account.free, 1) << "it is collecting, and nothing runs";
}

// 1001: kernels 100..300 and, on another stream, 200..400; communication 350..600.
// Computation 300 ms, communication 250 ms, of which 50 ms are overlapped.
TEST_F(ActivityWindowTest, SharesAreOfUnionsOverStreams) {
  window_.Advance(T(2));
  Kernel(T(1, 100), 200 * kMs);
  Kernel(T(1, 200), 200 * kMs);
  Communication(T(1, 350), 250 * kMs);
  window_.Advance(T(4));
  const ActivityAccount account = window_.Last();
  EXPECT_DOUBLE_EQ(account.computation, 0.3);
  EXPECT_DOUBLE_EQ(account.communication, 0.25);
  EXPECT_DOUBLE_EQ(account.not_overlapped, 0.2);
  EXPECT_DOUBLE_EQ(account.free, 0.5);
  EXPECT_EQ(account.kernels, 2u);
}

TEST_F(ActivityWindowTest, TheOrderDoesNotMatter) {
  window_.Advance(T(2));
  Communication(T(1, 350), 250 * kMs);
  Kernel(T(1, 800), 100 * kMs);
  Kernel(T(1, 200), 200 * kMs);
  Kernel(T(1, 820), 10 * kMs);
  Kernel(T(1, 100), 200 * kMs);
  window_.Advance(T(4));
  const ActivityAccount account = window_.Last();
  EXPECT_DOUBLE_EQ(account.computation, 0.4);
  EXPECT_DOUBLE_EQ(account.not_overlapped, 0.2);
}

// Device 3 computes all the second, device 5 communicates for half of it.
TEST_F(ActivityWindowTest, SharesAreMeansOverDevices) {
  window_.Advance(T(2));
  Kernel(T(1), kSecond, 1, 3);
  Communication(T(1, 500), 500 * kMs, 5);
  Kernel(T(1), 900 * kMs, 1, attach::kNoDevice);
  window_.Advance(T(4));
  const ActivityAccount account = window_.Last();
  EXPECT_EQ(account.devices, 2u);
  EXPECT_DOUBLE_EQ(account.computation, 0.5);
  EXPECT_DOUBLE_EQ(account.not_overlapped, 0.25) << "computation of another device does not overlap";
  EXPECT_DOUBLE_EQ(account.free, 0.25);
  EXPECT_EQ(account.kernels, 1u) << "the one without a device; the other ends with the second";
}

TEST_F(ActivityWindowTest, AnIntervalIsSharedBySecondsAndCountedWhereItEnds) {
  window_.Advance(T(3));
  Kernel(T(1, 700), 800 * kMs, 7);
  window_.Advance(T(5));
  const auto seconds = window_.SecondsFrom(0);
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_DOUBLE_EQ(seconds[0].computation, 0.3);
  EXPECT_DOUBLE_EQ(seconds[1].computation, 0.5);
  EXPECT_EQ(seconds[0].kernels, 0u);
  EXPECT_EQ(seconds[1].kernels, 1u);
  EXPECT_EQ(seconds[1].longest_ns, 800u * kMs);
  EXPECT_EQ(seconds[1].longest_name, 7u);
  EXPECT_EQ(window_.SecondsFrom(seconds[0].end_ns).size(), 1u);
  EXPECT_TRUE(window_.SecondsFrom(seconds[1].end_ns).empty());
}

// A communication that waited for five seconds comes when four of them are closed: 1001..1005 are covered
// whole, and there its overlap is exactly the computation.
TEST_F(ActivityWindowTest, LateRecordsAreExactInSecondsTheyCover) {
  for (int s = 1; s <= 6; ++s) {
    window_.Advance(T(s + 1));
    Kernel(T(s, 250), 250 * kMs);
  }
  Communication(T(1), 5 * kSecond);
  window_.Advance(T(8));
  for (const ActivityAccount& second : window_.SecondsFrom(0)) {
    EXPECT_DOUBLE_EQ(second.computation, 0.25);
    EXPECT_DOUBLE_EQ(second.communication, 1);
    EXPECT_DOUBLE_EQ(second.not_overlapped, 0.75);
    EXPECT_DOUBLE_EQ(second.free, 0);
  }
  EXPECT_EQ(window_.SecondsFrom(0).size(), 5u);
  // And a kernel over a second that communicates all the time.
  Kernel(T(2), 2 * kSecond);
  const auto seconds = window_.SecondsFrom(0);
  EXPECT_DOUBLE_EQ(seconds[1].computation, 1);
  EXPECT_DOUBLE_EQ(seconds[1].not_overlapped, 0);
  EXPECT_DOUBLE_EQ(seconds[0].computation, 0.25);
}

// Of the 500 ms in a closed second, 250 ms of computation in it, an even part is overlapped.
TEST_F(ActivityWindowTest, APartOfAClosedSecondIsEstimated) {
  window_.Advance(T(2));
  Kernel(T(1, 250), 250 * kMs);
  window_.Advance(T(4));
  Communication(T(1, 500), 500 * kMs);
  const ActivityAccount account = window_.Last();
  EXPECT_DOUBLE_EQ(account.communication, 0.5);
  EXPECT_DOUBLE_EQ(account.not_overlapped, 0.375);
}

TEST_F(ActivityWindowTest, TheWindowSlides) {
  for (int s = 1; s <= 20; ++s) {
    window_.Advance(T(s + 1));
    Kernel(T(s), s * 10 * kMs, static_cast<uint32_t>(s));
    window_.AddStep(T(s, 20));
    window_.AddStep(T(s, 40));
    Take<KernelRecord>({}, T(s), 3);
  }
  window_.Advance(T(21, 900));
  const ActivityAccount account = window_.Last();
  EXPECT_EQ(account.begin_ns, T(9));
  EXPECT_EQ(account.end_ns, T(19));
  // 90, 100, ... 180 ms.
  EXPECT_DOUBLE_EQ(account.computation, 0.135);
  EXPECT_EQ(account.kernels, 10u);
  EXPECT_DOUBLE_EQ(account.PerSecond(account.kernels), 1);
  EXPECT_DOUBLE_EQ(account.PerSecond(account.steps), 2);
  EXPECT_EQ(account.longest_ns, 180u * kMs);
  EXPECT_EQ(account.longest_name, 18u);
  EXPECT_EQ(account.lost, 30u);
  window_.Advance(T(1000));
  EXPECT_EQ(window_.Last().kernels, 0u);
  EXPECT_EQ(window_.Last().free, 1);
}

TEST_F(ActivityWindowTest, NothingIsTakenFromTheFuture) {
  window_.Advance(T(2));
  Kernel(T(1, 900), int64_t{1} << 62);
  Kernel(T(50), kSecond);
  Communication(T(50), int64_t{-1});
  window_.Advance(T(5));
  const auto seconds = window_.SecondsFrom(0);
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_DOUBLE_EQ(seconds[0].computation, 0.1);
  EXPECT_DOUBLE_EQ(seconds[1].computation, 0);
  EXPECT_EQ(seconds[1].kernels, 2u) << "they end now";
  EXPECT_EQ(seconds[1].longest_ns, 100u * kMs);
}

// Kernels of 1 us with gaps of 1 us, backwards: twice as many as are kept.
TEST_F(ActivityWindowTest, IntervalsAreBounded) {
  constexpr int64_t kCount = 2 * ActivityWindow::kMaxIntervals;
  window_.Advance(T(2));
  for (int64_t i = kCount; i-- > 0;) Kernel(T(1) + i * 2000, 1000);
  window_.Advance(T(4));
  const ActivityAccount account = window_.Last();
  EXPECT_EQ(account.kernels, static_cast<uint64_t>(kCount));
  const double exact = kCount * 1000 / 1e9;
  EXPECT_GE(account.computation, exact);
  EXPECT_LE(account.computation, 2 * exact) << "gaps may have been taken for busy, not more";
}

TEST_F(ActivityWindowTest, TheHottestKernelsAreExact) {
  std::map<uint32_t, uint64_t> total;
  // Second 1000 + s; those of 1001..1004 are forgotten when 1010 begins.
  for (int s = 1; s <= 10; ++s) {
    window_.Advance(T(s));
    for (uint32_t name = 0; name < 3000; ++name) {
      const int64_t ns = (name * 7919) % 3001;
      Kernel(T(s) - ns, ns, name);
      if (s >= 5) total[name] += static_cast<uint64_t>(ns);
    }
  }
  const ActivityWindow::Hottest hottest = window_.HottestKernels(3);
  EXPECT_EQ(hottest.span_ns, 5u * kSecond);
  ASSERT_EQ(hottest.kernels.size(), 3u);
  uint64_t all = 0;
  std::multimap<uint64_t, uint32_t, std::greater<>> order;
  for (const auto& [name, ns] : total) {
    order.emplace(ns, name);
    all += ns;
  }
  EXPECT_EQ(hottest.total_ns, all);
  auto expected = order.begin();
  for (const ActivityWindow::HotKernel& kernel : hottest.kernels) {
    EXPECT_EQ(kernel.name, expected->second);
    EXPECT_EQ(kernel.total_ns, expected->first);
    EXPECT_EQ(kernel.count, 6u);
    ++expected;
  }
}

}  // namespace
}  // namespace profd
