// Marks, ranges and steps; threads, forks and daemons that come and go meanwhile.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <chrono>
#include <thread>

#include "client/libprofd/fake_daemon_test_support.h"

namespace profd::lib {
namespace {

using attach::MarkKind;
using attach::SessionNotice;

class MarksTest : public LibprofdTest {
 protected:
  void Activate(FakeDaemon& daemon) {
    daemon.Send(SessionNotice{"s-1", "running", {}, 0, {}});
    ASSERT_TRUE(Eventually([] { return profd_active() == 1; }));
  }
};

TEST_F(MarksTest, OnlyARunningSessionTakesMarks) {
  AttachedDaemon daemon(path_);
  const auto ring = daemon.Ring();
  ring->TakeAll();
  profd_mark("too early");
  profd_range_push("too early");
  profd_range_pop();
  EXPECT_TRUE(ring->TakeAll().empty());
  Activate(daemon);
  EXPECT_EQ(ring->ring().active, 1U);
  errno = 77;
  profd_mark("now");
  profd_range_push("outer");
  profd_range_pop();
  profd_mark(nullptr);
  EXPECT_EQ(errno, 77);
  const auto taken = ring->TakeAll();
  ASSERT_EQ(taken.size(), 4U);
  EXPECT_EQ(taken[0].name, "now");
  EXPECT_EQ(taken[0].kind, MarkKind::kMark);
  EXPECT_EQ(taken[0].thread, static_cast<int32_t>(::syscall(SYS_gettid)));
  EXPECT_GT(taken[0].time_ns, 0);
  EXPECT_EQ(taken[1].name, "outer");
  EXPECT_EQ(taken[1].kind, MarkKind::kRangePush);
  EXPECT_GE(taken[1].time_ns, taken[0].time_ns);
  EXPECT_EQ(taken[2].kind, MarkKind::kRangePop);
  EXPECT_EQ(taken[3].name, "");
  daemon.Send(SessionNotice{"s-1", "ended", {}, 0, {}});
  ASSERT_TRUE(Eventually([] { return profd_active() == 0; }));
  EXPECT_EQ(ring->ring().active, 0U);
  profd_mark("too late");
  EXPECT_TRUE(ring->TakeAll().empty());
}

TEST_F(MarksTest, RangesWithIdsAndDomains) {
  AttachedDaemon daemon(path_);
  const auto ring = daemon.Ring();
  EXPECT_EQ(profd_range_start("d", "too early"), 0U);
  profd_range_end(0);
  Activate(daemon);
  ring->TakeAll();
  const uint64_t first = profd_range_start("communication", "all-reduce");
  const uint64_t second = profd_range_start(nullptr, nullptr);
  EXPECT_NE(first, second);
  profd_mark_in("", "plain");
  profd_range_end(first);
  profd_range_end(0);
  const auto taken = ring->TakeAll();
  ASSERT_EQ(taken.size(), 4U);
  EXPECT_EQ(taken[0].kind, MarkKind::kRangeStart);
  EXPECT_EQ(taken[0].name, "communication\x1f" "all-reduce");
  EXPECT_EQ(taken[0].value, static_cast<int64_t>(first));
  EXPECT_EQ(taken[1].name, "");
  EXPECT_EQ(taken[2].name, "plain");
  EXPECT_EQ(taken[3].kind, MarkKind::kRangeEnd);
  EXPECT_EQ(taken[3].value, static_cast<int64_t>(first));
}

TEST_F(MarksTest, StepsAreReportedWithoutASession) {
  AttachedDaemon daemon(path_);
  const auto ring = daemon.Ring();
  ring->TakeAll();
  {
    const Step step(7);
    const Range range("not wanted");
  }
  const auto taken = ring->TakeAll();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].kind, MarkKind::kStepBegin);
  EXPECT_EQ(taken[0].value, 7);
  EXPECT_EQ(taken[1].kind, MarkKind::kStepEnd);
  EXPECT_EQ(daemon.Count<attach::StepReport>(), 0U);
}

TEST_F(MarksTest, AnArmedSessionHearsOfItsSteps) {
  AttachedDaemon daemon(path_);
  daemon.Send(SessionNotice{"s-1", "armed", 11, 2, {}});
  // Packets come in order: once this one has, so has the one before.
  daemon.Send(SessionNotice{"other", "running", {}, 0, {}});
  ASSERT_TRUE(Eventually([] { return profd_active() == 1; }));
  for (int64_t step = 9; step < 15; ++step) {
    profd_step_begin(step);
    profd_step_end(step);
  }
  const auto begin = daemon.Expect<attach::StepReport>(0);
  EXPECT_EQ(begin.session_id, "s-1");
  EXPECT_EQ(begin.step, 11);
  EXPECT_TRUE(begin.begin);
  const auto end = daemon.Expect<attach::StepReport>(1);
  EXPECT_EQ(end.step, 12);
  EXPECT_FALSE(end.begin);
}

TEST_F(MarksTest, ThreadsLoseNothingUncounted) {
  constexpr int kThreads = 64;
  constexpr int kMarks = 2000;
  AttachedDaemon daemon(path_);
  Activate(daemon);
  const auto ring = daemon.Ring();
  ring->TakeAll();
  profd_counters before;
  profd_get_counters(&before);
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&running, thread] {
      const std::string name = "thread " + std::to_string(thread);
      for (int i = 0; i < kMarks; ++i) profd_mark(name.c_str());
      --running;
    });
  }
  uint64_t taken = 0;
  std::map<std::string, int32_t> thread_of;
  const auto drain = [&] {
    for (const auto& mark : ring->TakeAll()) {
      ++taken;
      EXPECT_EQ(thread_of.emplace(mark.name, mark.thread).first->second, mark.thread);
    }
  };
  while (running > 0) drain();
  for (auto& thread : threads) thread.join();
  drain();
  profd_counters after;
  profd_get_counters(&after);
  EXPECT_EQ(after.published - before.published, taken);
  EXPECT_EQ(taken + after.dropped - before.dropped, uint64_t{kThreads} * kMarks);
}

TEST_F(MarksTest, AFullRingIsCounted) {
  AttachedDaemon daemon(path_);
  Activate(daemon);
  const auto ring = daemon.Ring();
  ring->TakeAll();
  profd_counters before, after;
  profd_get_counters(&before);
  const uint64_t slots = ring->ring().slots;
  for (uint64_t i = 0; i < slots + 100; ++i) profd_mark("m");
  profd_get_counters(&after);
  EXPECT_EQ(after.published - before.published, slots);
  EXPECT_EQ(after.dropped - before.dropped, 100U);
  EXPECT_EQ(ring->TakeAll().size(), slots);
}

TEST_F(MarksTest, EverythingAtOnceWhileDaemonsComeAndGo) {
  std::atomic<bool> ending = false;
  ASSERT_EQ(profd_init(nullptr), PROFD_OK);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&ending, thread] {
      profd_start_args args = PROFD_START_ARGS_INIT;
      args.timeout_ms = 20;
      char text[256];
      for (int64_t step = 0; !ending; ++step) {
        const Step scope(step);
        profd_mark("m");
        switch (thread) {
          case 0:
            profd_start_with(&args);
            break;
          case 1:
            profd_stop_within(20);
            break;
          case 2:
            profd_session_json(text, sizeof text, 5);
            break;
          case 3:
            profd_set_metadata("step", std::to_string(step).c_str());
            break;
          case 4:
            profd_attach(5);
            break;
          default:
            break;
        }
      }
    });
  }
  for (int life = 0; life < 5; ++life) {
    FakeDaemon daemon(path_, [](const attach::ToDaemon& message) -> std::vector<attach::ToProcess> {
      if (const auto* start = std::get_if<attach::StartCall>(&message)) {
        return {SessionNotice{"s-1", "armed", 1, 1, {}}, SessionNotice{"s-2", "running", {}, 3, {}},
                Reply(start->seq, "s-1")};
      }
      if (const auto* stop = std::get_if<attach::StopCall>(&message)) {
        return {Reply(stop->seq, "s-1", "done"), SessionNotice{"s-2", "ended", {}, 0, {}}};
      }
      return {};
    });
    daemon.Expect<attach::StartCall>();
    daemon.Expect<attach::MetadataCall>();
    if (life == 2) profd_shutdown();
    if (life == 2) profd_init(nullptr);
  }
  ending = true;
  for (auto& thread : threads) thread.join();
}

// A child of a process with threads may start none under TSan.
#if defined(__SANITIZE_THREAD__)
#define FORKS_AND_STARTS_THREADS 0
#elif defined(__has_feature)
#define FORKS_AND_STARTS_THREADS !__has_feature(thread_sanitizer)
#else
#define FORKS_AND_STARTS_THREADS 1
#endif
#if FORKS_AND_STARTS_THREADS

// Runs body in a forked child; its exit code.
int InChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(MarksTest, AChildIsAProcessOfItsOwn) {
  ::setenv("PROFILING_OPTIONS", "{}", 1);
  FakeDaemon daemon(path_);
  profd_config config = PROFD_CONFIG_INIT;
  config.job_id = "family";
  config.rank = 3;
  config.world_size = 8;
  Attach(&config);
  Activate(daemon);
  const auto ring = daemon.Ring();
  ring->TakeAll();
  EXPECT_EQ(InChild([] {
              if (profd_active() != 0 || profd_connected() != 0) return 1;
              profd_mark("of the child");
              if (profd_attach(PatienceMs()) != PROFD_OK) return 2;
              profd_step_begin(5);
              profd_counters counters;
              profd_get_counters(&counters);
              return counters.published == 1 ? 0 : 3;
            }),
            0);
  const auto hello = daemon.Expect<attach::Hello>(1);
  EXPECT_EQ(hello.job_id, "family");
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.options_json, "");  // its parent's session is enough
  EXPECT_TRUE(ring->TakeAll().empty());
  // The parent continues as if nothing had been.
  EXPECT_EQ(profd_connected(), 1);
  profd_mark("of the parent");
  const auto taken = ring->TakeAll();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].name, "of the parent");
  EXPECT_EQ(profd_set_metadata("a", "b"), PROFD_OK);
  int connection = -1;
  daemon.Expect<attach::MetadataCall>(0, &connection);
  EXPECT_EQ(connection, 0);
}

TEST_F(MarksTest, AChildHoldsNothingOfItsParent) {
  AttachedDaemon daemon(path_);
  int doorbell[2];
  ASSERT_EQ(::pipe(doorbell), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // Stays until the parent lets go, and has called nothing.
    ::close(doorbell[1]);
    char byte = 0;
    ::_exit(::read(doorbell[0], &byte, 1) == 0 ? 0 : 1);
  }
  profd_shutdown();
  EXPECT_TRUE(daemon.ExpectClosed(0));
  ::close(doorbell[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(doorbell[0]);
}

// Else a session that begins with step 11 would collect from the fork on.
TEST_F(MarksTest, AChildHasBegunNoStepOfItsParent) {
  AttachedDaemon daemon(path_);
  profd_step_begin(10);
  int doorbell[2];
  ASSERT_EQ(::pipe(doorbell), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(doorbell[1]);
    if (profd_attach(PatienceMs()) != PROFD_OK || profd_set_metadata("attached", "yes") != PROFD_OK) ::_exit(2);
    char byte = 0;
    ::_exit(::read(doorbell[0], &byte, 1) == 0 ? 0 : 1);
  }
  ::close(doorbell[0]);
  daemon.Expect<attach::MetadataCall>();
  SessionNotice notice;
  notice.session_id = "armed";
  notice.state = "armed";
  notice.start_step = 11;
  notice.collect.emplace().kinds = {attach::CollectKind::kKernel};
  daemon.Send(notice);
  notice.session_id = "running";  // answered behind the one before, if that is due
  notice.state = "running";
  daemon.Send(notice);
  EXPECT_EQ(daemon.Expect<attach::CollectorReport>().session_id, "running");
  ::close(doorbell[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(MarksTest, ForksInTheMiddleOfEverything) {
#ifdef __SANITIZE_ADDRESS__
  // Its allocator's locks are not taken over a fork: the child's threads can hang in malloc.
  GTEST_SKIP() << "not with AddressSanitizer";
#endif
  AttachedDaemon daemon(path_);
  Activate(daemon);
  std::atomic<bool> ending = false;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&ending, thread] {
      for (int64_t step = 0; !ending; ++step) {
        const Step scope(step);
        profd_mark("m");
        if (thread == 0) profd_attach(1);
        if (thread == 1) profd_set_metadata("step", "x");
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    if (i % 5 == 4) daemon.DropConnections();
    EXPECT_EQ(InChild([] {
                profd_mark("child");
                profd_step_begin(1);
                // Another generation.
                return InChild([] { return profd_attach(PatienceMs()) == PROFD_OK ? 0 : 1; });
              }),
              0);
  }
  ending = true;
  for (auto& thread : threads) thread.join();
}

// In processes that have not called anything before: a threadsafe death test runs in a fresh one.
TEST_F(MarksTest, AForkBesideTheFirstCall) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "not with AddressSanitizer";  // as above
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int later_us = 0; later_us < 60; ++later_us) {
    ASSERT_EXIT(
        {
          std::barrier together(2);
          std::thread first([&together] {
            together.arrive_and_wait();
            profd_mark("first");
          });
          together.arrive_and_wait();
          const auto begin = std::chrono::steady_clock::now();
          while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(later_us)) continue;
          const int code = InChild([] {
            ::alarm(kPatience.count());
            profd_mark("child");
            return 17;
          });
          first.join();
          std::exit(code);
        },
        ::testing::ExitedWithCode(17), "");
  }
}

#endif

}  // namespace
}  // namespace profd::lib
