// The collector against the stand-in of the vendor's library. One process has one collector and one
// library, so the tests share them; what needs a process without either is a process of its own.
#include "client/libprofd/mspti/collector.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "client/libprofd/mspti/collector_test_support.h"

namespace profd::lib::mspti {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kApis = PROFD_COLLECT_ACL_API | PROFD_COLLECT_NODE_API;

Collector& TheCollector() {
  static auto* const collector = new Collector(
      {milliseconds(5), milliseconds(5), milliseconds(20), milliseconds(2), milliseconds(200), milliseconds(40)});
  return *collector;
}

void LoadRuntime() {
  ASSERT_NE(::dlopen(PROFD_FAKE_HOME "/libascendcl.so", RTLD_NOW), nullptr) << ::dlerror();
}

int Start(uint32_t kinds, uint64_t (*steps)(void*) = nullptr, uint32_t max_permille = 0, uint32_t flush_ms = 20) {
  profd_collect_config config = {};
  config.size = sizeof config;
  config.kinds = kinds;
  config.flush_ms = flush_ms;
  config.ring_bytes = 1 << 20;
  config.steps = steps;
  config.max_permille = max_permille;
  return TheCollector().Start(config);
}

profd_collect_report Report() {
  profd_collect_report report = {};
  report.size = sizeof report;
  TheCollector().Report(&report);
  return report;
}

::testing::AssertionResult Reaches(int state) {
  if (Eventually([state] { return Report().state == state; })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << Report().state << " " << Report().detail;
}

// With the parameters of Start.
template <class... Parameters>
::testing::AssertionResult StartReaches(int state, Parameters... parameters) {
  if (const int code = Start(parameters...); code != 0) return ::testing::AssertionFailure() << code;
  return Reaches(state);
}
template <class... Parameters>
::testing::AssertionResult Starts(Parameters... parameters) {
  return StartReaches(PROFD_COLLECT_ON, parameters...);
}

class CollectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"PROFILER_SAMPLECONFIG", "PROFILING_MODE", "LD_PRELOAD"}) {
      ::unsetenv(name);
    }
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME, 1);
    ::setenv("ASCEND_RT_VISIBLE_DEVICES", "4,6", 1);
    LoadRuntime();
    library_.Load(PROFD_FAKE_HOME);
    library_.Reset();
    Ring();
  }
  void TearDown() override {
    EXPECT_TRUE(TheCollector().Stop(kPatience));
    EXPECT_EQ(library_.orders->calls_inside_callbacks, 0u);
  }
  // Of the life of the process; what earlier tests put into it is taken out.
  RingView& Ring() {
    static auto* const view = new RingView;
    if (TheCollector().ring() >= 0) {
      if (!opened_) view->Open(TheCollector().ring());
      opened_ = true;
    }
    view->Take();
    return *view;
  }
  bool EventuallyKernels(size_t count) {
    return Eventually([&] { return Ring().kernels.size() >= count; });
  }

  static inline bool opened_ = false;
  FakeLibrary library_;
};

TEST_F(CollectorTest, KernelsComeWhileItRuns) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL | kApis));
  EXPECT_EQ(Report().kinds, PROFD_COLLECT_KERNEL | kApis);
  EXPECT_STREQ(Report().version, "2026-05 or later");
  const size_t before = Ring().kernels.size();
  const int64_t from = ReadClock(CLOCK_MONOTONIC_RAW);
  library_.Kernel(41, "MatMul", 1);
  ASSERT_TRUE(EventuallyKernels(before + 1));
  const auto kernel = Ring().kernels.back();
  EXPECT_EQ(Ring().names[kernel.record.name], "MatMul");
  EXPECT_EQ(Ring().names[kernel.record.type], "KERNEL_AICORE");
  EXPECT_EQ(kernel.record.correlation, 41u);
  EXPECT_EQ(kernel.record.stream, 9u);
  EXPECT_EQ(kernel.record.duration, 1000u);
  EXPECT_EQ(kernel.record.logical_device, 1u);
  EXPECT_EQ(kernel.record.device, 6u);
  // As exact as the two clocks were read; both within the test.
  EXPECT_GT(kernel.start_ns, from - 1'000'000);
  EXPECT_LT(kernel.start_ns, ReadClock(CLOCK_MONOTONIC_RAW) + 1'000'000);
}

// Subscribe, callbacks, kinds; kinds, subscription.
TEST_F(CollectorTest, CallsAreInTheVendorsOrder) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION));
  ASSERT_TRUE(TheCollector().Stop(kPatience));
  EXPECT_EQ(Report().state, PROFD_COLLECT_OFF);
  EXPECT_STREQ(library_.orders->calls, "SR+c+j-c-jU");
  EXPECT_GE(library_.orders->flushes, 3u);
}

TEST_F(CollectorTest, OtherKindsAreTakenOverWithoutANewSubscription) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  ASSERT_EQ(Start(PROFD_COLLECT_KERNEL | PROFD_COLLECT_MARKER), 0);
  ASSERT_TRUE(Eventually([] { return Report().kinds != PROFD_COLLECT_KERNEL; }));
  EXPECT_EQ(Report().kinds, uint32_t{PROFD_COLLECT_KERNEL | PROFD_COLLECT_MARKER});
  EXPECT_STREQ(library_.orders->calls, "SR+c+b");
}

// Sessions that still collect them would lose records that no count has.
TEST_F(CollectorTest, KindsThatStayAreNotSwitchedOff) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION | PROFD_COLLECT_MARKER));
  const std::string before = library_.orders->calls;
  ASSERT_EQ(Start(PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION), 0);
  ASSERT_TRUE(Eventually([] { return (Report().kinds & PROFD_COLLECT_MARKER) == 0; }));
  EXPECT_EQ(library_.orders->calls, before + "-b");
}

TEST_F(CollectorTest, DeliversBuffersAtTheEnd) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  const size_t before = Ring().kernels.size();
  library_.orders->completes_late = true;
  for (uint64_t i = 1; i <= 100; ++i) library_.Kernel(i);
  ASSERT_TRUE(TheCollector().Stop(kPatience));
  EXPECT_EQ(Ring().kernels.size(), before + 100);
}

TEST_F(CollectorTest, ItCanBeStartedAgain) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
    const size_t before = Ring().kernels.size();
    library_.Kernel(1);
    ASSERT_TRUE(EventuallyKernels(before + 1));
    ASSERT_TRUE(TheCollector().Stop(kPatience));
  }
}

// Ten million kernels a second for a moment, from four threads: all come or are counted.
TEST_F(CollectorTest, BurstsAreTakenOrCounted) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 100'000;
  Ring();
  const uint64_t kernels = Ring().kernels.size();
  const profd_collect_report before = Report();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (uint64_t i = 0; i < kEach; ++i) library_.Kernel(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  library_.join();
  ASSERT_TRUE(TheCollector().Stop(kPatience));
  const profd_collect_report after = Report();
  const uint64_t in_ring = after.records - before.records;
  const uint64_t dropped = after.dropped - before.dropped;
  const uint64_t lost = (after.lost_bytes - before.lost_bytes) / sizeof(KernelRecord);
  // Each buffer has a clock, which is a record, too; the kernels among them are counted by the reader.
  EXPECT_GE(in_ring + dropped + lost, kThreads * kEach);
  EXPECT_LE(in_ring + dropped + lost, kThreads * kEach + library_.orders->requests);
  EXPECT_GT(Ring().kernels.size(), kernels);
}

TEST_F(CollectorTest, ARecordOfUnknownKindEndsItsBufferOnly) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  const size_t before = Ring().kernels.size();
  const uint64_t lost = Report().lost_bytes;
  library_.Kernel(1);
  library_.Unknown();
  ASSERT_TRUE(EventuallyKernels(before + 1));
  ASSERT_TRUE(Eventually([&] { return Report().lost_bytes == lost + 24; }));
  library_.Kernel(2);
  EXPECT_TRUE(EventuallyKernels(before + 2));
  ASSERT_TRUE(Eventually([&] { return !Ring().losses.empty(); }));
  EXPECT_EQ(Ring().losses.back().record.reason,
            static_cast<uint16_t>(attach::LossReason::kUnknownKind));
}

TEST_F(CollectorTest, AnEndBeforeTheBeginHasNoDuration) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  const size_t before = Ring().kernels.size();
  const uint64_t clamped = Ring().ring().clamped;
  const auto now = static_cast<uint64_t>(ReadClock(CLOCK_REALTIME));
  library_.Kernel(1, "a", 0, now, now - 5);
  library_.Kernel(2, "b", 0, now, now + 0x1'0000'0007);
  ASSERT_TRUE(EventuallyKernels(before + 2));
  EXPECT_EQ(Ring().kernels[before].record.duration, 0u);
  EXPECT_EQ(Ring().kernels[before].record.duration_high, 0u);
  EXPECT_EQ(Ring().kernels[before + 1].record.duration, 7u);
  EXPECT_EQ(Ring().kernels[before + 1].record.duration_high, 1u);
  EXPECT_EQ(Ring().ring().clamped, clamped + 1);
  EXPECT_EQ(Ring().clocks.back().record.first_vendor_ns, static_cast<int64_t>(now));
}

TEST_F(CollectorTest, ASecondSubscriberWaitsForItsTurn) {
  library_.orders->subscribe_result = kMultipleSubscribers;
  ASSERT_TRUE(StartReaches(PROFD_COLLECT_BUSY, PROFD_COLLECT_KERNEL));
  EXPECT_EQ(Report().code, kMultipleSubscribers);
  library_.orders->subscribe_result = 0;
  EXPECT_TRUE(Reaches(PROFD_COLLECT_ON));
}

TEST_F(CollectorTest, AProcessOfMsprofIsLeftAlone) {
  ::setenv("PROFILER_SAMPLECONFIG", "{}", 1);
  ASSERT_TRUE(StartReaches(PROFD_COLLECT_BUSY, PROFD_COLLECT_KERNEL));
  EXPECT_NE(std::string(Report().detail).find("PROFILER_SAMPLECONFIG"), std::string::npos);
  EXPECT_STREQ(library_.orders->calls, "");
}

// in-application 8.5: it is preloaded by its path, and need not have a soname.
TEST_F(CollectorTest, AProcessWithTheVendorsHookOfKernelsIsLeftAlone) {
  void* const hook = ::dlopen(PROFD_FAKE_HOME "/libascend_kernel_hook.so", RTLD_NOW);
  ASSERT_NE(hook, nullptr) << ::dlerror();
  EXPECT_TRUE(StartReaches(PROFD_COLLECT_BUSY, PROFD_COLLECT_KERNEL));
  EXPECT_STREQ(library_.orders->calls, "");
  ::dlclose(hook);
  EXPECT_TRUE(Reaches(PROFD_COLLECT_ON));
}

TEST_F(CollectorTest, RefusedKindsAreNamed) {
  library_.orders->enable_result[kMemory] = kWithoutLdPreload;
  ASSERT_TRUE(StartReaches(PROFD_COLLECT_PARTIAL, PROFD_COLLECT_KERNEL | PROFD_COLLECT_MEMORY));
  EXPECT_EQ(Report().code, kWithoutLdPreload);
  EXPECT_EQ(Report().kinds, uint32_t{PROFD_COLLECT_KERNEL});
  EXPECT_STREQ(Report().detail, "refused: memory; LD_PRELOAD=libmspti.so is missing");
}

// The one kind of before 2026-02 is for both.
TEST_F(CollectorTest, OldVersionsHaveOneKindOfApi) {
  library_.orders->enable_result[kAclApi] = kInvalidParameter;
  library_.orders->enable_result[kNodeApi] = kInvalidParameter;
  ASSERT_TRUE(Starts(kApis));
  EXPECT_EQ(Report().kinds, kApis);
  EXPECT_STREQ(library_.orders->calls, "SR+k+d+l");
}

TEST_F(CollectorTest, NoKindAtAllIsUnsupported) {
  library_.orders->enable_result[kKernel] = kInvalidParameter;
  ASSERT_TRUE(StartReaches(PROFD_COLLECT_UNSUPPORTED, PROFD_COLLECT_KERNEL));
  EXPECT_STREQ(library_.orders->calls, "SR+cU");
  // Another start asks again.
  library_.orders->enable_result[kKernel] = 0;
  EXPECT_TRUE(Starts(PROFD_COLLECT_KERNEL));
}

TEST_F(CollectorTest, ExceptionsOfTheVendorAreAFailure) {
  library_.orders->throws_on_subscribe = true;
  ASSERT_TRUE(StartReaches(PROFD_COLLECT_FAILED, PROFD_COLLECT_KERNEL));
  EXPECT_EQ(Report().code, kInner);
  EXPECT_STREQ(Report().detail, "msptiSubscribe threw: no such function");
  library_.orders->throws_on_subscribe = false;
  ASSERT_TRUE(TheCollector().Stop(kPatience));
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  library_.orders->throws_on_flush = true;
  ASSERT_TRUE(Reaches(PROFD_COLLECT_FAILED));
  EXPECT_STREQ(Report().detail, "msptiActivityFlushAll threw: an exception of unknown type");
  library_.orders->throws_on_flush = false;
}

TEST_F(CollectorTest, AnUnsubscribeThatFailsIsRepeated) {
  library_.orders->unsubscribe_result = kInner;
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  ASSERT_TRUE(TheCollector().Stop(kPatience));
  // Its subscription is the single one until then.
  library_.orders->subscribe_result = kMultipleSubscribers;
  ASSERT_TRUE(StartReaches(PROFD_COLLECT_FAILED, PROFD_COLLECT_KERNEL));
  EXPECT_STREQ(Report().detail, "msptiUnsubscribe: 999");
  library_.orders->subscribe_result = 0;
  library_.orders->unsubscribe_result = 0;
  EXPECT_TRUE(Reaches(PROFD_COLLECT_ON));
}

std::atomic<uint64_t> g_steps{0};

TEST_F(CollectorTest, StepsWithoutARecordAreSilence) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL, [](void*) { return g_steps.load(); }));
  const uint64_t flushes = library_.orders->flushes;
  ASSERT_TRUE(Eventually([&] { return library_.orders->flushes > flushes + 5; }));
  EXPECT_EQ(Report().state, PROFD_COLLECT_ON) << "a process that takes no steps is not silent";
  ++g_steps;
  ASSERT_TRUE(Reaches(PROFD_COLLECT_SILENT));
  library_.Kernel(1);
  EXPECT_TRUE(Reaches(PROFD_COLLECT_ON));
}

// As long as kernels come as fast as this, collecting takes more than 2 % of a core; its rounds alone do not.
TEST_F(CollectorTest, LeavesOutKindsOverBudgetByPriority) {
  constexpr uint32_t kKinds = PROFD_COLLECT_KERNEL | kApis | PROFD_COLLECT_RUNTIME_API;
  ASSERT_EQ(Start(kKinds, nullptr, 20), 0);
  std::vector<uint32_t> seen;
  ASSERT_TRUE(Eventually([&] {
    for (uint64_t i = 0; i < 1000; ++i) library_.Kernel(i);
    const profd_collect_report report = Report();
    if (report.state == PROFD_COLLECT_PARTIAL && (seen.empty() || seen.back() != report.left_out)) seen.push_back(report.left_out);
    return !seen.empty() && seen.back() == kKinds;
  }));
  const std::vector<uint32_t> order = {PROFD_COLLECT_RUNTIME_API, PROFD_COLLECT_RUNTIME_API | kApis, kKinds};
  EXPECT_THAT(order, ::testing::IsSupersetOf(seen)) << "a busy test may miss one";
  EXPECT_EQ(Report().kinds, 0u);
  EXPECT_THAT(Report().detail, ::testing::HasSubstr("may take 2.0 %: left out kernel, acl_api, node_api, runtime_api"));
  EXPECT_GT(Ring().ring().cost_ns, 0u);
  // Nothing comes any more; after a while it is tried again.
  ASSERT_TRUE(Eventually([&] { return Report().left_out != kKinds; }));
  ASSERT_TRUE(Starts(kKinds)) << "without a limit all of it is collected";
  EXPECT_EQ(Report().kinds, kKinds);
}

TEST_F(CollectorTest, NothingToCollectDoesNotStart) {
  EXPECT_EQ(Start(0), EINVAL);
  EXPECT_EQ(Start(1U << 20), EINVAL);
}

// What libprofd sees of it: one function. A start is none of this test's business.
TEST(CollectPlugin, IsOneFunctionAndDoesNothingByItself) {
  void* handle = ::dlopen(PROFD_MSPTI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  auto* function = reinterpret_cast<decltype(&profd_collect_plugin)>(
      ::dlsym(handle, PROFD_COLLECT_PLUGIN_FUNCTION));
  ASSERT_NE(function, nullptr);
  const profd_collect_calls* calls = function();
  EXPECT_EQ(calls->version, PROFD_COLLECT_PLUGIN_VERSION);
  EXPECT_EQ(calls->ring(), -1);
  EXPECT_EQ(calls->stop(0), 1);
  EXPECT_EQ(calls->start(nullptr), EINVAL);
  profd_collect_report report = {};
  report.size = sizeof report;
  report.state = PROFD_COLLECT_ON;
  calls->report(&report);
  EXPECT_EQ(report.state, PROFD_COLLECT_OFF);
  EXPECT_EQ(report.records, 0u);
}

// In a forked child nothing of the vendor's library is touched: its locks may be held.
TEST_F(CollectorTest, AForkedChildIsDead) {
  ASSERT_TRUE(Starts(PROFD_COLLECT_KERNEL));
  const std::string calls = library_.orders->calls;
  const pid_t child = ::fork();
  if (child == 0) {
    const uint64_t flushes = library_.orders->flushes;
    const bool dead = Start(PROFD_COLLECT_KERNEL) == ECHILD && TheCollector().Stop(kPatience) &&
                      Report().state == PROFD_COLLECT_OFF && library_.orders->calls == calls &&
                      library_.orders->flushes == flushes;
    ::_exit(dead ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const size_t before = Ring().kernels.size();
  library_.Kernel(1);
  EXPECT_TRUE(EventuallyKernels(before + 1)) << "the parent continues";
}

class CollectorInAProcessOfItsOwn : public ::testing::Test {
 protected:
  CollectorInAProcessOfItsOwn() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // Runs the body in a process that has loaded nothing yet; it has to call exit.
  template <class Body>
  static void RunAlone(Body body) {
    EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
  }
};

TEST_F(CollectorInAProcessOfItsOwn, NothingIsLoadedBeforeTheRuntime) {
  RunAlone([] {
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME, 1);
    bool good = StartReaches(PROFD_COLLECT_WAITING, PROFD_COLLECT_KERNEL);
    good = good && !IsMapped("libmspti.so");
    LoadRuntime();
    good = good && Reaches(PROFD_COLLECT_ON) && IsMapped("libmspti.so");
    std::exit(good ? 0 : 1);
  });
}

TEST_F(CollectorInAProcessOfItsOwn, TheToolsFolderIsSearchedToo) {
  RunAlone([] {
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME "/elsewhere", 1);
    LoadRuntime();
    const bool good = Starts(PROFD_COLLECT_KERNEL);
    std::exit(good ? 0 : 1);
  });
}

TEST_F(CollectorInAProcessOfItsOwn, WithoutALibraryItIsUnsupported) {
  RunAlone([] {
    ::setenv("ASCEND_HOME_PATH", "/nonexistent", 1);
    LoadRuntime();
    const bool good = StartReaches(PROFD_COLLECT_UNSUPPORTED, PROFD_COLLECT_KERNEL) &&
                      std::strstr(Report().detail, "libmspti.so") != nullptr;
    std::exit(good ? 0 : 1);
  });
}

// The order of exit handlers: the test's was registered first, so it runs last and sees what ours did.
TEST_F(CollectorInAProcessOfItsOwn, DeliversBuffersAtExit) {
  RunAlone([] {
    std::atexit([] {
      // Ours waits a second, not longer, where the machine is busy.
      const bool ended = Eventually([] { return Report().state == PROFD_COLLECT_OFF; });
      RingView view(TheCollector().ring());
      if (!ended || view.kernels.size() != 7) ::_exit(9);
    });
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME, 1);
    LoadRuntime();
    FakeLibrary library(PROFD_FAKE_HOME);
    if (!Starts(PROFD_COLLECT_KERNEL)) ::_exit(8);
    for (uint64_t i = 0; i < 7; ++i) library.Kernel(i);
    std::exit(0);
  });
}

// The vendor's objects are destroyed before what was registered ahead of them: here, before any record had come.
TEST_F(CollectorInAProcessOfItsOwn, DeliversBuffersAtExitThoughTheVendorsObjectsAreMadeLate) {
  RunAlone([] {
    std::atexit([] {
      RingView view(TheCollector().ring());
      if (view.kernels.size() != 7) ::_exit(9);
    });
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME, 1);
    LoadRuntime();
    FakeLibrary library(PROFD_FAKE_HOME);
    library.orders->made_by_flush = true;
    constexpr uint32_t kNever = 600'000;
    if (Start(PROFD_COLLECT_KERNEL, nullptr, 0, kNever) != 0 || !Eventually([] { return Report().flushed == 1; })) ::_exit(8);
    for (uint64_t i = 0; i < 7; ++i) library.Kernel(i);
    std::exit(0);
  });
}

// Before 2026-05 the texts may be gone when the complete callback has returned.
TEST_F(CollectorInAProcessOfItsOwn, OldVersionsAreWalkedInTheCallback) {
  RunAlone([] {
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME "/closed", 1);
    LoadRuntime();
    FakeLibrary library(PROFD_FAKE_HOME "/closed");
    library.orders->frees_strings = true;
    if (!Starts(PROFD_COLLECT_KERNEL)) ::_exit(8);
    if (std::strcmp(Report().version, "before 2026-05") != 0) ::_exit(7);
    // More than a buffer: some are handed over by threads of their own.
    for (uint64_t i = 0; i < 80'000; ++i) library.Kernel(i, i % 2 == 0 ? "MatMul" : "Conv2D");
    if (!TheCollector().Stop(kPatience)) ::_exit(6);
    RingView view(TheCollector().ring());
    for (const auto& [id, name] : view.names) {
      if (name != "MatMul" && name != "Conv2D" && name != "KERNEL_AICORE") ::_exit(5);
    }
    ::_exit(view.names.size() == 3 && view.kernels.size() > 10'000 ? 0 : 4);
  });
}

}  // namespace
}  // namespace profd::lib::mspti
