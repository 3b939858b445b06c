// Commands that ask and print: text and JSON against golden files, exit codes, messages.
#include <gtest/gtest.h>

#include <map>

#include "client/test_support.h"
#include "proto/testing/text_message.h"

namespace profd::client {
namespace {

v1::Outcome MakeOutcome(const char* collector, v1::Outcome::Result result, double hz, const char* detail = "") {
  v1::Outcome outcome;
  outcome.set_collector(collector);
  outcome.set_result(result);
  outcome.set_hz(hz);
  outcome.set_detail(detail);
  return outcome;
}

v1::Session MakeSession(const std::string& id, v1::Session::State state) {
  auto session = FromText<v1::Session>(R"pb(
    owner { uid: 1000 pid: 4711 }
    spec { target { job_id: "j42" rank: 3 } label: "first try" }
    status {
      started_ns: 1767225510000000000
      devices: [ 0, 1, 2, 3, 4, 5, 6, 7 ]
      dump_bytes: 5000000
      records: 120000 dropped_records: 3 dropped_bytes: 192
      warnings: "33 Hz became 33.3 Hz"
    })pb");
  session.set_session_id(id);
  session.mutable_status()->set_state(state);
  session.mutable_status()->set_dump_path("/var/lib/profd/dumps/" + id);
  auto* outcomes = session.mutable_status()->mutable_outcomes();
  for (const char* collector : {"hccs", "pcie"}) {
    for (uint32_t i = 0; i < 8; ++i) {
      *outcomes->Add() = MakeOutcome(collector, v1::Outcome::RESULT_RUNNING, 50);
      outcomes->rbegin()->set_device(i);
    }
  }
  outcomes->at(0).MergeFrom(FromText<v1::Outcome>("records: 1200 bytes: 76800 dropped_records: 3 dropped_bytes: 192"));
  outcomes->at(13) = MakeOutcome("pcie", v1::Outcome::RESULT_BUSY, 0, "held by another process");
  outcomes->at(13).set_device(5);
  *outcomes->Add() = MakeOutcome("host_cpu", v1::Outcome::RESULT_RUNNING, 10);
  return session;
}

constexpr const char* kNode = R"pb(
  hostname: "node17"
  version: "0.1.0"
  build: "g++ 12.2.0 aarch64"
  uptime_ns: 273600000000000
  driver {
    hal_path: "/usr/lib64/libascend_hal.so"
    hal_api_version: 0x071905
    dcmi_error: "no libdcmi.so in the usual places"
    driver_version: "24.1.rc1"
  }
  devices {
    id: 0 physical_id: 4 chip: "Ascend910B" counter_hz: 48e6
    channels { id: 8 name: "hbm" state: STATE_RUNNING hz: 100 records: 1000 bytes: 64000 }
    health { verdict: VERDICT_OK }
  }
  devices {
    id: 1 physical_id: 5 chip: "Ascend910B" counter_hz: 48e6
    channels { id: 8 name: "hbm" state: STATE_BUSY hz: 100 records: 1000 bytes: 64000 detail: "held by another process" }
    problem: "communication lost"
    health { verdict: VERDICT_DOWN flags: FLAG_GONE reasons: "communication lost" since_ns: 1767225600000000000 }
  }
  health { verdict: VERDICT_DOWN }
  collectors {
    name: "hbm"
    summary: "HBM bandwidth"
    source: SOURCE_DRIVER_CHANNEL
    option: "sys_hardware_mem_freq"
    default_hz: 50 max_hz: 100
    devices: [ 0, 1 ]
    available: true
  }
  collectors {
    name: "rdma"
    source: SOURCE_HOST
    default_hz: 1 max_hz: 10 always_on_hz: 0.1
    reason: "this host has no /sys/class/infiniband"
  }
  dump_root: "/var/lib/profd/dumps"
  dump_free_bytes: 536870912000
  metrics_address: "127.0.0.1:9464"
  active_sessions: 1
  max_sessions: 32
  caller { uid: 1000 }
)pb";

class CliTest : public ProfctlTest {
 protected:
  CliTest() {
    daemon_.node = FromText<v1::Node>(kNode);
    daemon_.sessions["s1"] = MakeSession("s1", v1::Session::STATE_RUNNING);
    daemon_.sessions["s2"] = MakeSession("s2", v1::Session::STATE_DONE);
    daemon_.sessions["s2"].mutable_status()->set_reason("stopped by uid 1000");
    daemon_.sessions["s2"].mutable_status()->set_ended_ns(1'767'225'570'000'000'000);
    daemon_.on_start = [](const v1::SessionSpec&) {
      return MakeSession("s3", v1::Session::STATE_RUNNING);
    };
  }
};

TEST_F(CliTest, PrintsAsTheGoldenFilesSay) {
  struct Case {
    std::vector<std::string> arguments;
    std::string file;
    int exit_code = 0;
  };
  const std::vector<Case> kCases = {
      {{"status"}, "status.txt"},
      {{"status", "--json"}, "status.json"},
      {{"devices"}, "devices.txt"},
      {{"devices", "--channels"}, "channels.txt"},
      {{"collectors"}, "collectors.txt"},
      {{"list"}, "list.txt"},
      {{"show", "s2"}, "show.txt"},
      {{"show", "s2", "--json"}, "show.json"},
      {{"start", "--job", "j42"}, "start.txt", 5},
      {{"stop", "s2"}, "stop.txt"},
      {{"rm", "s2"}, "rm.txt"},
      {{"rm", "s2", "nope", "--json"}, "rm.json", 4},
      {{"show", "nope", "--json"}, "not_found.json", 4},
  };
  daemon_.freed_bytes = 5'000'000;
  for (const Case& c : kCases) {
    EXPECT_EQ(Run(c.arguments), c.exit_code) << c.file << "\n" << err();
    ExpectGolden(out(), c.file);
  }
}

// The same facts as in show.json and status.json.
TEST_F(CliTest, EveryCommandPrintsTheSameJson) {
  const Json done = Json::parse(ReadText("client/testdata/show.json"));
  const auto running = [&done](const std::string& id) {
    Json session = done;
    session.update({{"session_id", id}, {"state", "running"}, {"reason", ""}, {"ended_ns", nullptr}, {"dump_path", "/var/lib/profd/dumps/" + id}});
    return session;
  };
  const Json error = {{"session_id", "nope"}, {"code", "not_found"}, {"message", "no session nope; see `profctl list`"}, {"exit_code", 4}};
  const auto expect = [this](const std::vector<std::string>& arguments, int exit_code, const Json& json) {
    EXPECT_EQ(Run(arguments), exit_code) << err();
    EXPECT_EQ(out(), JsonText(json, true) + "\n");
  };
  expect({"list", "--json"}, 0, Json{{"sessions", Json::array({running("s1"), done})}});
  expect({"start", "--job", "j42", "--json"}, 5, running("s3"));
  expect({"stop", "s2", "nope", "--json"}, 4, Json{{"sessions", Json::array({done})}, {"errors", Json::array({error})}});
  const Json node = Json::parse(ReadText("client/testdata/status.json"));
  expect({"--json", "devices"}, 0, Json{{"devices", node["devices"]}});
  expect({"collectors", "--json"}, 0, Json{{"collectors", node["collectors"]}});
}

TEST_F(CliTest, EveryErrorCodeHasItsExitCode) {
  struct Case {
    StatusCode code;
    int exit_code;
    const char* word;
  };
  for (Case c : {Case{StatusCode::kInvalidArgument, 3, "invalid_argument"},
                 {StatusCode::kPermissionDenied, 3, "permission_denied"},
                 {StatusCode::kResourceExhausted, 3, "resource_exhausted"},
                 {StatusCode::kFailedPrecondition, 3, "failed_precondition"},
                 {StatusCode::kAlreadyExists, 3, "already_exists"},
                 {StatusCode::kNotFound, 4, "not_found"},
                 {StatusCode::kUnavailable, 6, "unavailable"},
                 {StatusCode::kDeadlineExceeded, 6, "deadline_exceeded"},
                 {StatusCode::kInternal, 1, "internal"},
                 {StatusCode::kUnimplemented, 3, "unimplemented"}}) {
    daemon_.error = Status(c.code, "because");
    EXPECT_EQ(Run({"status", "--json"}), c.exit_code);
    EXPECT_EQ(Json::parse(out())["error"]["code"], c.word);
    for (const char* command : {"status", "devices", "collectors", "list", "start"}) {
      EXPECT_EQ(Run({command}), c.exit_code) << command;
      EXPECT_NE(err().find("profctl: "), std::string::npos) << command;
      EXPECT_EQ(out(), "");
    }
    for (const char* command : {"show", "watch", "fetch", "stop", "rm"}) {
      EXPECT_EQ(Run({command, "s1"}), c.exit_code) << command;
    }
    EXPECT_EQ(Run({"stream"}), c.exit_code);
    EXPECT_EQ(Run({"stop", "--all-mine"}), c.exit_code);
  }
}

TEST_F(CliTest, ReportsWhichSocketWasTriedAndWhatToDo) {
  daemon_.error = Unavailable("failed to connect");
  TempDir dir;
  EXPECT_EQ(Run({"--socket", dir / "none.sock", "status"}), 6);
  EXPECT_EQ(daemon_.socket, dir / "none.sock");
  EXPECT_NE(err().find("There is no socket " + (dir / "none.sock")), std::string::npos) << err();
  EXPECT_NE(err().find("systemctl status profd"), std::string::npos);
  EXPECT_EQ(err().find("nor a directory"), std::string::npos);
  ExpectMessage({"status", "--json", "--socket", dir / "no/such.sock"}, 6, "nor a directory " + (dir / "no"));
  auto json = Json::parse(out());
  EXPECT_EQ(json["error"]["code"], "unavailable");
  EXPECT_EQ(json["error"]["exit_code"], 6);
  std::ofstream(dir / "file") << "x";
  ExpectMessage({"status", "--socket", dir / "file"}, 6, "exists but is not a socket");
  ExpectMessage({"status", "--socket", std::string(200, 'x')}, 6, "path has 1 to 107 bytes");
}

TEST_F(CliTest, FindsTheSocket) {
  EXPECT_EQ(Run({"status"}), 0);
  EXPECT_EQ(daemon_.socket, "/run/profd/profd.sock");
  EXPECT_EQ(daemon_.timeout_ms, std::nullopt);
  default_socket_ = "/tmp/env.sock";
  EXPECT_EQ(Run({"status", "--timeout", "3s"}), 0);
  EXPECT_EQ(daemon_.socket, "/tmp/env.sock");
  EXPECT_EQ(daemon_.timeout_ms, 3000);
  EXPECT_EQ(Run({"status", "--socket", "unix:/tmp/flag.sock"}), 0);
  EXPECT_EQ(daemon_.socket, "/tmp/flag.sock");
}

// Also what no daemon accepts: ranges and words are its business.
TEST_F(CliTest, StartSendsTheRequestAsWritten) {
  std::istringstream words(
      "start --detach --job j1 --rank 7 --label a-b --devices 0,4-6 --collector hccs=50 "
      "--collector host_cpu --sys-hardware-mem-freq 101 --llc-profiling sideways "
      "--sys-io-sampling-freq 10 --sys-interconnection-freq=50 --dvpp-freq 1 --host-sys cpu,mem "
      "--host-sys-usage mem --host-sys-usage-freq 5 --storage-limit 500MB --pid 11 --pid 12 "
      "--duration 5m --end-with-pid 13 --require-all --no-dump");
  EXPECT_EQ(Run({std::istream_iterator<std::string>(words), {}}), 5) << err();
  ASSERT_EQ(daemon_.starts.size(), 1u);
  ExpectGolden(daemon_.starts[0].DebugString(), "start_request.txt");
}

TEST_F(CliTest, StartAddsNothingOfItsOwn) {
  Run({"start", "--detach"});
  ASSERT_EQ(daemon_.starts.size(), 1u);
  EXPECT_EQ(daemon_.starts[0].ByteSizeLong(), 0u) << daemon_.starts[0].DebugString();
}

TEST_F(CliTest, StartNamesEveryProblemAtOnce) {
  EXPECT_EQ(Run({"start", "--duration", "30", "--devices", "0,x", "--collector", "hccs=fast",
                 "--dvpp-freq", "fast", "--rank", "one", "--pid", "me", "--job", ""}),
            2);
  ExpectGolden(err(), "start_problems.txt");
  EXPECT_TRUE(daemon_.starts.empty());
}

TEST_F(CliTest, StartIsPartialOnlyForWhatWasRequested) {
  v1::Session session;
  session.set_session_id("s");
  session.mutable_status()->set_state(v1::Session::STATE_RUNNING);
  *session.mutable_status()->add_outcomes() = MakeOutcome("hbm", v1::Outcome::RESULT_RUNNING, 50);
  *session.mutable_status()->add_outcomes() = MakeOutcome("ddr", v1::Outcome::RESULT_UNSUPPORTED, 0, "no DDR");
  daemon_.on_start = [&](const v1::SessionSpec&) { return session; };
  // The option asks for what the chip has; a name asks for that collector.
  EXPECT_EQ(Run({"start", "--sys-hardware-mem-freq", "50"}), 0);
  EXPECT_EQ(Run({"start", "--collector", "hbm"}), 0);
  EXPECT_EQ(Run({"start", "--collector", "ddr"}), 5);
  session.mutable_status()->mutable_outcomes(1)->set_result(v1::Outcome::RESULT_DENIED);
  EXPECT_EQ(Run({"start", "--sys-hardware-mem-freq", "50"}), 5);
  session.mutable_status()->mutable_outcomes()->RemoveLast();
  session.mutable_status()->mutable_outcomes(0)->set_result(v1::Outcome::RESULT_UNSUPPORTED);
  EXPECT_EQ(Run({"start", "--sys-hardware-mem-freq", "50"}), 5);
}

TEST_F(CliTest, StopFindsTheCallersOwnSessions) {
  daemon_.sessions["other"] = MakeSession("other", v1::Session::STATE_RUNNING);
  daemon_.sessions["other"].mutable_owner()->set_uid(77);
  EXPECT_EQ(Run({"stop", "--all-mine"}), 5) << "s1 is still running in its answer";
  EXPECT_EQ(daemon_.stopped, (std::vector<std::string>{"s1", "s2"}));
  EXPECT_NE(err().find("session s2: not everything that was requested was collected:"), std::string::npos) << err();
  EXPECT_NE(err().find("warning: session s2: 33 Hz became 33.3 Hz\n"), std::string::npos) << err();
  EXPECT_TRUE(daemon_.list_request.active_only());
  daemon_.stopped.clear();
  EXPECT_EQ(Run({"stop", "--job", "j42"}), 5);
  EXPECT_EQ(daemon_.list_request.job_id(), "j42");
  ExpectMessage({"stop", "j42"}, 4, "; a job has this name: `profctl stop --job j42` stops");
  daemon_.sessions.erase("s1");
  daemon_.sessions.erase("s2");
  ExpectMessage({"stop", "--job", "j42"}, 4, "1 of other users");
}

TEST_F(CliTest, AViewerMayNotStopAJob) {
  daemon_.node.mutable_caller()->set_viewer(true);
  daemon_.node.mutable_caller()->set_certificate("CN=graf,OU=profd-viewer");
  ExpectMessage({"stop", "--job", "j42"}, 3, "CN=graf,OU=profd-viewer has the role profd-viewer");
  EXPECT_EQ(Run({"stop", "--all-mine"}), 3);
  EXPECT_TRUE(daemon_.stopped.empty());
}

TEST_F(CliTest, StopWantsExactlyOneWay) {
  EXPECT_EQ(Run({"stop"}), 2);
  EXPECT_EQ(Run({"stop", "s1", "--all-mine"}), 2);
  EXPECT_EQ(Run({"stop", "--job", "j", "--all-mine"}), 2);
  EXPECT_EQ(Run({"stop", "--job", ""}), 2);
  EXPECT_TRUE(daemon_.stopped.empty());
}

TEST_F(CliTest, UsageErrorsAreTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"status", "--nonsense"},
                                             {"show"},
                                             {"watch"},
                                             {"fetch"},
                                             {"rm"},
                                             {"stream", "--format", "xml"},
                                             {"stream", "--count", "0"},
                                             {"stream", "--interval", "5"},
                                             {"stream", "--json", "--format", "csv"},
                                             {"watch", "s1", "--interval", "x"},
                                             {"status", "--timeout", "soon"},
                                             {"status", "--", "ls"},
                                             {"start", "stray"},
                                             {"start", "--collector", "a", "b"},
                                             {"completion", "tcsh"},
                                             {"run"},
                                             {"run", "--"}}) {
    std::string shown;
    for (const auto& argument : arguments) shown += argument + " ";
    EXPECT_EQ(Run(arguments), 2) << shown;
    EXPECT_FALSE(err().empty()) << shown;
    EXPECT_EQ(out(), "") << shown;
  }
}

TEST_F(CliTest, UsageErrorsNameWhatIsWrong) {
  Run({"nonsense"});
  EXPECT_EQ(err(), "profctl: unknown command \"nonsense\"\nTry \"profctl --help\".\n");
  Run({"strat"});
  EXPECT_EQ(err(),
            "profctl: unknown command \"strat\"; did you mean start?\nTry \"profctl --help\".\n");
  EXPECT_EQ(Run({"start", "--job"}), 2);
  EXPECT_EQ(err(), "profctl: --job needs a value: JOB\nTry \"profctl start --help\".\n");
  Run({"help"});
  EXPECT_EQ(err(), "profctl: unknown command \"help\"; for help write profctl --help, or profctl COMMAND --help\nTry \"profctl --help\".\n");
  Run({"watch", "s1", "--intervall=1s"});
  EXPECT_NE(err().find("--intervall: did you mean --interval?"), std::string::npos) << err();
  Run({"list", "--sokcet", "/run/s"});
  EXPECT_NE(err().find("--sokcet: did you mean --socket?"), std::string::npos) << err();
  Run({"list", "--alll", "50"});
  EXPECT_NE(err().find("were not expected: --alll 50"), std::string::npos) << err();
  Run({"start", "--duration", "1s", "--duration", "2s"});
  EXPECT_NE(err().find("--duration is given 2 times; give it once"), std::string::npos) << err();
  Run({"start", "--a", "--b"});
  EXPECT_NE(err().find("--a"), std::string::npos) << err();
  EXPECT_NE(err().find("--b"), std::string::npos) << err();
  EXPECT_NE(err().find("profctl start --help"), std::string::npos) << err();
}

TEST_F(CliTest, AloneItPrintsItsHelp) {
  ExpectMessage({}, 2, "collectors");
  EXPECT_NE(err().find("Exit codes:"), std::string::npos) << err();
}

// The keys of PROFILING_OPTIONS, as people paste them.
TEST_F(CliTest, AnOptionWithUnderscoresIsTheOneWithDashes) {
  ExpectMessage({"start", "--sys_hardware_mem_freq", "50"}, 2,
                "--sys_hardware_mem_freq: options have dashes, write --sys-hardware-mem-freq");
  ExpectMessage({"run", "--sys_hardware_mem_freq=50", "--node_timeout=3s", "--", "true"}, 2,
                "write --sys-hardware-mem-freq\n");
  EXPECT_NE(err().find("write --node-timeout\n"), std::string::npos) << err();
  EXPECT_EQ(Run({"start", "--no_such_thing", "50"}), 2);
  EXPECT_EQ(err().find("dashes"), std::string::npos) << err();
  EXPECT_TRUE(daemon_.starts.empty());
}

TEST_F(CliTest, HelpHasExamplesOnEveryCommand) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_NE(out().find("Exit codes"), std::string::npos);
  for (const char* command : {"status", "devices", "collectors", "start", "stop", "list", "show",
                              "watch", "stream", "top", "fetch", "rm", "run", "completion", "options",
                              "check", "export", "analyze", "advise", "report", "serve"}) {
    EXPECT_EQ(Run({command, "--help"}), 0) << command;
    EXPECT_NE(out().find("Examples:\n  $ "), std::string::npos) << command << out();
    EXPECT_NE(out().find(std::string("profctl ") + command), std::string::npos) << command;
  }
  const std::map<std::string, std::string> kUsages = {
      {"run", "run [OPTIONS] COMMAND..."}, {"tune", "tune [OPTIONS] -- COMMAND... | SUBCOMMAND\n"}, {"check", "check [OPTIONS]\n"}};
  for (const auto& [command, usage] : kUsages) {
    Run({command, "--help"});
    EXPECT_NE(out().find("Usage: profctl " + usage), std::string::npos) << out();
  }
  Run({"tune", "check", "--help"});
  EXPECT_NE(out().find("Usage: profctl tune check [OPTIONS] [-- COMMAND...]\n"), std::string::npos) << out();
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(out().rfind("profctl ", 0), 0u) << out();
}

TEST_F(CliTest, NothingFromTheDaemonDrivesTheTerminal) {
  const char* evil = "\033]0;owned\007\r\n\033[2J";
  v1::Session session = MakeSession(evil, v1::Session::STATE_DONE);
  session.mutable_status()->set_reason(evil);
  session.mutable_spec()->mutable_target()->set_job_id(evil);
  session.mutable_spec()->set_label(evil);
  session.mutable_status()->set_dump_path(evil);
  session.mutable_status()->add_warnings(evil);
  session.mutable_status()->mutable_outcomes(0)->set_collector(evil);
  session.mutable_status()->mutable_outcomes(1)->set_detail(evil);
  daemon_.sessions = {{"s1", session}};
  daemon_.on_start = [&](const v1::SessionSpec&) { return session; };
  daemon_.watch = {session};
  daemon_.node.set_hostname(evil);
  daemon_.node.mutable_devices(0)->set_problem(evil);
  daemon_.node.mutable_collectors(0)->set_last_error(evil);
  v1::SampleChunk chunk;
  v1::SeriesInfo* series = chunk.add_series();
  series->set_metric(evil);
  (*series->mutable_labels())[evil] = evil;
  chunk.add_samples()->set_value(1);
  daemon_.samples = {chunk};
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"devices"},
                                             {"devices", "--channels"},
                                             {"collectors"},
                                             {"list"},
                                             {"show", "s1"},
                                             {"start"},
                                             {"stop", "s1"},
                                             {"watch", "s1"},
                                             {"stream"},
                                             {"stream", "--format", "csv"},
                                             {"stream", "--json"},
                                             {"show", "s1", "--json"}}) {
    Run(arguments);
    for (char c : out() + err()) {
      auto byte = static_cast<unsigned char>(c);
      ASSERT_TRUE(c == '\n' || (byte >= 0x20 && byte != 0x7f)) << arguments[0] << "\n" << out();
    }
    EXPECT_FALSE(out().empty()) << arguments[0];
  }
  daemon_.error = InvalidArgument(evil);
  Run({"status"});
  EXPECT_EQ(err().find('\033'), std::string::npos);
}

TEST_F(CliTest, ColoursOnlyOnATerminalThatWantsThem) {
  Run({"list"});
  EXPECT_EQ(out().find('\033'), std::string::npos);
  io_.out_tty = true;
  Run({"list"});
  EXPECT_EQ(out().find('\033'), std::string::npos) << "NO_COLOR";
  io_.color = true;
  Run({"list"});
  EXPECT_NE(out().find("\033[33mrunning, partial"), std::string::npos) << out();
}

// The daemon's text has no commands of profctl; these are added where a person reads it.
TEST_F(CliTest, ErrorsNameTheCommandThatHelps) {
  struct Case {
    std::vector<std::string> arguments;
    std::string command;
  };
  for (const auto& [arguments, command] : {Case{{"show", "s9"}, "profctl list"},
                                           Case{{"stop", "s9"}, "profctl list"},
                                           Case{{"fetch", "s9"}, "profctl list --dumps"},
                                           Case{{"rm", "s9"}, "profctl list --dumps"},
                                           Case{{"pin", "s9"}, "profctl list --dumps"},
                                           Case{{"tune", "release", "9"}, "profctl tune leases"}}) {
    daemon_.error = daemon_.tuning_error = NotFound("s9 not found, or not owned by you");
    EXPECT_EQ(Run(arguments), kExitNotFound) << arguments[0];
    EXPECT_NE(err().find("s9 not found, or not owned by you; see `" + command + "`\n"), std::string::npos) << err();
  }
  daemon_.on_start = [](const v1::SessionSpec&) -> Result<v1::Session> {
    return Status(StatusCode::kFailedPrecondition, Problem{.kind = Problem::Kind::kNeedsProcess, .text = "{steps} need a process"});
  };
  daemon_.error = Status();
  ExpectMessage({"start", "--steps", "3", "--job", "j"}, 3, "--steps need a process; see `profctl jobs`\n");
}

TEST_F(CliTest, ShowOfADumpThatIsNotHereNamesTheCommandThatBringsIt) {
  ExpectMessage({"show", "PROF_9"}, kExitNotFound,
                "no dump PROF_9 is in this directory; `profctl list --dumps` lists those of the node, `profctl fetch PROF_9` copies it here");
}

TEST_F(CliTest, ARefusedLengthOfAReleaseIsAsItWasWritten) {
  daemon_.error = Status(StatusCode::kInvalidArgument, Problem{.field = "duration_ms", .value = "172800000", .text = "must be 1s..1h"});
  EXPECT_EQ(Run({"channels", "release", "--devices", "0", "--for", "48h"}), 3);
  EXPECT_EQ(err(), "profctl: invalid argument: --for 48h: must be 1s..1h\n");
  EXPECT_EQ(Run({"channels", "release"}), 2);
  EXPECT_EQ(err(), "profctl: --devices LIST is needed, for example 0,1,4-7\nTry \"profctl channels release --help\".\n");
}

}  // namespace
}  // namespace profd::client
