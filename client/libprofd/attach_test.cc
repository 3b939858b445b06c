// Attaching and detaching: what the daemon receives, and daemons that are absent, slow, rude or
// gone.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include "client/libprofd/fake_daemon_test_support.h"

namespace profd::lib {
namespace {

using ::testing::HasSubstr;

class AttachTest : public LibprofdTest {};

TEST_F(AttachTest, TheHelloCarriesTheConfiguration) {
  FakeDaemon daemon(path_);
  const int32_t devices[] = {4, 5};
  profd_config config = PROFD_CONFIG_INIT;
  config.job_id = "job-7";
  config.rank = 0;
  config.local_rank = 3;
  config.world_size = 16;
  config.devices = devices;
  config.device_count = 2;
  config.framework = "pytorch";
  Attach(&config);
  const auto hello = daemon.Expect<attach::Hello>();
  EXPECT_EQ(hello.version, attach::kProtocolVersion);
  EXPECT_EQ(hello.made_by, std::string("libprofd ") + profd_version());
  EXPECT_EQ(hello.job_id, "job-7");
  EXPECT_EQ(hello.rank, 0);
  EXPECT_EQ(hello.local_rank, 3);
  EXPECT_EQ(hello.world_size, 16);
  EXPECT_EQ(hello.devices, (std::vector<int>{4, 5}));
  EXPECT_EQ(hello.framework, "pytorch");
  EXPECT_EQ(hello.options_json, "");
  EXPECT_TRUE(hello.has_ring);
  EXPECT_EQ(profd_connected(), 1);
  EXPECT_EQ(profd_active(), 0);
}

TEST_F(AttachTest, ZerosSayNothing) {
  FakeDaemon daemon(path_);
  profd_config config{};
  config.size = sizeof config;
  Attach(&config);
  const auto hello = daemon.Expect<attach::Hello>();
  EXPECT_EQ(hello.rank, std::nullopt);
  EXPECT_EQ(hello.local_rank, std::nullopt);
  EXPECT_EQ(hello.world_size, std::nullopt);
  EXPECT_EQ(hello.job_id, "");
}

TEST_F(AttachTest, TheRingIsSealedAndLaidOut) {
  AttachedDaemon daemon(path_);
  const auto ring = daemon.Ring();
  EXPECT_EQ(ring->ring().magic, attach::kRingMagic);
  EXPECT_EQ(ring->ring().version, attach::kRingVersion);
  EXPECT_EQ(ring->bytes(), attach::RingBytes(ring->ring().slots));
  const int seals = ::fcntl(daemon.RingFd(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
}

TEST_F(AttachTest, WrongConfigurationsAreRefused) {
  const auto expect_invalid = [](profd_config config, const char* why) {
    EXPECT_EQ(profd_init(&config), PROFD_INVALID);
    EXPECT_THAT(profd_last_error(), HasSubstr(why));
  };
  profd_config config = PROFD_CONFIG_INIT;
  config.size = 0;
  expect_invalid(config, "size");
  config = PROFD_CONFIG_INIT;
  config.rank = -2;
  expect_invalid(config, "rank");
  config = PROFD_CONFIG_INIT;
  config.device_count = 1;
  expect_invalid(config, "device_count");
  const int32_t devices[] = {-1};
  config.devices = devices;
  expect_invalid(config, "devices are");
  config = PROFD_CONFIG_INIT;
  const std::string long_name(300, 'j');
  config.job_id = long_name.c_str();
  expect_invalid(config, "job_id");
}

TEST_F(AttachTest, ASmallerStructIsAnOlderCaller) {
  FakeDaemon daemon(path_);
  profd_config config = PROFD_CONFIG_INIT;
  config.size = offsetof(profd_config, rank);
  config.job_id = "old";
  config.rank = 5;  // not part of what the caller knows
  Attach(&config);
  const auto hello = daemon.Expect<attach::Hello>();
  EXPECT_EQ(hello.job_id, "old");
  EXPECT_EQ(hello.rank, std::nullopt);
}

TEST_F(AttachTest, ASecondInitMustSayTheSame) {
  profd_config config = PROFD_CONFIG_INIT;
  config.job_id = "a";
  EXPECT_EQ(profd_init(&config), PROFD_OK);
  EXPECT_EQ(profd_init(&config), PROFD_OK);
  EXPECT_EQ(profd_init(nullptr), PROFD_OK);
  config.job_id = "b";
  EXPECT_EQ(profd_init(&config), PROFD_REFUSED);
  profd_shutdown();
  EXPECT_EQ(profd_init(&config), PROFD_OK);
}

TEST_F(AttachTest, WithoutADaemonEverythingAnswers) {
  EXPECT_EQ(profd_init(nullptr), PROFD_OK);
  EXPECT_EQ(profd_attach(50), PROFD_NO_DAEMON);
  EXPECT_THAT(profd_last_error(), HasSubstr(path_));
  EXPECT_EQ(profd_start(nullptr), PROFD_NO_DAEMON);
  EXPECT_EQ(profd_stop(), PROFD_NO_DAEMON);
  EXPECT_EQ(profd_set_metadata("a", "b"), PROFD_OK);
  EXPECT_EQ(profd_session_json(nullptr, 0, 0), PROFD_NO_SESSION);
  profd_mark("m");
  profd_range_push("r");
  profd_range_pop();
  profd_step_begin(1);
  profd_step_end(1);
  EXPECT_EQ(profd_connected(), 0);
}

TEST_F(AttachTest, ADaemonThatStartsLaterIsFound) {
  EXPECT_EQ(profd_init(nullptr), PROFD_OK);
  EXPECT_EQ(profd_attach(10), PROFD_NO_DAEMON);
  FakeDaemon daemon(path_);
  EXPECT_EQ(profd_attach(PatienceMs()), PROFD_OK);
  EXPECT_STREQ(profd_last_error(), "");
}

TEST_F(AttachTest, ASilentDaemonIsATimeout) {
  FakeDaemon daemon(path_, nullptr, /*welcomes=*/false);
  EXPECT_EQ(profd_init(nullptr), PROFD_OK);
  daemon.Expect<attach::Hello>();
  EXPECT_EQ(profd_attach(20), PROFD_TIMEOUT);
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.timeout_ms = 20;
  EXPECT_EQ(profd_start_with(&args), PROFD_TIMEOUT);
  attach::Welcome welcome;
  welcome.attach_id = 1;
  daemon.Send(welcome);
  EXPECT_EQ(profd_attach(PatienceMs()), PROFD_OK);
}

TEST_F(AttachTest, ARefusalIsPassedOn) {
  FakeDaemon daemon(
      path_,
      [](const attach::ToDaemon&) {
        return std::vector<attach::ToProcess>{attach::Refused{7, "not this user"}};
      },
      /*welcomes=*/false);
  EXPECT_EQ(profd_init(nullptr), PROFD_OK);
  EXPECT_EQ(profd_attach(PatienceMs()), PROFD_REFUSED);
  EXPECT_STREQ(profd_last_error(), "not this user");
  EXPECT_EQ(profd_start(nullptr), PROFD_REFUSED);
}

TEST_F(AttachTest, SurvivesInvalidPackets) {
  AttachedDaemon daemon(path_);
  daemon.SendRaw("garbage");
  daemon.SendRaw(R"({"type":"of a later version","x":1})");
  daemon.SendRaw(R"({"type":"reply","seq":77,"code":0})");  // to no call of ours
  daemon.SendRaw(std::string(attach::kMaxPacket + 1000, 'x'));
  EXPECT_EQ(profd_set_metadata("still", "there"), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::MetadataCall>().key, "still");
  EXPECT_EQ(daemon.Count<attach::Hello>(), 1U);
  // Too much of it is not a daemon: begins anew.
  for (int i = 0; i < 16; ++i) daemon.SendRaw("garbage");
  daemon.Expect<attach::Hello>(1);
  EXPECT_EQ(profd_attach(PatienceMs()), PROFD_OK);
}

TEST_F(AttachTest, ARestartedDaemonIsAttachedToWithTheSameRing) {
  auto first = std::make_unique<AttachedDaemon>(path_);
  for (int64_t step = 0; step < 5; ++step) profd_step_begin(step);
  {
    // It takes two of them and is killed before it says so.
    const auto ring = first->Ring();
    RingView::Taken taken;
    ASSERT_TRUE(ring->Take(&taken) && ring->Take(&taken));
    EXPECT_EQ(ring->ring().head, ring->position() - 2);
  }
  first.reset();
  ASSERT_TRUE(Eventually([] { return profd_connected() == 0; }));
  profd_step_begin(100);  // no daemon: not requested
  FakeDaemon second(path_);
  ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK);
  profd_counters counters;
  profd_get_counters(&counters);
  EXPECT_GE(counters.reconnects, 1U);
  std::vector<int64_t> steps;
  for (const auto& taken : second.Ring()->TakeAll()) steps.push_back(taken.value);
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 3, 4}));
}

TEST_F(AttachTest, MetadataIsSentWithTheHelloAndAfterIt) {
  auto daemon = std::make_unique<AttachedDaemon>(path_);
  EXPECT_EQ(profd_set_metadata("model", "llama"), PROFD_OK);
  EXPECT_EQ(daemon->Expect<attach::MetadataCall>().value, "llama");
  daemon.reset();
  EXPECT_EQ(profd_set_metadata("batch", nullptr), PROFD_OK);
  FakeDaemon second(path_);
  EXPECT_EQ(second.Expect<attach::Hello>().metadata,
            (std::map<std::string, std::string>{{"batch", ""}, {"model", "llama"}}));
}

TEST_F(AttachTest, MetadataIsBounded) {
  EXPECT_EQ(profd_init(nullptr), PROFD_OK);
  EXPECT_EQ(profd_set_metadata(nullptr, "v"), PROFD_INVALID);
  EXPECT_STREQ(profd_last_error(), "the key of metadata must not be NULL");
  EXPECT_EQ(profd_set_metadata("", "v"), PROFD_INVALID);
  EXPECT_EQ(profd_set_metadata(std::string(65, 'k').c_str(), "v"), PROFD_INVALID);
  EXPECT_EQ(profd_set_metadata("learning rate", "v"), PROFD_INVALID);
  EXPECT_STREQ(profd_last_error(), "a key of metadata has letters, digits and any of . _ - : /");
  EXPECT_EQ(profd_set_metadata("k", std::string(1025, 'v').c_str()), PROFD_INVALID);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(profd_set_metadata(std::to_string(i).c_str(), "v"), PROFD_OK);
  }
  EXPECT_EQ(profd_set_metadata("0", "again"), PROFD_OK);
  EXPECT_EQ(profd_set_metadata("more", "v"), PROFD_INVALID);
  EXPECT_THAT(profd_last_error(), HasSubstr("64 keys"));
}

TEST_F(AttachTest, ShutdownSendsByeAndInitBeginsAgain) {
  AttachedDaemon daemon(path_);
  profd_shutdown();
  daemon.Expect<attach::Bye>();
  EXPECT_EQ(profd_connected(), 0);
  EXPECT_EQ(profd_attach(10), PROFD_DISABLED);
  EXPECT_EQ(profd_start(nullptr), PROFD_DISABLED);
  EXPECT_EQ(profd_set_metadata("a", "b"), PROFD_DISABLED);
  profd_mark("m");
  Attach();
  daemon.Expect<attach::Hello>(1);
}

TEST_F(AttachTest, DisabledNothingHappens) {
  ::setenv("PROFD_DISABLE", "1", 1);
  FakeDaemon daemon(path_);
  EXPECT_EQ(profd_init(nullptr), PROFD_DISABLED);
  EXPECT_EQ(profd_attach(10), PROFD_DISABLED);
  EXPECT_THAT(profd_last_error(), HasSubstr("PROFD_DISABLE"));
  EXPECT_EQ(profd_start(nullptr), PROFD_DISABLED);
  EXPECT_EQ(profd_stop(), PROFD_DISABLED);
  EXPECT_EQ(profd_set_metadata("a", "b"), PROFD_DISABLED);
  EXPECT_EQ(profd_session_json(nullptr, 0, 0), PROFD_DISABLED);
  profd_step_begin(1);
  EXPECT_EQ(daemon.Count<attach::Hello>(), 0U);
}

// The signals that each thread of the library blocks.
std::vector<uint64_t> BlockedSignals() {
  std::vector<uint64_t> blocked;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    if (name != "profd-attach") continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) blocked.push_back(std::stoull(line.substr(7), nullptr, 16));
    }
  }
  return blocked;
}

TEST_F(AttachTest, TheThreadTakesNoSignals) {
  AttachedDaemon daemon(path_);
  std::vector<uint64_t> blocked;
  // The thread of an earlier test may not have quite ended.
  ASSERT_TRUE(Eventually([&blocked] {
    blocked = BlockedSignals();
    return blocked.size() == 1;
  }));
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGPROF}) {
    EXPECT_NE(blocked[0] & (1ULL << (signal - 1)), 0U) << signal;
  }
}

// In processes that have not called anything before: a threadsafe death test runs in a fresh one.
TEST_F(AttachTest, TheFirstCallAttaches) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        // Leaked: the process ends while it runs.
        auto* daemon = new FakeDaemon(path_);
        profd_mark("first");
        daemon->Expect<attach::Hello>();
        std::exit(profd_attach(PatienceMs()) == PROFD_OK ? 17 : 1);
      },
      ::testing::ExitedWithCode(17), "");
}

TEST_F(AttachTest, TheFirstCallsOfSeveralThreadsWaitUntilItIsInitialised) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int process = 0; process < 20; ++process) {
    EXPECT_EXIT(
        {
          new FakeDaemon(path_);  // leaked: the process ends while it runs
          std::barrier together(3);
          std::atomic<int> disabled{0};
          std::vector<std::jthread> threads(3);
          for (std::jthread& thread : threads) {
            thread = std::jthread([&] {
              together.arrive_and_wait();
              for (int call = 0; call < 200; ++call) {
                profd_step_begin(call);
                disabled += profd_stacks_wanted(0, 0) == PROFD_DISABLED ? 1 : 0;
                disabled += profd_attach(0) == PROFD_DISABLED ? 1 : 0;
              }
            });
          }
          threads.clear();
          std::exit(disabled == 0 && profd_attach(PatienceMs()) == PROFD_OK ? 17 : 1);
        },
        ::testing::ExitedWithCode(17), "");
  }
}

TEST_F(AttachTest, AShutdownIsNotCutShortBySignals) {
  std::latch returned(1);
  FakeDaemon daemon(path_, [&returned](const attach::ToDaemon& message) -> std::vector<attach::ToProcess> {
    if (std::holds_alternative<attach::Bye>(message)) returned.wait();
    return {};
  });
  Attach();
  struct sigaction handler {};
  struct sigaction before {};
  handler.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &handler, &before), 0);
  const itimerval each_ms = {{0, 1000}, {0, 1000}};
  const itimerval off = {};
  EXPECT_EQ(::setitimer(ITIMER_REAL, &each_ms, nullptr), 0);
  profd_shutdown();
  EXPECT_EQ(::setitimer(ITIMER_REAL, &off, nullptr), 0);
  EXPECT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
  returned.count_down();
  EXPECT_EQ(profd_init(nullptr), PROFD_OK) << profd_last_error();
}

TEST_F(AttachTest, AWaitForStacksEndsWhenTheLibraryBeginsAgain) {
  ASSERT_EQ(profd_init(nullptr), PROFD_OK);
  for (int life = 0; life < 50; ++life) {
    profd_stacks_wanted(0, 0);
    std::latch waits(1);
    auto waited = std::async(std::launch::async, [&waits] {
      waits.count_down();
      return profd_stacks_wanted(0, 2 * PatienceMs());
    });
    waits.wait();
    profd_shutdown();
    ASSERT_EQ(profd_init(nullptr), PROFD_OK);
    ASSERT_EQ(waited.wait_for(kPatience), std::future_status::ready) << life;
  }
}

// At exit the library waits for its thread 200 ms, which may not be enough where the machine is busy. Its priority lets this
// be called after the library's destructor.
[[gnu::destructor(101)]] void WaitForTheLibrarysThread() {
  if (::getenv("LIBPROFD_TEST_DAEMON") != nullptr) (void)Eventually([] { return BlockedSignals().empty(); });
}

TEST_F(AttachTest, AProcessThatEndsSendsBye) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeDaemon daemon(path_);
  // The fresh process runs this test from its beginning, with a path_ of its own.
  ::setenv("LIBPROFD_TEST_DAEMON", path_.c_str(), 0);
  EXPECT_EXIT(
      {
        ::setenv("PROFD_ATTACH_SOCKET", ::getenv("LIBPROFD_TEST_DAEMON"), 1);
        std::exit(profd_attach(PatienceMs()) == PROFD_OK ? 17 : 1);
      },
      ::testing::ExitedWithCode(17), "");
  ::unsetenv("LIBPROFD_TEST_DAEMON");
  daemon.Expect<attach::Bye>();
}

}  // namespace
}  // namespace profd::lib
