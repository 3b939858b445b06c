// `profctl run`: real child processes, a fake daemon.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "client/child.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

class RunTest : public ProfctlTest {
 protected:
  RunTest() {
    daemon_.on_start = [this](const v1::SessionSpec& request) -> Result<v1::Session> {
      child_ = request.schedule().end_with_pid();
      ran_before_start_ = Exists("ran");
      alive_at_start_ = kill(child_, 0) == 0;
      return session_;
    };
    daemon_.on_stop = [this](const std::string&) -> Result<v1::Session> {
      alive_at_stop_ = kill(child_, 0) == 0;
      v1::Session done = session_;
      done.mutable_status()->set_state(v1::Session::STATE_DONE);
      done.mutable_status()->set_dump_path("/var/lib/profd/dumps/s1");
      return done;
    };
    session_.set_session_id("s1");
    session_.mutable_status()->set_state(v1::Session::STATE_RUNNING);
  }
  int Shell(const std::string& script, std::vector<std::string> options = {}) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"--", "sh", "-c", script, "sh", dir_.path()});
    return Run(options);
  }
  bool Exists(const std::string& name) const { return access((dir_ / name).c_str(), F_OK) == 0; }

  TempDir dir_;
  v1::Session session_;
  pid_t child_ = 0;
  bool ran_before_start_ = false;
  bool alive_at_start_ = false;
  bool alive_at_stop_ = true;
};

TEST_F(RunTest, TheCommandLivesExactlyWithinTheSession) {
  EXPECT_EQ(Shell("touch $1/ran; exit 7", {"--job", "j42"}), 7) << err();
  EXPECT_TRUE(alive_at_start_);
  EXPECT_FALSE(ran_before_start_);
  EXPECT_TRUE(Exists("ran"));
  EXPECT_FALSE(alive_at_stop_);
  ASSERT_EQ(daemon_.starts.size(), 1u);
  EXPECT_EQ(daemon_.starts[0].target().pids(0), child_);
  EXPECT_EQ(daemon_.starts[0].schedule().end_with_pid(), child_);
  EXPECT_EQ(daemon_.stopped, (std::vector<std::string>{"s1"}));
  EXPECT_EQ(out(), "") << "stdout is the command's";
  EXPECT_NE(err().find("session s1"), std::string::npos);
  EXPECT_NE(err().find("dump /var/lib/profd/dumps/s1"), std::string::npos);
}

TEST_F(RunTest, TheProcessDaemonSeesIsTheOneThatRuns) {
  EXPECT_EQ(Shell("echo $$ >$1/pid"), 0);
  EXPECT_EQ(ReadText(dir_ / "pid"), std::to_string(child_) + "\n");
}

TEST_F(RunTest, ExitCodesAreTheCommands) {
  EXPECT_EQ(Shell("exit 0"), 0);
  EXPECT_EQ(Shell("exit 255"), 255);
  EXPECT_EQ(Shell("kill -KILL $$"), 128 + SIGKILL);
  EXPECT_EQ(Shell("kill -TERM $$"), 128 + SIGTERM);
}

TEST_F(RunTest, ACommandThatIsNotThereStartsNothing) {
  EXPECT_EQ(Run({"run", "--", "no-such-command-at-all"}), 127);
  EXPECT_EQ(Run({"run", "--", dir_ / "none"}), 127);
  std::ofstream(dir_ / "plain") << "x";
  EXPECT_EQ(Run({"run", "--", dir_ / "plain"}), 126);
  EXPECT_TRUE(daemon_.starts.empty());
}

TEST_F(RunTest, WithoutASessionNothingRuns) {
  daemon_.error = ResourceExhausted("32 sessions are running");
  EXPECT_EQ(Shell("touch $1/ran"), 3);
  daemon_.error = Unavailable("connection refused");
  EXPECT_EQ(Shell("touch $1/ran", {"--socket", dir_ / "none.sock"}), 6);
  EXPECT_FALSE(Exists("ran"));
  // The held child is gone, and reaped.
  EXPECT_EQ(kill(daemon_.starts[0].schedule().end_with_pid(), 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(RunTest, AnywayRunsAnyway) {
  daemon_.error = Unavailable("connection refused");
  EXPECT_EQ(Shell("touch $1/ran; exit 4", {"--anyway", "--socket", dir_ / "none.sock"}), 4);
  EXPECT_TRUE(Exists("ran"));
  EXPECT_NE(err().find("without a profile"), std::string::npos) << err();
}

TEST_F(RunTest, AFailedStopDoesNotHideTheExitCode) {
  daemon_.on_stop = [](const std::string&) -> Result<v1::Session> {
    return Internal("something broke");
  };
  EXPECT_EQ(Shell("exit 9"), 9);
  EXPECT_NE(err().find("something broke"), std::string::npos) << err();
}

// Without it "done: 0 records" is all there would be to read of a command that was shorter than --in.
TEST_F(RunTest, WhyASessionNeverBeganIsNamed) {
  session_.mutable_status()->set_state(v1::Session::STATE_SCHEDULED);
  daemon_.on_stop = [this](const std::string&) -> Result<v1::Session> {
    v1::Session done = session_;
    done.mutable_status()->set_state(v1::Session::STATE_DONE);
    done.mutable_status()->set_reason("process 77 ended before it started");
    return done;
  };
  EXPECT_EQ(Shell("exit 0", {"--in", "3s"}), 0);
  EXPECT_NE(err().find("profctl: process 77 ended before it started\n"), std::string::npos) << err();
}

TEST_F(RunTest, ThePartThatDoesNotRunIsNamed) {
  v1::Outcome* outcome = session_.mutable_status()->add_outcomes();
  outcome->set_collector("hccs");
  outcome->set_result(v1::Outcome::RESULT_BUSY);
  outcome->set_detail("held by another process");
  EXPECT_EQ(Shell("exit 0"), 0);
  EXPECT_NE(err().find("held by another process"), std::string::npos) << err();
}

// At the start no process has attached: that is no news. At the end it is.
TEST_F(RunTest, WhatNoProcessServedIsNamedAtTheEnd) {
  for (const char* option : {"task_time", "msproftx"}) {
    v1::Outcome* outcome = session_.mutable_status()->add_outcomes();
    outcome->set_collector(option);
    outcome->set_result(v1::Outcome::RESULT_NEEDS_PROCESS);
    v1::EffectiveOption* asked = session_.mutable_status()->add_effective_options();
    asked->set_key(option);
    asked->set_asked("on");
  }
  daemon_.on_stop = [this](const std::string&) -> Result<v1::Session> {
    EXPECT_EQ(err().find("task_time"), std::string::npos) << err();
    v1::Session done = session_;
    done.mutable_status()->set_state(v1::Session::STATE_DONE);
    done.mutable_status()->mutable_outcomes(0)->set_detail("no process attached");
    done.mutable_status()->mutable_outcomes(1)->set_result(v1::Outcome::RESULT_FINISHED);
    v1::EffectiveOption* option = done.mutable_status()->add_effective_options();
    option->set_key("l2");
    option->set_asked("on");
    for (const char* collector : {"l2", "dvpp"}) {
      v1::Outcome* outcome = done.mutable_status()->add_outcomes();
      outcome->set_collector(collector);
      outcome->set_result(v1::Outcome::RESULT_UNSUPPORTED);
    }
    return done;
  };
  EXPECT_EQ(Shell("exit 0", {"--task-time", "l1", "--msproftx", "on"}), 0);
  EXPECT_NE(err().find("not everything that was requested was collected:"), std::string::npos) << err();
  EXPECT_NE(err().find("no process attached"), std::string::npos) << err();
  EXPECT_NE(err().find("l2 "), std::string::npos) << err();
  EXPECT_EQ(err().find("msproftx"), std::string::npos) << err();
  EXPECT_EQ(err().find("dvpp"), std::string::npos) << "not requested: " << err();
}

TEST_F(RunTest, WhileASessionEndsNothingIsMissingYet) {
  v1::Outcome* outcome = session_.mutable_status()->add_outcomes();
  outcome->set_collector("task_time");
  outcome->set_result(v1::Outcome::RESULT_WAITING);
  daemon_.on_stop = [this](const std::string&) -> Result<v1::Session> {
    session_.mutable_status()->set_state(v1::Session::STATE_STOPPING);
    return session_;
  };
  EXPECT_EQ(Shell("exit 0"), 0);
  EXPECT_EQ(err().find("not everything"), std::string::npos) << err();
}

TEST_F(RunTest, TheJobReachesTheCommand) {
  setenv("PROFD_JOB_ID", "from outside", 1);
  EXPECT_EQ(Shell("echo \"$PROFD_JOB_ID\" >$1/job", {"--job", "j42"}), 0);
  EXPECT_EQ(ReadText(dir_ / "job"), "j42\n");
  EXPECT_EQ(Shell("echo \"$PROFD_JOB_ID\" >$1/job"), 0);
  EXPECT_EQ(ReadText(dir_ / "job"), "from outside\n");
  unsetenv("PROFD_JOB_ID");
}

// A process of the command that attaches with options begins a session of its own (api.md).
TEST_F(RunTest, OptionsOfTheEnvironmentAreNotTheCommandsToo) {
  profiling_options_ = "{\"dvpp_freq\":10}";
  ASSERT_EQ(setenv("PROFILING_OPTIONS", profiling_options_.c_str(), 1), 0);
  EXPECT_EQ(Shell("test -z \"$PROFILING_OPTIONS\"", {"--options-env"}), 0) << err();
  EXPECT_EQ(daemon_.starts.at(0).options_json(), profiling_options_);
  EXPECT_EQ(Shell("test -n \"$PROFILING_OPTIONS\""), 0) << "those of a command alone are its own";
  unsetenv("PROFILING_OPTIONS");
}

TEST_F(RunTest, SignalsReachTheCommand) {
  // The command asks for its own signal; profctl's parent is this test.
  EXPECT_EQ(Shell("trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.02; done"), 9) << err();
  EXPECT_EQ(Shell("kill -USR1 $PPID; exec sleep 60"), 128 + SIGUSR1) << err();
  EXPECT_EQ(daemon_.stopped.size(), 2u);
}

TEST_F(RunTest, TheCommandStartsWithTheCallersSignalMask) {
  EXPECT_EQ(Shell("grep SigBlk /proc/self/status >$1/mask"), 0);
  EXPECT_EQ(ReadText(dir_ / "mask"), "SigBlk:\t0000000000000000\n");
}

TEST_F(RunTest, ALimitOfFileSizesEndsTheCommandAsEver) {
  const sighandler_t before = signal(SIGXFSZ, SIG_IGN);  // as main() does
  EXPECT_EQ(Shell("kill -XFSZ $$"), 128 + SIGXFSZ);
  signal(SIGXFSZ, before);
}

TEST_F(RunTest, ASignalBeforeTheStartRunsNothing) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(Shell("touch $1/ran"), 128 + SIGTERM);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(RunTest, ArgumentsBehindTheDashesAreTheCommands) {
  EXPECT_EQ(Run({"run", "--", "sh", "-c", "test \"$1\" = --json && test \"$2\" = --", "sh",
                 "--json", "--"}),
            0)
      << err();
}

TEST_F(RunTest, TheDashesMayBeLeftOut) {
  EXPECT_EQ(Run({"--timeout", "5s", "run", "--duration", "5s", "--anyway", "sh", "-c",
                 "test \"$1\" = --json && test \"$2\" = --", "sh", "--json", "--"}),
            0)
      << err();
  ASSERT_EQ(daemon_.starts.size(), 1u);
  EXPECT_EQ(daemon_.starts[0].schedule().duration_ms(), 5000u);
}

TEST_F(RunTest, JsonIsOneLineOnStderr) {
  EXPECT_EQ(Shell("exit 3", {"--json"}), 3);
  auto json = Json::parse(err());
  EXPECT_EQ(json["session_id"], "s1");
  EXPECT_EQ(json["command_exit_code"], 3);
  EXPECT_EQ(json["dump_path"], "/var/lib/profd/dumps/s1");
}

TEST_F(RunTest, AnOutputThatCannotBeWrittenIsSaidBeforeTheStart) {
  std::ofstream(dir_ / "file") << "x";
  EXPECT_EQ(Shell("touch $1/ran", {"--output", "/proc/none"}), 3) << "\"the code is 3 or 6\" (docs/profctl.md)";
  EXPECT_EQ(Shell("touch $1/ran", {"--output", dir_ / "file/below"}), 3);
  EXPECT_NE(err().find("output " + (dir_ / "file/below")), std::string::npos) << err();
  EXPECT_FALSE(Exists("ran"));
  EXPECT_TRUE(daemon_.starts.empty());
  EXPECT_EQ(Shell("touch $1/ran", {"--anyway", "--output", dir_ / "file/below"}), 0);
  EXPECT_NE(err().find("the dump will stay on the node"), std::string::npos) << err();
  EXPECT_TRUE(Exists("ran"));
}

TEST_F(RunTest, AnExportThatFailsLeavesTheCommandsExitCode) {
  v1::DumpChunk chunk;
  chunk.set_dump_name("PROF_1");
  chunk.set_path("host/data/x");
  chunk.set_last(true);
  daemon_.dump = {chunk};
  working_directory_ = dir_.path();
  EXPECT_EQ(Shell("exit 3", {"--export", "csv,perfetto"}), 3);
  EXPECT_TRUE(Exists("PROF_1/host/data/x"));
  EXPECT_NE(err().find("nothing to export"), std::string::npos) << err();
  EXPECT_EQ(out(), "") << "stdout is the command's";
  // A session that was interrupted and resumed has several.
  std::filesystem::remove_all(dir_ / "PROF_1");
  v1::DumpChunk next = chunk;
  next.set_dump_name("PROF_2");
  daemon_.dump = {chunk, next};
  EXPECT_EQ(Shell("exit 3", {"--export", "csv,perfetto"}), 3);
  EXPECT_NE(err().find(fmt::format("profctl export {0}/PROF_1 {0}/PROF_2 tries again", dir_.path())), std::string::npos) << err();
  EXPECT_EQ(Shell("true", {"--export", "pdf"}), 2);
  EXPECT_NE(err().find("--export: no format is called \"pdf\""), std::string::npos) << err();
  EXPECT_EQ(Shell("true", {"--export", "csv", "--no-dump"}), 2);
}

// It is away when the command exits, and once more while the dump is fetched.
TEST_F(RunTest, ADaemonThatIsRestartedIsWaitedFor) {
  int stops = 0;
  const auto stop = daemon_.on_stop;
  daemon_.on_stop = [&](const std::string& id) { return ++stops == 1 ? Unavailable("connection refused") : stop(id); };
  v1::DumpChunk chunk;
  chunk.set_dump_name("PROF_1");
  chunk.set_path("host/data/x");
  chunk.set_last(true);
  daemon_.dump = {chunk};
  int fetches = 0;
  daemon_.before_stream = [&] { daemon_.stream_end = ++fetches == 1 ? FailedPrecondition("its dump is being completed") : Status::Ok(); };
  EXPECT_EQ(Shell("exit 3", {"--output", dir_ / "here"}), 3);
  EXPECT_EQ(std::pair(stops, fetches), std::pair(2, 2)) << err();
  EXPECT_TRUE(Exists("here/PROF_1/host/data/x"));
  EXPECT_NE(err().find("profd does not answer"), std::string::npos) << err();
}

TEST_F(RunTest, ADaemonThatDoesNotComeBackIsGivenUpAfterAMinute) {
  int stops = 0;
  daemon_.on_stop = [&](const std::string&) -> Result<v1::Session> {
    ++stops;
    clock_.Advance(61 * kNsPerSecond);
    return Unavailable("connection refused");
  };
  EXPECT_EQ(Shell("exit 3"), 3);
  EXPECT_EQ(stops, 2);
  EXPECT_NE(err().find("session s1 was not seen to end"), std::string::npos) << err();
}

TEST_F(RunTest, BadOptionsRunNothing) {
  EXPECT_EQ(Shell("touch $1/ran", {"--duration", "5"}), 2);
  EXPECT_FALSE(Exists("ran"));
  EXPECT_TRUE(daemon_.starts.empty());
}

TEST(FindProgram, SearchesThePath) {
  EXPECT_EQ(*FindProgram("sh", "/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(*FindProgram("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(FindProgram("sh", "/nowhere").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(FindProgram("", "/bin").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(FindProgram("/bin", "").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace profd::client
