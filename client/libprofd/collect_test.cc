// Collecting from inside the process as sessions request it, with the real plug-in and a stand-in of the
// vendor's library. Whatever loads something is a process of its own: the plug-in stays for good.
#include <dirent.h>
#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "client/libprofd/fake_daemon_test_support.h"
#include "client/libprofd/mspti/collector_test_support.h"

namespace profd::lib {
namespace {

using attach::CollectState;
using attach::CollectorReport;
using enum attach::CollectKind;
using attach::SessionNotice;

bool HasLibrary(const char* name) {
  void* handle = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}
bool HasPlugin() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libprofd_mspti.so") != std::string::npos) return true;
  }
  return false;
}
bool HasThread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    if (std::getline(std::ifstream(task.path() / "comm") >> std::ws, name) &&
        name == "profd-collect") {
      return true;
    }
  }
  return false;
}

SessionNotice Running(const std::string& id, attach::CollectKinds kinds) {
  SessionNotice notice;
  notice.session_id = id;
  notice.state = "running";
  notice.collect.emplace();
  notice.collect->kinds = std::move(kinds);
  notice.collect->flush_ms = 20;
  notice.collect->ring_bytes = 1 << 20;
  return notice;
}
SessionNotice Ended(const std::string& id) {
  SessionNotice notice;
  notice.session_id = id;
  notice.state = "ended";
  return notice;
}

class CollectTest : public LibprofdTest {
 protected:
  CollectTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void SetUp() override {
    LibprofdTest::SetUp();
    ::setenv("ASCEND_HOME_PATH", PROFD_FAKE_HOME, 1);
    ::unsetenv("ASCEND_RT_VISIBLE_DEVICES");
  }
  static void LoadRuntime() {
    ASSERT_NE(::dlopen(PROFD_FAKE_HOME "/libascendcl.so", RTLD_NOW), nullptr) << ::dlerror();
  }
  // Runs the body in a process that has loaded nothing yet.
  template <class Body>
  void RunAlone(Body body) {
    EXPECT_EXIT(
        {
          body();
          profd_shutdown();
          std::filesystem::remove_all(folder_.path());
          ::_exit(HasFailure() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
  }
  // The same with a daemon it is attached to, and the runtime loaded.
  template <class Body>
  void RunAttached(Body body) {
    RunAlone([&] {
      AttachedDaemon daemon(path_);
      LoadRuntime();
      body(daemon);
    });
  }
  // The last report of a session that has this state.
  static CollectorReport Reaches(FakeDaemon& daemon, const std::string& id,
                                 CollectState state) {
    CollectorReport found;
    for (size_t n = 0;; ++n) {
      found = daemon.Expect<CollectorReport>(n);
      if (found.session_id == id && found.state == state) return found;
      if (HasFailure()) return found;
    }
  }
};

TEST_F(CollectTest, WithoutARequestNothingIsLoaded) {
  RunAttached([](FakeDaemon& daemon) {
    SessionNotice notice;
    notice.session_id = "s";
    notice.state = "running";
    daemon.Send(notice);
    ASSERT_TRUE(Eventually([] { return profd_active() == 1; }));
    EXPECT_FALSE(HasPlugin());
    EXPECT_FALSE(HasThread());
    EXPECT_FALSE(HasLibrary("libmspti.so"));
    EXPECT_EQ(daemon.Count<CollectorReport>(), 0u);
  });
}

TEST_F(CollectTest, ASessionGetsTheKernelsOfItsTime) {
  RunAttached([](FakeDaemon& daemon) {
    daemon.Send(Running("s-1", {kKernel, kAclApi}));
    const CollectorReport on = Reaches(daemon, "s-1", CollectState::kOn);
    EXPECT_EQ(on.provider, attach::CollectProvider::kMspti);
    EXPECT_EQ(on.kinds, (attach::CollectKinds{kKernel, kAclApi}));
    EXPECT_EQ(on.version, "2026-05 or later");
    EXPECT_TRUE(on.has_ring);
    ASSERT_EQ(daemon.RingCount(), 2u) << "marks and activity";
    EXPECT_TRUE(HasThread());
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    for (uint64_t i = 1; i <= 10; ++i) library.Kernel(i);
    daemon.Send(Ended("s-1"));
    EXPECT_FALSE(Reaches(daemon, "s-1", CollectState::kOff).has_ring);
    // All of it is in the ring when the end is reported.
    mspti::RingView view(daemon.RingFd(1));
    EXPECT_EQ(view.kernels.size(), 10u);
    EXPECT_TRUE(Eventually([] { return !HasThread(); }));
  });
}

// As beside a flight recorder, which is in no hurry.
TEST_F(CollectTest, ARequestWithoutAnIntervalHasTheDefaultOneBesideALongerOne) {
  RunAttached([](FakeDaemon& daemon) {
    SessionNotice recorder = Running("recorder", {kKernel});
    recorder.collect->flush_ms = 3'600'000;
    daemon.Send(recorder);
    Reaches(daemon, "recorder", CollectState::kOn);
    SessionNotice session = Running("s-1", {kKernel});
    session.collect->flush_ms = 0;
    daemon.Send(session);
    Reaches(daemon, "s-1", CollectState::kOn);
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    for (uint64_t i = 1; i <= 10; ++i) library.Kernel(i);
    mspti::RingView view(daemon.RingFd(1));
    EXPECT_TRUE(Eventually([&] {
      view.Take();
      return view.kernels.size() == 10;
    }));
  });
}

TEST_F(CollectTest, ASessionIsNotServedBeforeItsOwnKindsAre) {
  RunAttached([](FakeDaemon& daemon) {
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    library.orders->enable_result[mspti::kMemory] = mspti::kWithoutLdPreload;
    daemon.Send(Running("narrow", {kCommunication}));
    Reaches(daemon, "narrow", CollectState::kOn);
    daemon.Send(Running("partial", {kCommunication, kMemory}));
    Reaches(daemon, "partial", CollectState::kPartial);
    daemon.Send(Running("wide", {kKernel, kCommunication}));
    Reaches(daemon, "wide", CollectState::kOn);
    for (size_t n = 0; n < daemon.Count<CollectorReport>(); ++n) {
      const auto report = daemon.Expect<CollectorReport>(n);
      EXPECT_EQ(report.state, report.session_id == "partial" ? CollectState::kPartial : CollectState::kOn);
      EXPECT_EQ(report.kinds.Has(kKernel), report.session_id == "wide");
    }
  });
}

// So that the first step of the session is recorded from its begin.
TEST_F(CollectTest, AnArmedSessionCollectsFromTheStepBefore) {
  RunAttached([](FakeDaemon& daemon) {
    SessionNotice armed = Running("s", {kKernel});
    armed.state = "armed";
    armed.start_step = 11;
    armed.steps = 1;
    daemon.Send(armed);
    profd_step_begin(8);  // a second one would show that steps are short here, and that it is time
    daemon.Send(Running("other", {}));  // answered when the ones before it are
    Reaches(daemon, "other", CollectState::kUnsupported);
    EXPECT_FALSE(HasPlugin());
    profd_step_begin(10);
    EXPECT_TRUE(Reaches(daemon, "s", CollectState::kOn).has_ring);
    EXPECT_EQ(daemon.Count<attach::StepReport>(), 0u) << "the session has not begun";
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    library.Kernel(1);
    profd_step_begin(11);
    EXPECT_EQ(daemon.Expect<attach::StepReport>(0).step, 11);
    library.Kernel(2);
    daemon.Send(Running("s", {kKernel}));
    library.Kernel(3);
    daemon.Send(Ended("s"));
    Reaches(daemon, "s", CollectState::kOff);
    mspti::RingView view(daemon.RingFd(1));
    EXPECT_EQ(view.kernels.size(), 3u) << "without an interruption";
  });
}

// So that what the process does next is recorded.
TEST_F(CollectTest, AStartReturnsWhenTheCollectorWorks) {
  RunAlone([this] {
    FakeDaemon daemon(path_, [](const attach::ToDaemon& message) -> std::vector<attach::ToProcess> {
      const auto* start = std::get_if<attach::StartCall>(&message);
      if (start == nullptr) return {};
      attach::Reply reply;
      reply.seq = start->seq;
      reply.session.emplace().session_id = "s";
      reply.session->state = "running";
      return {Running("s", {kKernel}), reply};
    });
    Attach();
    LoadRuntime();
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(profd_start(nullptr), PROFD_OK) << profd_last_error();
    // It waits two seconds, not longer, where the machine is busy.
    const bool waited = std::chrono::steady_clock::now() - begin < std::chrono::seconds(2);
    library.Kernel(1);
    daemon.Send(Ended("s"));
    Reaches(daemon, "s", CollectState::kOff);
    if (!waited) return;
    mspti::RingView view(daemon.RingFd(1));
    EXPECT_EQ(view.kernels.size(), 1u);
  });
}

TEST_F(CollectTest, AnArmedSessionThatEndsCollectsNothing) {
  RunAttached([](FakeDaemon& daemon) {
    SessionNotice armed = Running("s", {kKernel});
    armed.state = "armed";
    armed.start_step = 11;
    daemon.Send(armed);
    daemon.Send(Ended("s"));
    daemon.Send(Running("other", {}));
    Reaches(daemon, "other", CollectState::kUnsupported);
    profd_step_begin(10);
    profd_step_begin(11);
    EXPECT_FALSE(HasPlugin());
    EXPECT_FALSE(HasThread());
  });
}

TEST_F(CollectTest, TheRuntimeMayComeLater) {
  RunAlone([this] {
    AttachedDaemon daemon(path_);
    daemon.Send(Running("s", {kKernel}));
    EXPECT_EQ(Reaches(daemon, "s", CollectState::kWaiting).detail, "the process has not loaded libascendcl.so");
    LoadRuntime();
    Reaches(daemon, "s", CollectState::kOn);
  });
}

TEST_F(CollectTest, SessionsShareTheCollector) {
  RunAttached([](FakeDaemon& daemon) {
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    library.orders->enable_result[mspti::kMemory] = mspti::kWithoutLdPreload;
    daemon.Send(Running("a", {kKernel}));
    Reaches(daemon, "a", CollectState::kOn);
    daemon.Send(Running("b", {kMarker, kMemory}));
    const CollectorReport partial = Reaches(daemon, "b", CollectState::kPartial);
    EXPECT_EQ(partial.code, mspti::kWithoutLdPreload);
    EXPECT_EQ(partial.kinds, attach::CollectKinds{attach::CollectKind::kMarker});
    EXPECT_FALSE(partial.has_ring) << "once in a connection";
    daemon.Send(Ended("b"));
    Reaches(daemon, "b", CollectState::kOff);
    EXPECT_TRUE(HasThread()) << "session a continues";
    daemon.Send(Ended("a"));
    Reaches(daemon, "a", CollectState::kOff);
  });
}

// The channels of the device are another's, or the chip has none: the host's records come all the same.
TEST_F(CollectTest, ADeviceThatIsSilentIsOnlyThatForSessionsOfTheHost) {
  RunAttached([](FakeDaemon& daemon) {
    mspti::FakeLibrary library(PROFD_FAKE_HOME);
    daemon.Send(Running("both", {kKernel, kCommunication, kAclApi}));
    Reaches(daemon, "both", CollectState::kOn);
    daemon.Send(Running("host", {kAclApi}));
    Reaches(daemon, "host", CollectState::kOn);
    // Before the first step: a step without a record of any kind is the silence of all.
    library.Api(1);
    mspti::RingView view(daemon.RingFd(1));
    ASSERT_TRUE(Eventually([&view] {
      view.Take();
      return !view.apis.empty();
    }));
    std::mutex mutex;
    std::condition_variable ended;
    bool over = false;
    std::thread steps([&] {
      std::unique_lock lock(mutex);
      int64_t step = 0;
      do {
        profd_step_begin(++step);
        library.Api(static_cast<uint64_t>(step));
      } while (!ended.wait_for(lock, std::chrono::milliseconds(10), [&over] { return over; }));
    });
    const CollectorReport silent = Reaches(daemon, "both", CollectState::kSilent);
    EXPECT_EQ(silent.kinds, (attach::CollectKinds{kKernel, kCommunication, kAclApi}));
    EXPECT_NE(silent.detail.find("without a record of kernel, communication"), std::string::npos) << silent.detail;
    const size_t reports = daemon.Count<CollectorReport>();
    library.Kernel(1);
    const CollectorReport last = daemon.Expect<CollectorReport>(reports);
    EXPECT_EQ(last.session_id, "both") << "the other one's has not changed";
    EXPECT_EQ(last.state, CollectState::kOn);
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    ended.notify_one();
    steps.join();
  });
}

TEST_F(CollectTest, AnotherSessionMayFollowAtOnce) {
  RunAttached([](FakeDaemon& daemon) {
    for (const std::string id : {"a", "b", "c"}) {
      daemon.Send(Running(id, {kKernel}));
      Reaches(daemon, id, CollectState::kOn);
      daemon.Send(Ended(id));
    }
    daemon.Send(Running("d", {kKernel}));
    Reaches(daemon, "d", CollectState::kOn);
    Reaches(daemon, "c", CollectState::kOff);
  });
}

TEST_F(CollectTest, ANewDaemonIsSentTheRingAgain) {
  RunAttached([](FakeDaemon& daemon) {
    daemon.Send(Running("s", {kKernel}));
    EXPECT_TRUE(Reaches(daemon, "s", CollectState::kOn).has_ring);
    daemon.DropConnections();
    daemon.Expect<attach::Hello>(1);
    ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK);
    ASSERT_TRUE(Eventually([] { return !HasThread(); })) << "there is no reader";
    daemon.Send(Running("t", {kKernel}));
    EXPECT_TRUE(Reaches(daemon, "t", CollectState::kOn).has_ring);
  });
}

TEST_F(CollectTest, TheEnvironmentMayForbidIt) {
  RunAlone([this] {
    ::setenv("PROFD_COLLECT", "off", 1);
    AttachedDaemon daemon(path_);
    LoadRuntime();
    daemon.Send(Running("s", {kKernel}));
    EXPECT_EQ(Reaches(daemon, "s", CollectState::kOff).detail, "PROFD_COLLECT=off");
    EXPECT_FALSE(HasPlugin());
  });
}

TEST_F(CollectTest, TheApplicationMayForbidIt) {
  RunAlone([this] {
    profd_collect_allow(PROFD_ALLOW_ACLPROF);
    AttachedDaemon daemon(path_);
    LoadRuntime();
    daemon.Send(Running("s", {kKernel}));
    Reaches(daemon, "s", CollectState::kOff);
    EXPECT_FALSE(HasPlugin());
    profd_collect_allow(PROFD_ALLOW_ALL);
    Reaches(daemon, "s", CollectState::kOn);
    profd_collect_allow(0);
    EXPECT_TRUE(Eventually([] { return !HasThread(); }));
  });
}

TEST_F(CollectTest, OtherProvidersAndKindsAreUnsupported) {
  AttachedDaemon daemon(path_);
  SessionNotice notice = Running("a", {kKernel});
  notice.collect->provider = attach::CollectProvider::kAclprof;
  daemon.Send(notice);
  Reaches(daemon, "a", CollectState::kUnsupported);
  daemon.Send(Running("b", {}));  // kinds of a later version only
  Reaches(daemon, "b", CollectState::kUnsupported);
  notice = Running("c", {kKernel});
  notice.collect->provider = attach::CollectProvider::kUnknown;
  daemon.Send(notice);
  Reaches(daemon, "c", CollectState::kUnsupported);
  EXPECT_FALSE(HasPlugin());
}

TEST_F(CollectTest, ADaemonThatDoesNotAcceptReportsGetsNone) {
  FakeDaemon daemon(
      path_,
      [](const attach::ToDaemon& message) -> std::vector<attach::ToProcess> {
        if (!std::holds_alternative<attach::Hello>(message)) return {};
        attach::Welcome welcome;
        welcome.attach_id = 1;
        return {welcome};
      },
      /*welcomes=*/false);
  Attach();
  daemon.Send(Running("s", {kKernel}));
  ASSERT_TRUE(Eventually([] { return profd_active() == 1; }));
  profd_shutdown();
  daemon.Expect<attach::Bye>();
  EXPECT_EQ(daemon.Count<CollectorReport>(), 0u);
  EXPECT_FALSE(HasPlugin());
}

}  // namespace
}  // namespace profd::lib
