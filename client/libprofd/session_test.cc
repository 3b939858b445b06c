// Sessions from inside: start, stop, status, and PROFILING_OPTIONS.
#include <atomic>
#include <nlohmann/json.hpp>

#include "client/libprofd/fake_daemon_test_support.h"

namespace profd::lib {
namespace {

using attach::ToDaemon;
using attach::ToProcess;
using nlohmann::json;
using ::testing::HasSubstr;

class SessionTest : public LibprofdTest {
 protected:
  // Starts are answered with s-1, s-2, ...; stops with the session, done; PROFILING_OPTIONS with
  // s-env.
  FakeDaemon::Answers Obliging() {
    return [started = 0](const ToDaemon& message) mutable -> std::vector<ToProcess> {
      if (const auto* hello = std::get_if<attach::Hello>(&message)) {
        if (hello->options_json.empty()) return {};
        return {Reply(0, "s-env")};
      }
      if (const auto* start = std::get_if<attach::StartCall>(&message)) {
        return {Reply(start->seq, "s-" + std::to_string(++started))};
      }
      if (const auto* stop = std::get_if<attach::StopCall>(&message)) {
        return {Reply(stop->seq, stop->session_id, "done")};
      }
      if (const auto* status = std::get_if<attach::StatusCall>(&message)) {
        attach::Reply reply = Reply(status->seq, status->session_id);
        reply.session->records = 42;
        return {reply};
      }
      return {};
    };
  }
  // The same, but of no session has it ever heard.
  FakeDaemon::Answers Forgetful() {
    return [obliging = Obliging()](const ToDaemon& message) -> std::vector<ToProcess> {
      if (const auto* status = std::get_if<attach::StatusCall>(&message)) {
        return {attach::Reply{status->seq, static_cast<int>(StatusCode::kNotFound),
                              "no such session", std::nullopt}};
      }
      return obliging(message);
    };
  }
  static std::string State(uint32_t refresh_ms = 0) {
    char text[4096];
    const int length = profd_session_json(text, sizeof text, refresh_ms);
    if (length < 0) return profd_last_error();
    return json::parse(text).at("state");
  }
};

TEST_F(SessionTest, StartCarriesItsArguments) {
  AttachedDaemon daemon(path_, Obliging());
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.options_json = " {\"aicpu\":\"on\"}\n";
  args.label = "warm";
  args.duration_ms = 5000;
  args.start_step = 11;
  args.steps = 2;
  args.no_dump = 1;
  args.best_effort = 1;
  args.collectors = "hccs=50, host_cpu";
  ASSERT_EQ(profd_start_with(&args), PROFD_OK) << profd_last_error();
  const auto start = daemon.Expect<attach::StartCall>();
  EXPECT_EQ(start.options_json, "{\"aicpu\":\"on\"}");
  EXPECT_EQ(start.label, "warm");
  EXPECT_EQ(start.duration_ms, 5000U);
  EXPECT_EQ(start.start_step, 11);
  EXPECT_EQ(start.steps, 2U);
  EXPECT_TRUE(start.no_dump);
  EXPECT_TRUE(start.best_effort);
  EXPECT_EQ(start.collectors, (std::vector<std::string>{"hccs=50", "host_cpu"}));
}

TEST_F(SessionTest, APlainStartRequestsTheDefaults) {
  AttachedDaemon daemon(path_, Obliging());
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  const auto start = daemon.Expect<attach::StartCall>();
  EXPECT_EQ(start.options_json, "");
  EXPECT_EQ(start.start_step, std::nullopt);
  EXPECT_EQ(start.steps, 0U);
  EXPECT_TRUE(start.collectors.empty());
}

TEST_F(SessionTest, WrongArgumentsDoNotLeaveTheProcess) {
  AttachedDaemon daemon(path_, Obliging());
  EXPECT_EQ(profd_start_with(nullptr), PROFD_INVALID);
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.start_step = -2;
  EXPECT_EQ(profd_start_with(&args), PROFD_INVALID);
  args = PROFD_START_ARGS_INIT;
  args.size = 3;
  EXPECT_EQ(profd_start_with(&args), PROFD_INVALID);
  for (const char* list : {",", "a,,b", "a,"}) {
    args = PROFD_START_ARGS_INIT;
    args.collectors = list;
    EXPECT_EQ(profd_start_with(&args), PROFD_INVALID) << list;
  }
  const std::string large(attach::kMaxOptionsBytes + 1, ' ');
  EXPECT_EQ(profd_start(large.c_str()), PROFD_INVALID);
  EXPECT_EQ(profd_start("{\"fp_point\":\"caf\xe9\"}"), PROFD_INVALID);
  // Fits, but not once its control characters are escaped.
  EXPECT_EQ(profd_start(std::string(60'000, '\x01').c_str()), PROFD_INVALID);
  EXPECT_EQ(daemon.Count<attach::StartCall>(), 0U);
}

TEST_F(SessionTest, CodesOfTheDaemonAreReported) {
  std::atomic<int> code = 0;
  FakeDaemon daemon(path_, [&code](const ToDaemon& message) -> std::vector<ToProcess> {
    const auto* start = std::get_if<attach::StartCall>(&message);
    if (start == nullptr) return {};
    return {attach::Reply{start->seq, code, "this is why", std::nullopt}};
  });
  Attach();
  const std::pair<StatusCode, int> kCodes[] = {
      {StatusCode::kInvalidArgument, PROFD_INVALID},
      {StatusCode::kOutOfRange, PROFD_INVALID},
      {StatusCode::kPermissionDenied, PROFD_REFUSED},
      {StatusCode::kResourceExhausted, PROFD_REFUSED},
      {StatusCode::kUnimplemented, PROFD_REFUSED},
      {StatusCode::kNotFound, PROFD_REFUSED},
      {StatusCode::kDeadlineExceeded, PROFD_TIMEOUT},
      {StatusCode::kUnavailable, PROFD_REFUSED},
  };
  for (const auto& [theirs, ours] : kCodes) {
    code = static_cast<int>(theirs);
    EXPECT_EQ(profd_start("{}"), ours);
    EXPECT_STREQ(profd_last_error(), "this is why");
  }
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
}

TEST_F(SessionTest, AnAnswerCountsAlsoWhenTheConnectionEndsBehindIt) {
  std::atomic<FakeDaemon*> self = nullptr;
  FakeDaemon daemon(path_, [&self, obliging = Obliging()](const ToDaemon& message) {
    if (std::holds_alternative<attach::StartCall>(message)) self.load()->DropConnections();
    return obliging(message);
  });
  self = &daemon;
  for (size_t connection = 1; connection <= 10; ++connection) {
    Attach();
    EXPECT_EQ(profd_start(nullptr), PROFD_OK) << profd_last_error();
    ASSERT_TRUE(Eventually([&] { return profd_connected() == 0 || daemon.Count<attach::Hello>() > connection; }));
  }
}

TEST_F(SessionTest, StopEndsTheLastOne) {
  AttachedDaemon daemon(path_, Obliging());
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  EXPECT_EQ(State(), "running");
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "s-2");
  EXPECT_EQ(State(), "done");
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>(1).session_id, "s-1");
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
}

TEST_F(SessionTest, AnyOfSeveralIsStoppedByItsId) {
  AttachedDaemon daemon(path_, Obliging());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  EXPECT_EQ(profd_stop_session("s-2", 0), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "s-2");
  EXPECT_EQ(State(), "done");
  EXPECT_EQ(profd_stop_session("", 0), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>(1).session_id, "s-3");
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>(2).session_id, "s-1");
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
}

TEST_F(SessionTest, AStopThatTimedOutMayBeTriedAgain) {
  std::atomic<bool> answers = false;
  auto obliging = Obliging();
  FakeDaemon daemon(path_, [&](const ToDaemon& message) -> std::vector<ToProcess> {
    if (std::holds_alternative<attach::StopCall>(message) && !answers) return {};
    return obliging(message);
  });
  Attach();
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  EXPECT_EQ(profd_stop_within(20), PROFD_TIMEOUT);
  EXPECT_EQ(profd_stop_session("of another", 20), PROFD_TIMEOUT);
  answers = true;
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>(2).session_id, "s-1");
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
}

TEST_F(SessionTest, AStartThatIsAnsweredTooLateIsUndone) {
  FakeDaemon daemon(path_, [](const ToDaemon& message) -> std::vector<ToProcess> {
    if (const auto* stop = std::get_if<attach::StopCall>(&message)) {
      return {Reply(stop->seq, stop->session_id, "done")};
    }
    return {};
  });
  Attach();
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.timeout_ms = 20;
  EXPECT_EQ(profd_start_with(&args), PROFD_TIMEOUT);
  EXPECT_EQ(profd_session_json(nullptr, 0, 0), PROFD_NO_SESSION);
  daemon.Send(Reply(daemon.Expect<attach::StartCall>().seq, "late"));
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "late");
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION) << "the caller was answered that there is none";
  EXPECT_EQ(profd_session_json(nullptr, 0, 0), PROFD_NO_SESSION);
}

TEST_F(SessionTest, ACallWhoseDaemonDiesAnswersAtOnce) {
  AttachedDaemon daemon(path_);
  std::thread killer([&daemon] {
    daemon.Expect<attach::StartCall>();
    daemon.DropConnections();
  });
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.timeout_ms = PatienceMs();
  EXPECT_EQ(profd_start_with(&args), PROFD_NO_DAEMON);
  killer.join();
}

TEST_F(SessionTest, SessionsOutliveTheConnection) {
  AttachedDaemon daemon(path_, Obliging());
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  daemon.DropConnections();
  daemon.Expect<attach::Hello>(1);
  ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StatusCall>().session_id, "s-1");
  EXPECT_EQ(State(), "running");
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "s-1");
}

TEST_F(SessionTest, AnotherDaemonDoesNotKnowThem) {
  auto first = std::make_unique<AttachedDaemon>(path_, Obliging());
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  first.reset();
  FakeDaemon second(path_, Forgetful());
  ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK);
  EXPECT_TRUE(Eventually([] { return State() == "lost"; }));
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
}

TEST_F(SessionTest, ShutdownEndsThem) {
  AttachedDaemon daemon(path_, Obliging());
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  profd_shutdown();
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "s-1");
  daemon.Expect<attach::Bye>();
}

TEST_F(SessionTest, TheSessionAsJson) {
  AttachedDaemon daemon(path_, Obliging());
  EXPECT_EQ(profd_session_json(nullptr, 0, 0), PROFD_NO_SESSION);
  EXPECT_THAT(profd_last_error(), HasSubstr("started no session"));
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  const int length = profd_session_json(nullptr, 0, 0);
  ASSERT_GT(length, 10);
  char small[8];
  std::memset(small, 'x', sizeof small);
  EXPECT_EQ(profd_session_json(small, 5, 0), length);
  EXPECT_EQ(std::string(small, 8), std::string("{\"dr\0xxx", 8));
  EXPECT_EQ(profd_session_json(nullptr, 5, 0), PROFD_INVALID);
  char text[4096];
  ASSERT_GT(profd_session_json(text, sizeof text, PatienceMs()), 0);
  EXPECT_EQ(daemon.Expect<attach::StatusCall>().session_id, "s-1");
  EXPECT_EQ(json::parse(text).at("records"), 42);
}

TEST_F(SessionTest, NoticesMoveTheStateOn) {
  AttachedDaemon daemon(path_, Obliging());
  ASSERT_EQ(profd_start(nullptr), PROFD_OK);
  daemon.Send(attach::SessionNotice{"s-1", "ended", {}, 0, {}});
  EXPECT_TRUE(Eventually([] { return State() == "ended"; }));
  EXPECT_EQ(profd_stop(), PROFD_OK);  // for its dump
  EXPECT_EQ(State(), "done");
}

TEST_F(SessionTest, ErrorsAreOfTheThread) {
  AttachedDaemon daemon(path_);
  EXPECT_EQ(profd_start_with(nullptr), PROFD_INVALID);
  std::thread([] { EXPECT_STREQ(profd_last_error(), ""); }).join();
  EXPECT_THAT(profd_last_error(), HasSubstr("no arguments"));
  EXPECT_EQ(profd_set_metadata("a", "b"), PROFD_OK);
  EXPECT_STREQ(profd_last_error(), "");
}

// ---- PROFILING_OPTIONS

TEST_F(SessionTest, TheEnvironmentStartsASession) {
  ::setenv("PROFILING_OPTIONS", " {\"aicpu\":\"on\"} ", 1);
  AttachedDaemon daemon(path_, Obliging());
  EXPECT_EQ(daemon.Expect<attach::Hello>().options_json, "{\"aicpu\":\"on\"}");
  EXPECT_EQ(profd_stop(), PROFD_OK);  // waits until the daemon has said which one
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "s-env");
  // Stopped by the process itself: not begun again.
  daemon.DropConnections();
  EXPECT_EQ(daemon.Expect<attach::Hello>(1).options_json, "");
}

TEST_F(SessionTest, TheEnvironmentsSessionIsNotBegunTwice) {
  ::setenv("PROFILING_OPTIONS", "{}", 1);
  AttachedDaemon daemon(path_, Obliging());
  EXPECT_EQ(daemon.Expect<attach::Hello>(0).options_json, "{}");
  ASSERT_TRUE(Eventually([] { return State() == "running"; }));
  daemon.DropConnections();
  EXPECT_EQ(daemon.Expect<attach::Hello>(1).options_json, "");
  EXPECT_EQ(daemon.Expect<attach::StatusCall>().session_id, "s-env");
  ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK);
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(daemon.Expect<attach::StopCall>().session_id, "s-env");
  EXPECT_EQ(daemon.Count<attach::StartCall>(), 0U);
}

TEST_F(SessionTest, TheEnvironmentsSessionBeginsAgainWithAnotherDaemon) {
  ::setenv("PROFILING_OPTIONS", "{}", 1);
  auto first = std::make_unique<AttachedDaemon>(path_, Obliging());
  ASSERT_TRUE(Eventually([] { return State() == "running"; }));
  first.reset();
  FakeDaemon second(path_, Forgetful());
  EXPECT_EQ(second.Expect<attach::StartCall>().options_json, "{}");
  ASSERT_TRUE(Eventually([] { return State() == "running"; }));
  EXPECT_EQ(profd_stop(), PROFD_OK);
  EXPECT_EQ(second.Expect<attach::StopCall>().session_id, "s-1");
}

// An older daemon answers so to a packet that it does not know.
TEST_F(SessionTest, ARefusedPacketIsNoRefusalOfTheEnvironmentsOptions) {
  ::setenv("PROFILING_OPTIONS", "{}", 1);
  auto first = std::make_unique<AttachedDaemon>(path_, Obliging());
  ASSERT_TRUE(Eventually([] { return State() == "running"; }));
  first->Send(attach::Reply{0, 3, "packet: unknown type", std::nullopt});
  first->Send(attach::SessionNotice{"s-env", "stopping", {}, 0, {}});
  ASSERT_TRUE(Eventually([] { return State() == "stopping"; }));
  first.reset();
  FakeDaemon second(path_, Forgetful());
  EXPECT_EQ(second.Expect<attach::StartCall>().options_json, "{}");
}

TEST_F(SessionTest, TheEnvironmentsSessionThatEndedInOrderDoesNotBeginAgain) {
  ::setenv("PROFILING_OPTIONS", "{}", 1);
  auto first = std::make_unique<AttachedDaemon>(path_, Obliging());
  ASSERT_TRUE(Eventually([] { return State() == "running"; }));
  first->Send(attach::SessionNotice{"s-env", "ended", {}, 0, {}});
  ASSERT_TRUE(Eventually([] { return State() == "ended"; }));
  first.reset();
  FakeDaemon second(path_, Forgetful());
  EXPECT_EQ(second.Expect<attach::Hello>().options_json, "");
  ASSERT_EQ(profd_attach(PatienceMs()), PROFD_OK);
  EXPECT_EQ(profd_set_metadata("after", "all"), PROFD_OK);
  second.Expect<attach::MetadataCall>();
  EXPECT_EQ(second.Count<attach::StartCall>(), 0U);
}

TEST_F(SessionTest, ReportsInvalidSettingsOfTheEnvironment) {
  ::setenv("PROFILING_OPTIONS", "{\"aicpu\":1}", 1);
  FakeDaemon daemon(path_, [](const ToDaemon& message) -> std::vector<ToProcess> {
    if (!std::holds_alternative<attach::Hello>(message)) return {};
    return {attach::Reply{0, 3, "aicpu wants text", std::nullopt}};
  });
  Attach();
  EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
  EXPECT_THAT(profd_last_error(), HasSubstr("aicpu wants text"));
  daemon.DropConnections();
  EXPECT_EQ(daemon.Expect<attach::Hello>(1).options_json, "");
}

TEST_F(SessionTest, BlankOptionsAndModesStartNothing) {
  const std::pair<const char*, const char*> kNothing[] = {
      {"", ""}, {" \t\n", ""}, {"{}", "false"}, {"{}", " dynamic "}};
  for (const auto& [options, mode] : kNothing) {
    ::setenv("PROFILING_OPTIONS", options, 1);
    ::setenv("PROFILING_MODE", mode, 1);
    AttachedDaemon daemon(path_, Obliging());
    EXPECT_EQ(daemon.Expect<attach::Hello>().options_json, "") << options << mode;
    profd_shutdown();
  }
  ::setenv("PROFILING_MODE", "true", 1);
  AttachedDaemon daemon(path_, Obliging());
  EXPECT_EQ(daemon.Expect<attach::Hello>().options_json, "{}");
}

// The daemon would refuse the process with them, or take other bytes for the ones that are not UTF-8.
TEST_F(SessionTest, OptionsThatCannotBeSentAreLeftOut) {
  const std::pair<std::string, const char*> kUnfit[] = {
      {std::string(60'000, '\x01'), "too long"},
      {"{\"fp_point\":\"" + std::string(attach::kMaxOptionsBytes, 'x') + "\"}", "too long"},
      {"{\"output\":\"/tmp/caf\xe9\"}", "not UTF-8"}};
  for (const auto& [options, why] : kUnfit) {
    ::setenv("PROFILING_OPTIONS", options.c_str(), 1);
    AttachedDaemon daemon(path_, Obliging());
    EXPECT_EQ(daemon.Expect<attach::Hello>().options_json, "");
    EXPECT_EQ(profd_stop(), PROFD_NO_SESSION);
    EXPECT_THAT(profd_last_error(), HasSubstr(why));
    profd_shutdown();
  }
}

}  // namespace
}  // namespace profd::lib
