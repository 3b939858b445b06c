// The collector of libprofd_mspti.so in a simulated application: each test is a process of its own, with
// the simulated libraries that the vendor's are in a job.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <set>

#include "client/libprofd/profiler_observer.h"
#include "tests/integration/mspti_job_test_support.h"

namespace {
std::atomic<int64_t> g_wall_step_s{0};
}  // namespace

// Instead of the C library's, for the simulated libraries, too: CLOCK_REALTIME can be set.
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  if (result == 0 && clock == CLOCK_REALTIME) out->tv_sec += g_wall_step_s.load(std::memory_order_relaxed);
  return result;
}

namespace profd::lib::mspti {
namespace {

using sim::InChild;
using std::chrono::milliseconds;
using testing::HasSubstr;

void Launch(uint64_t count, const char* name = "MatMul") {
  for (uint64_t i = 0; i < count; ++i) sim::mspti::Launch(name, nullptr, 1000);
}

TEST_IN_CHILD(MsptiCollector, EveryKernelIsRecordedWithItsNameAndTime) {
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  const int64_t from = ReadClock(CLOCK_MONOTONIC_RAW);
  Launch(300, "first");
  Launch(300, "second");
  ASSERT_TRUE(job.Kernels(600));
  const int64_t to = ReadClock(CLOCK_MONOTONIC_RAW);
  std::set<uint64_t> correlations;
  uint64_t seconds = 0;
  for (const auto& kernel : job.view.kernels) {
    correlations.insert(kernel.record.correlation);
    seconds += job.view.names[kernel.record.name] == "second";
    EXPECT_EQ(job.view.names[kernel.record.type], "KERNEL_AICORE");
    // The vendor's clock steps by some microseconds.
    EXPECT_GT(kernel.start_ns, from - 1'000'000);
    EXPECT_LT(kernel.start_ns, to + 1'000'000);
  }
  EXPECT_EQ(correlations.size(), 600u);
  EXPECT_EQ(seconds, 300u);
  job.Stop();
  EXPECT_EQ(job.Report().lost_bytes + job.Report().dropped, 0u);
  EXPECT_EQ(sim::mspti::ReadCounts().declined, 0u);
}

TEST_IN_CHILD(MsptiCollector, DeliversRecordsUnderWayAtTheEnd) {
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(500);
  sim::mspti::Synchronize();
  job.Stop();
  EXPECT_TRUE(job.Kernels(500));
  EXPECT_EQ(job.Report().state, PROFD_COLLECT_OFF);
}

TEST_IN_CHILD(MsptiCollector, TheHostReportsNoMoreWhenItHasEnded) {
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(1);
  ASSERT_TRUE(job.Kernels(1));
  job.Stop();
  const uint64_t before = sim::mspti::ReadCounts().host_reports;
  Launch(10);
  EXPECT_EQ(sim::mspti::ReadCounts().host_reports, before);
}

TEST_IN_CHILD(MsptiCollector, AnotherSubscriberIsWaitedFor) {
  Job job;
  sim::mspti::Subscriber* torch = nullptr;
  ASSERT_EQ(CALL(sim::mspti::Mspti(), msptiSubscribe)(&torch, nullptr, nullptr), 0);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_BUSY));
  EXPECT_EQ(job.Report().code, kMultipleSubscribers);
  CALL(sim::mspti::Mspti(), msptiUnsubscribe)(torch);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(1);
  EXPECT_TRUE(job.Kernels(1));
}

// As the vendor's profilers do: a command to all modules.
void Command(uint32_t type, uint64_t switches) {
  sim::prof::Command command;
  command.type = type;
  command.switches = switches;
  command.device_count = 1;
  const sim::Library profapi(PROFD_SIM_PROFAPI);
  EXPECT_EQ(CALL(profapi, profSetProfCommand)(&command, sizeof command), 0);
}
constexpr uint64_t kTaskTimeL1 = 0x802;

TEST_IN_CHILD(MsptiCollector, StepsBackForAnotherProfiler) {
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Command(sim::prof::kStart, kTaskTimeL1);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_BUSY));
  EXPECT_THAT(job.Report().detail, HasSubstr("another profiler"));
  const uint64_t recorded = sim::mspti::ReadCounts().recorded[kKernel];
  Launch(5);
  sim::mspti::Synchronize();
  EXPECT_EQ(sim::mspti::ReadCounts().recorded[kKernel], recorded) << "not subscribed";
  Command(sim::prof::kStop, kTaskTimeL1);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(1);
  EXPECT_TRUE(job.Kernels(1));
}

TEST_IN_CHILD(MsptiCollector, DoesNotBeginBesideAnotherProfiler) {
  Job job;
  Command(sim::prof::kStart, kTaskTimeL1);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_BUSY));
  Command(sim::prof::kStop, kTaskTimeL1);
  EXPECT_TRUE(job.Is(PROFD_COLLECT_ON));
}

// MSPTI starts a device that the application sets later, on the application's thread.
TEST_IN_CHILD(MsptiCollector, ItsOwnStartsAreNotOtherProfilers) {
  Job job(PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION | PROFD_COLLECT_ACL_API |
          PROFD_COLLECT_RUNTIME_API);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  EXPECT_EQ(CALL(sim::mspti::Acl(), aclrtSetDevice)(1), 0);
  Launch(20);
  ASSERT_TRUE(job.Kernels(20));
  EXPECT_EQ(job.Report().state, PROFD_COLLECT_ON);
  EXPECT_EQ(job.view.kernels.back().record.device, 1u);
  job.Stop();
  ASSERT_EQ(job.Start(), 0);
  EXPECT_TRUE(Eventually([&] { return job.Report().state == PROFD_COLLECT_ON; }));
}

TEST_IN_CHILD(MsptiCollector, ItsStartForMarksAloneIsNotAnotherProfiler) {
  Job job(PROFD_COLLECT_MARKER);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  EXPECT_EQ(CALL(sim::mspti::Acl(), aclrtSetDevice)(1), 0);
  EXPECT_FALSE(ProfilerObserver::SeesAnother());
  Command(sim::prof::kStart, kTaskTimeL1);
  EXPECT_TRUE(job.Is(PROFD_COLLECT_BUSY));
}

// It never takes back what clients before us had it switch on.
TEST(MsptiCollector, ItsStartWithSwitchesOfEarlierClientsIsNotAnotherProfiler) {
  for (const uint32_t kinds : {PROFD_COLLECT_KERNEL, PROFD_COLLECT_MARKER}) {
    EXPECT_TRUE(InChild([kinds] {
      Job job(kinds);
      sim::mspti::Subscriber* torch = nullptr;
      ASSERT_EQ(CALL(sim::mspti::Mspti(), msptiSubscribe)(&torch, nullptr, nullptr), 0);
      for (const uint32_t kind : {sim::mspti::kRuntimeApi, sim::mspti::kCommunication, sim::mspti::kAclApi}) {
        EXPECT_EQ(CALL(sim::mspti::Mspti(), msptiActivityEnable)(kind), 0);
        EXPECT_EQ(CALL(sim::mspti::Mspti(), msptiActivityDisable)(kind), 0);
      }
      CALL(sim::mspti::Mspti(), msptiUnsubscribe)(torch);
      ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
      EXPECT_EQ(CALL(sim::mspti::Acl(), aclrtSetDevice)(1), 0);
      EXPECT_FALSE(ProfilerObserver::SeesAnother());
    }));
  }
}

// A session's marks may be collected by the other plug-in, whose observer is another copy of this.
TEST_IN_CHILD(MsptiCollector, AStartOfNothingIsNoProfiler) {
  Job job;
  Command(sim::prof::kStart, 0);
  EXPECT_TRUE(ProfilerObserver::Register());
  Command(sim::prof::kStart, 0);
  EXPECT_FALSE(ProfilerObserver::SeesAnother());
  Command(sim::prof::kStart, kTaskTimeL1);
  EXPECT_TRUE(ProfilerObserver::SeesAnother());
}

// The strings are freed when the complete callback has returned, and several of them run at once.
TEST_IN_CHILD(MsptiCollector, ClosedVersionsAreReadInTime) {
  sim::mspti::OldLibrary("closed");
  sim::mspti::PretendPreload();
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  for (int i = 0; i < 200; ++i) {
    Launch(1, "first");
    Launch(1, "second");
  }
  ASSERT_TRUE(job.Kernels(400));
  for (const auto& kernel : job.view.kernels) {
    EXPECT_THAT(job.view.names[kernel.record.name], testing::AnyOf("first", "second"));
  }
}

TEST_IN_CHILD(MsptiCollector, OldVersionsWithoutThePreloadAreSilent) {
  sim::mspti::OldLibrary("old");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(10);
  ++g_steps;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_SILENT));
  EXPECT_THAT(job.Report().detail, HasSubstr("LD_PRELOAD"));
}

TEST_IN_CHILD(MsptiCollector, MemoryNeedsThePreload) {
  sim::mspti::OldLibrary("2026-03");
  Job job(PROFD_COLLECT_KERNEL | PROFD_COLLECT_MEMORY);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_PARTIAL));
  EXPECT_EQ(job.Report().code, kWithoutLdPreload);
  EXPECT_EQ(job.Report().kinds, uint32_t{PROFD_COLLECT_KERNEL});
}

TEST_IN_CHILD(MsptiCollector, RecordsOfTomorrowAreCounted) {
  sim::mspti::Settings("mspti.profile=next");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  EXPECT_TRUE(Eventually([&] {
    Launch(20);
    job.view.Take();
    return job.Report().lost_bytes > 0 && !job.view.kernels.empty();
  }));
}

TEST_IN_CHILD(MsptiCollector, ChipsWithoutChannelsAreSilent) {
  sim::mspti::Settings("mspti.chip=1");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(10);
  ++g_steps;
  EXPECT_TRUE(job.Is(PROFD_COLLECT_SILENT));
}

// Records of the host arrive in these cases.
TEST(MsptiCollector, ADeviceWithoutRecordsIsSilent) {
  for (const bool is_occupied : {false, true}) {
    EXPECT_TRUE(InChild([&] {
      if (!is_occupied) sim::mspti::Settings("mspti.chip=1");
      Job job(PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION | PROFD_COLLECT_ACL_API | PROFD_COLLECT_NODE_API);
      ASSERT_TRUE(!is_occupied || CALL(sim::mspti::Acl(), simAclOpenLog)(0) == 0);
      ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
      ASSERT_TRUE(Eventually([&] {
        Launch(10);
        ++g_steps;
        return job.Report().state == PROFD_COLLECT_SILENT;
      }));
      EXPECT_EQ(job.Report().silent, uint32_t{PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION});
      EXPECT_THAT(job.Report().detail, HasSubstr("without a record of kernel, communication among those of the host"));
      job.view.Take();
      EXPECT_FALSE(job.view.apis.empty());
      EXPECT_TRUE(job.view.kernels.empty());
    }));
  }
}

TEST_IN_CHILD(MsptiCollector, ASilentLibraryIsNoticed) {
  sim::mspti::Settings("mspti.silent=1");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  ++g_steps;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_SILENT));
  sim::mspti::Control("mspti.silent=0");
  Launch(1);
  EXPECT_TRUE(job.Is(PROFD_COLLECT_ON));
}

// The stand-in ends a process whose request takes long, and one that calls it from a callback.
TEST_IN_CHILD(MsptiCollector, RequestsAreQuickAndNeverDeclined) {
  sim::mspti::Settings("mspti.request_limit_ms=10000;mspti.rate=200000;mspti.rate_threads=4");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  ASSERT_TRUE(Eventually([&] {
    job.view.Take();
    return sim::mspti::ReadCounts().recorded[kKernel] > 100'000;
  }));
  sim::mspti::Control("mspti.rate=0");
  job.Stop();
  const sim::mspti::Counts counts = sim::mspti::ReadCounts();
  EXPECT_EQ(counts.declined, 0u);
  EXPECT_EQ(counts.did_not_fit, 0u);
  // Every record is in the ring or counted; a clock for each buffer is there besides.
  job.view.Take();
  const profd_collect_report report = job.Report();
  const uint64_t kernels = counts.recorded[kKernel];
  EXPECT_EQ(job.view.kernels.size() + report.dropped + report.lost_bytes / sizeof(KernelRecord),
            kernels);
}

TEST_IN_CHILD(MsptiCollector, LateAndOvertakingBuffersLoseNothing) {
  sim::mspti::Settings("mspti.hand_over_delay_ms=200;mspti.late_complete=1");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(200);
  sim::mspti::Synchronize();
  ASSERT_TRUE(job.Kernels(200));
  job.Stop();
}

TEST_IN_CHILD(MsptiCollector, ADeadHandOverThreadIsHarmless) {
  sim::mspti::Settings("mspti.dead_hand_over=1");
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(200);
  EXPECT_TRUE(job.Kernels(200));
}

TEST_IN_CHILD(MsptiCollector, AKernelThatEndsBeforeItBeginsIsCounted) {
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  sim::mspti::Control("mspti.backwards=1");
  Launch(3);
  ASSERT_TRUE(job.Kernels(3));
  EXPECT_EQ(job.view.ring().clamped, 1u);
}

// The vendor's library follows with its next pair of clocks, up to 7 s later. The steps are much longer than records are
// late on a crowded host.
TEST(MsptiCollector, AStepOfTheClockDisplacesNoKernel) {
  // Forwards and backwards at the same time: each takes longer than the vendor's library keeps its pair of clocks.
  const pid_t other = ::fork();
  const int64_t step_s = other == 0 ? -60 : 60;
  EXPECT_TRUE(InChild([&] {
    Job job;
    ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
    struct Window {
      int64_t from_ns, to_ns;
    };
    std::vector<Window> windows;
    const int64_t begin = ReadClock(CLOCK_MONOTONIC_RAW);
    for (int64_t now = begin; now - begin < 8'500'000'000; std::this_thread::sleep_for(milliseconds(5))) {
      if (now - begin > 500'000'000) g_wall_step_s = step_s;
      const int64_t from = ReadClock(CLOCK_MONOTONIC_RAW);
      Launch(1);
      sim::mspti::Synchronize();
      now = ReadClock(CLOCK_MONOTONIC_RAW);
      windows.push_back({from, now});
    }
    ASSERT_TRUE(job.Kernels(windows.size()));
    for (const auto& kernel : job.view.kernels) {
      const Window& window = windows.at(kernel.record.correlation - 1);
      EXPECT_GT(kernel.start_ns, window.from_ns - 1'000'000);
      EXPECT_LT(kernel.start_ns, window.to_ns + 1'000'000);
    }
    EXPECT_THAT(job.Report().detail, HasSubstr(step_s > 0 ? "was set by +60.0" : "was set by -60.0"));
  }));
  if (other == 0) ::_exit(HasFailure() ? 1 : 0);
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0) << "backwards";
}

TEST(MsptiCollector, WhateverThrowsIsAFailure) {
  for (const std::string function : {"msptiSubscribe", "msptiActivityEnable", "msptiActivityFlushAll",
                                     "msptiActivityRegisterCallbacks"}) {
    EXPECT_TRUE(InChild([&] {
      sim::mspti::Settings("mspti.throw=" + function);
      Job job;
      ASSERT_TRUE(job.Is(PROFD_COLLECT_FAILED)) << function;
      EXPECT_EQ(job.Report().code, kInner);
    }));
  }
}

// In the child every call of the vendor's library hangs.
TEST_IN_CHILD(MsptiCollector, AForkedChildCallsNothing) {
  Job job;
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(1);
  EXPECT_TRUE(InChild([&] {
    EXPECT_EQ(job.Start(), ECHILD);
    job.Stop();
    EXPECT_EQ(job.Report().state, PROFD_COLLECT_OFF);
  }));
  Launch(1);
  EXPECT_TRUE(job.Kernels(2));
}

// The vendor's objects are destroyed at exit; ours must have flushed them before.
TEST(MsptiCollector, AnExitLosesNothing) {
  static Job* job = nullptr;
  const sim::ChildResult result = sim::RunChild([] {
    std::atexit([] {
      // Ours waits a second, not longer, where the machine is busy.
      if (!Eventually([] { return job->Report().state == PROFD_COLLECT_OFF; })) ::_exit(7);
      job->view.Take();
      if (job->view.kernels.size() != 50) ::_exit(9);
    });
    job = new Job;
    if (!job->Is(PROFD_COLLECT_ON)) ::_exit(8);
    Launch(50);
    sim::mspti::Synchronize();
    std::exit(0);
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST_IN_CHILD(MsptiCollector, ApiCallsCarryTheCorrelationOfWhatTheyLaunched) {
  Job job(PROFD_COLLECT_KERNEL | PROFD_COLLECT_ACL_API | PROFD_COLLECT_NODE_API |
          PROFD_COLLECT_RUNTIME_API);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  Launch(10);
  ASSERT_TRUE(job.Kernels(10));
  ASSERT_TRUE(Eventually([&] {
    job.view.Take();
    return job.view.apis.size() >= 20;
  }));
  std::set<uint64_t> launched, levels;
  for (const auto& kernel : job.view.kernels) launched.insert(kernel.record.correlation);
  for (const auto& api : job.view.apis) {
    levels.insert(api.record.level);
    EXPECT_TRUE(api.record.correlation == 0 || launched.contains(api.record.correlation));
    EXPECT_NE(api.record.thread, 0u);
  }
  EXPECT_GE(levels.size(), 2u);
  EXPECT_FALSE(levels.contains(0));
}

TEST_IN_CHILD(MsptiCollector, SessionsMayFollowEachOther) {
  Job job;
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(job.Start(), 0);
    ASSERT_TRUE(Eventually([&] { return job.Report().state == PROFD_COLLECT_ON; }));
    Launch(5);
    ASSERT_TRUE(job.Kernels(5 * i));
    job.Stop();
  }
}

}  // namespace
}  // namespace profd::lib::mspti
