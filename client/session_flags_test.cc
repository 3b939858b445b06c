// What the flags of `start` and `run` become, and what is printed of the answer.
#include <gmock/gmock.h>
#include <unistd.h>

#include <iterator>
#include <sstream>

#include "client/starter.h"
#include "client/test_support.h"
#include "proto/options/options.h"
#include "proto/options/presets.h"

namespace profd::client {
namespace {

using testing::HasSubstr;
using testing::Not;

class SessionFlagsTest : public ProfctlTest {
 protected:
  SessionFlagsTest() {
    daemon_.on_start = [this](const v1::SessionSpec&) { return answer_; };
    answer_.set_session_id("s1");
    answer_.mutable_status()->set_state(v1::Session::STATE_RUNNING);
    answer_.mutable_status()->set_dump_path("/var/lib/profd/dumps/s1");
    daemon_.sessions["s1"] = answer_;
    daemon_.sessions["s1"].mutable_status()->set_state(v1::Session::STATE_DONE);
  }
  int RunLine(const std::string& line) {
    std::istringstream words(line);
    return Run({std::istream_iterator<std::string>(words), {}});
  }
  const v1::SessionSpec& Sent(const std::string& line) {
    daemon_.starts.clear();
    EXPECT_EQ(RunLine(line), 0) << line << '\n' << err();
    EXPECT_EQ(daemon_.starts.size(), 1u);
    if (daemon_.starts.empty()) daemon_.starts.emplace_back();
    return daemon_.starts.front();
  }
  void ExpectUsage(const std::string& line, const std::string& text) {
    daemon_.starts.clear();
    EXPECT_EQ(RunLine(line), 2) << line;
    EXPECT_THAT(err(), HasSubstr(text)) << line;
    EXPECT_TRUE(daemon_.starts.empty());
  }
  void Effect(const char* key, const char* value, const char* asked = "", const char* note = "") {
    v1::EffectiveOption* option = answer_.mutable_status()->add_effective_options();
    option->set_key(key);
    option->set_value(value);
    option->set_asked(asked);
    option->set_note(note);
  }
  void AddOutcome(const char* collector, v1::Outcome::Result result) {
    v1::Outcome* outcome = answer_.mutable_status()->add_outcomes();
    outcome->set_collector(collector);
    outcome->set_result(result);
  }

  v1::Session answer_;
};

TEST_F(SessionFlagsTest, EveryOptionOfTheTableHasAFlag) {
  Run({"start", "--help"});
  std::string help = out();
  Run({"run", "--help"});
  std::string run_help = out();
  for (const options::Option& option : options::Table()) {
    std::string flag = "--" + std::string(option.key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    EXPECT_THAT(help, HasSubstr("\n  " + flag + " ")) << flag;
    EXPECT_THAT(run_help, HasSubstr("\n  " + flag + " ")) << flag;
    bool number = option.unit == "Hz" || option.unit == "cycles";
    const auto& sent = Sent("start " + flag + (number ? " 7" : " seven")).options();
    const auto* field = sent.GetDescriptor()->FindFieldByNumber(option.field);
    EXPECT_TRUE(sent.GetReflection()->HasField(sent, field)) << flag;
  }
}

TEST_F(SessionFlagsTest, OptionsAreSentAsTyped) {
  const auto& sent = Sent("start --sys-io-sampling-freq 0 --l2 maybe --storage-limit 1MB");
  EXPECT_TRUE(sent.options().has_sys_io_sampling_freq());
  EXPECT_EQ(sent.options().sys_io_sampling_freq(), 0u);
  EXPECT_EQ(sent.options().l2(), "maybe");
  EXPECT_EQ(sent.options().storage_limit(), "1MB");
  EXPECT_FALSE(sent.options().has_aicpu());
  daemon_.starts.clear();
  EXPECT_EQ(Run({"start", "--fp-point", ""}), 0) << err();
  EXPECT_TRUE(daemon_.starts.at(0).options().has_fp_point());
}

TEST_F(SessionFlagsTest, NumbersThatAreNoneAreRefusedHere) {
  ExpectUsage("start --dvpp-freq ten", "dvpp_freq = \"ten\": must be an integer from 1 to 100");
  ExpectUsage("start --dvpp-freq 1.5 --sys-io-sampling-freq -1", "sys_io_sampling_freq = -1");
  EXPECT_THAT(err(), HasSubstr("dvpp_freq = 1.5"));
}

TEST_F(SessionFlagsTest, JsonAsTextFileAndEnvironment) {
  EXPECT_EQ(Sent("start --options-json {\"l2\":\"on\"}").options_json(), "{\"l2\":\"on\"}");
  TempDir dir;
  std::ofstream(dir / "o.json") << "{\"aicpu\":\"on\"}\n";
  EXPECT_EQ(Sent("start --options-json @" + (dir / "o.json")).options_json(),
            "{\"aicpu\":\"on\"}\n");
  ExpectUsage("start --options-json @" + (dir / "none"), "No such file");
  ExpectUsage("start --options-json @" + dir.path(), "--options-json");
  EXPECT_EQ(Sent("start --options-json " + (dir / "o.json")).options_json(), "{\"aicpu\":\"on\"}\n");
  ExpectUsage("start --options-json nonsense", "--options-json nonsense: No such file");
  // Not our business whether it is right.
  EXPECT_EQ(Sent("start --options-json [nonsense").options_json(), "[nonsense");
  EXPECT_EQ(Sent("start").options_json(), "");
  ExpectUsage("start --options-env", "PROFILING_OPTIONS is not set");
  profiling_options_ = "{\"hccl\":\"on\"}";
  EXPECT_EQ(Sent("start --options-env").options_json(), "{\"hccl\":\"on\"}");
  EXPECT_EQ(Sent("start").options_json(), "");
  ExpectUsage("start --options-env --options-json {}", "give one of them");
  ExpectUsage("run --options-json - -- true", "stdin is the command's");
}

TEST_F(SessionFlagsTest, AHugeFileIsNotReadToItsEnd) {
  TempDir dir;
  std::ofstream(dir / "big") << std::string(1'000'000, ' ') << "{}";
  ExpectUsage("start --options-json @" + (dir / "big"), "empty");
  std::ofstream(dir / "wide") << "{" << std::string(1'000'000, ' ') << "}";
  size_t sent = Sent("start --options-json @" + (dir / "wide")).options_json().size();
  EXPECT_GT(sent, options::kMaxJsonBytes);
  EXPECT_LT(sent, options::kMaxJsonBytes + 10'000);
}

TEST_F(SessionFlagsTest, PresetsFillWhatIsNotGiven) {
  v1::SessionSpec request = Sent("start --all --preset comm");
  EXPECT_EQ(request.options().sys_interconnection_freq(), 50u);
  EXPECT_EQ(request.options().sys_io_sampling_freq(), 100u);
  EXPECT_FALSE(request.options().has_sys_hardware_mem_freq());
  EXPECT_TRUE(request.best_effort());
  request = Sent("start --all --preset comm --sys-io-sampling-freq 10 "
                 "--options-json {\"sys_interconnection_freq\":20}");
  EXPECT_EQ(request.options().sys_io_sampling_freq(), 10u);
  EXPECT_FALSE(request.options().has_sys_interconnection_freq());
  ExpectUsage("start --all --preset network", "--preset \"network\": must be one of comm, mem, all");
  // Each is right.
  for (const options::Preset& preset : options::Presets()) {
    EXPECT_EQ(RunLine("check --offline --preset " + std::string(preset.name)), 0) << err();
  }
}

TEST_F(SessionFlagsTest, AclSwitches) {
  const auto& sent = Sent("start --acl ACL_PROF_L2CACHE=on --acl aiCoreMetricsType=0xFF");
  EXPECT_EQ(sent.acl_switches().size(), 2u);
  EXPECT_EQ(sent.acl_switches().at("aiCoreMetricsType"), "0xFF");
  ExpectUsage("start --acl ACL_PROF_L2CACHE", "NAME=VALUE");
  ExpectUsage("start --all --provider foo", "--provider \"foo\" is not a provider; one of auto, mspti, aclprof, off");
  ExpectUsage("start --acl a=1 --acl a=2", "given twice");
  EXPECT_TRUE(Sent("start --best-effort").best_effort());
}

TEST_F(SessionFlagsTest, RanksSelectWhereTheJobIsKnown) {
  const auto& sent = Sent("start --job j --rank 0,8-10");
  EXPECT_THAT(sent.target().ranks(), testing::ElementsAre(0, 8, 9, 10));
  EXPECT_FALSE(sent.target().has_rank());
  EXPECT_THAT(Sent("start --job j --rank 3").target().ranks(), testing::ElementsAre(3));
  for (const char* line : {"start --rank 3", "start --job j --all --rank 3",
                           "start --job j --devices 0 --rank 3", "run --job j --rank 3 -- true"}) {
    const auto& named = Sent(line);
    EXPECT_EQ(named.target().rank(), 3) << line;
    EXPECT_TRUE(named.target().ranks().empty()) << line;
  }
  EXPECT_THAT(Sent("run --job j --rank 1,2 -- true").target().ranks(), testing::ElementsAre(1, 2));
  ExpectUsage("start --rank 0-3", "--job");
  ExpectUsage("start --job j --all --rank 0-3", "--all");
  ExpectUsage("start --job j --rank one", "neither a rank nor a range");
}

TEST_F(SessionFlagsTest, AllAndSomeDevicesExcludeEachOther) {
  ExpectUsage("start --all --devices 0", "--all and --devices: give one of them");
  ExpectUsage("run --all --devices 0 -- true", "--all and --devices: give one of them");
  EXPECT_TRUE(Sent("start --all").target().all());
  EXPECT_FALSE(Sent("start --devices 0").target().all());
}

TEST_F(SessionFlagsTest, ProblemsSpeakOfFlags) {
  struct Case {
    const char* line;
    Problem problem;
    const char* shown;
  };
  for (const Case& c : std::vector<Case>{
           {"start --at 2020-01-01T00:00:00Z",
            {.field = "start_at_ns", .value = "1577836800000000000", .text = "2517d 02h ago by this node's clock"},
            "--at 2020-01-01T00:00:00Z: 2517d 02h ago by this node's clock"},
           {"start --pid 999999", {.field = "pids", .value = "999999", .text = "no such process"}, "--pid 999999: no such process"},
           {"start --pid 1 --pid 2", {.field = "pids", .value = "2", .text = "no such process"}, "pids = 2: no such process"},
           {"start --all --end-with-pid 7", {.field = "end_with_pid", .value = "7", .text = "no such process"},
            "--end-with-pid 7: no such process"},
           {"run --duration 1000000h -- true",
            {.field = "duration_ms", .value = "3600000000000", .text = "at most 720h here"},
            "--duration 1000000h: at most 720h here"},
           {"start --since 30s --no-dump",
            {.field = "since_ms", .value = "30000", .text = "needs a dump, and {no_dump} is given"},
            "--since 30s: needs a dump, and --no-dump is given"},
           {"start --start-step 3",
            {.field = "start_step", .text = "needs {job_id} or {pids}: {start_in_steps} counts"},
            "--start-step 3: needs --job or --pid: --start-step +N counts"},
           {"start --job j --start-step +20",
            {.field = "start_in_steps", .value = "20", .text = "no step yet ({start_step})"},
            "--start-step +20: no step yet (--start-step)"},
           {"start --job nosuch",
            {.field = "job_id", .value = "nosuch", .text = "no process of it; use {all} or {devices}"},
            "--job nosuch: no process of it; use --all or --devices"},
           {"start --job j", {.text = "can be sampled with {provider} off"}, "can be sampled with --provider off"},
           // Neither is about a flag that was given.
           {"start --steps 3", {.field = "stepson", .value = "4", .text = "not ours"}, "stepson = 4: not ours"},
           {"start", {.field = "start_at_ns", .value = "17", .text = "5.0 s ago"}, "start_at_ns = 17: 5.0 s ago"},
       }) {
    daemon_.on_start = [&](const v1::SessionSpec&) -> Result<v1::Session> {
      return Status(StatusCode::kInvalidArgument,
                    std::vector<Problem>{{.field = "devices", .text = "no device 9 on this node"}, c.problem});
    };
    EXPECT_EQ(RunLine(c.line), 3) << c.line;
    EXPECT_EQ(err(), std::string("profctl: invalid argument: devices: no device 9 on this node\n"
                                 "         ") +
                         c.shown + "\n");
  }
}

TEST_F(SessionFlagsTest, AStepMayBeCountedFromThePresentOne) {
  v1::SessionSpec request = Sent("start --job j --start-step +20");
  EXPECT_EQ(request.schedule().start_in_steps(), 20u);
  EXPECT_FALSE(request.schedule().has_start_step());
  ExpectUsage("start --job j --start-step +0", "integer above zero");
  ExpectUsage("start --job j --start-step soon", "or +20 to count from the present one");
  ExpectUsage("start --job j --start-step +20 --in 5s", "give one of them");
}

class WaitRanksTest : public SessionFlagsTest {
 protected:
  WaitRanksTest() {
    v1::Job* job = daemon_.jobs.add_jobs();
    job->set_job_id("j");
    job->set_world_size(2);
    Attach(0);
    daemon_.on_jobs = [this] { ++asked_; };
  }
  void Attach(int rank) {
    v1::JobProcess* process = daemon_.jobs.mutable_jobs(0)->add_processes();
    process->set_rank(rank);
    process->set_attached(true);
  }
  int asked_ = 0;
};

TEST_F(WaitRanksTest, TheStartWaitsForTheLastRank) {
  daemon_.on_jobs = [this] {
    EXPECT_TRUE(daemon_.starts.empty());
    if (++asked_ == 3) Attach(1);
  };
  Sent("start --job j --wait-ranks 10s");
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(daemon_.jobs_request.job_id(), "j");
}

TEST_F(WaitRanksTest, OfRanksThatAreNamedOnlyThese) {
  Sent("start --job j --rank 0 --wait-ranks 10s");
  EXPECT_EQ(asked_, 1);
}

TEST_F(WaitRanksTest, AtTheEndOfTheTimeItStartsWithThoseThatAreThere) {
  daemon_.on_jobs = [this] { clock_.Advance(++asked_ * 4'000'000'000); };
  Sent("start --job j --wait-ranks 10s");
  EXPECT_EQ(asked_, 2);
  EXPECT_THAT(Sent("start --job j --rank 0,5 --wait-ranks 10s").target().ranks(), testing::ElementsAre(0));
  EXPECT_THAT(err(), HasSubstr("the session starts without them: 5"));
}

TEST_F(WaitRanksTest, NeedsAJobAndADuration) {
  ExpectUsage("start --all --wait-ranks 10s", "--wait-ranks needs --job");
  ExpectUsage("start --job j --wait-ranks soon", "--wait-ranks \"soon\" is not a duration");
  EXPECT_EQ(asked_, 0);
}

TEST_F(SessionFlagsTest, ShowsWhatTheNpusUsed) {
  v1::DeviceStatistics* used = daemon_.sessions["s1"].mutable_status()->add_statistics();
  used->set_device(3);
  used->set_energy_joules(12'340);
  used->set_peak_memory_bytes(3ull << 30);
  used->set_ecc_corrected(2);
  for (const char* line : {"show s1", "stop s1"}) {
    EXPECT_EQ(RunLine(line), 0);
    EXPECT_THAT(out(), HasSubstr("12.3 kJ      3.0 GiB                 -              2")) << line;
  }
}

TEST_F(SessionFlagsTest, ReportsMissingRanks) {
  daemon_.on_start = [](const v1::SessionSpec&) {
    v1::Session session;
    session.set_session_id("s9");
    session.mutable_status()->set_state(v1::Session::STATE_RUNNING);
    session.mutable_status()->set_expected_ranks(2);
    v1::SessionProcess* process = session.mutable_status()->add_processes();
    process->set_rank(0);
    process->set_attached(true);
    return session;
  };
  Run({"start", "--job", "j"});
  EXPECT_NE(out().find("1 of 2 ranks attached on this node"), std::string::npos) << out();
}

TEST_F(SessionFlagsTest, WhenItStartsAndEnds) {
  EXPECT_EQ(Sent("start --at 2026-01-01T00:00:00Z").schedule().start_at_ns(), 1'767'225'600'000'000'000);
  EXPECT_EQ(Sent("start --in 5s").schedule().start_in_ms(), 5000u);
  const auto& steps = Sent("start --job j --start-step 11 --steps 2");
  EXPECT_EQ(steps.schedule().start_step(), 11);
  EXPECT_EQ(steps.schedule().steps(), 2u);
  EXPECT_TRUE(Sent("start --job j --start-step 0").schedule().has_start_step());
  EXPECT_FALSE(Sent("start").schedule().has_start_step());
  EXPECT_EQ(Sent("start --since -30s").schedule().since_ms(), 30'000u);
  EXPECT_EQ(Sent("start --since 30s").schedule().since_ms(), 30'000u);
  ExpectUsage("start --in 5s --start-step 3", "give one of them");
  ExpectUsage("start --at 2026-01-01T00:00:00Z --in 5s", "give one of them");
  ExpectUsage("start --at noon", "invalid time");
  ExpectUsage("start --start-step -1", "not the number of a step");
  ExpectUsage("start --steps 0", "above zero");
  ExpectUsage("start --since yesterday", "not a duration");
}

TEST_F(SessionFlagsTest, PriorityAndMetadataAreSent) {
  const auto& sent =
      Sent("start --job j --all --priority 7 --preempt --metadata model=resnet --metadata note=");
  EXPECT_TRUE(sent.target().all());
  EXPECT_EQ(sent.priority(), 7u);
  EXPECT_TRUE(sent.preempt());
  EXPECT_EQ(sent.metadata().at("model"), "resnet");
  EXPECT_EQ(sent.metadata().at("note"), "");
  ExpectUsage("start --metadata model", "NAME=VALUE");
  ExpectUsage("start --metadata a=1 --metadata a=1", "given twice");
  ExpectUsage("start --priority high", "integer");
}

TEST_F(SessionFlagsTest, ALeaseUnlessDetached) {
  const auto& sent = Sent("start");
  EXPECT_EQ(sent.lease().lease_ms(), StarterPid() == 0 ? 0u : 60'000u);
  EXPECT_EQ(sent.lease().starter_pid(), StarterPid());
  const auto& detached = Sent("start --detach");
  EXPECT_EQ(detached.lease().lease_ms(), 0u);
  EXPECT_EQ(detached.lease().starter_pid(), 0);
  EXPECT_EQ(Sent("start --lease 5s").lease().lease_ms(), 5000u);
  EXPECT_EQ(Sent("start --lease 5s").lease().starter_pid(), StarterPid());
  ExpectUsage("start --lease 5s --detach", "give one of them");
  ExpectUsage("start --lease 0s", "above zero");
}

TEST_F(SessionFlagsTest, NoLeaseWhereProcessNumbersMeanNothing) {
  // On another machine.
  const auto& remote = Sent("start --address node7:9465");
  EXPECT_EQ(remote.lease().lease_ms(), 0u);
  EXPECT_EQ(remote.lease().starter_pid(), 0);
  const auto& leased = Sent("start --address node7:9465 --lease 5s");
  EXPECT_EQ(leased.lease().lease_ms(), 5000u);
  EXPECT_EQ(leased.lease().starter_pid(), 0);
  // From inside a container.
  daemon_.node.mutable_caller()->set_pid(getpid() + 1);
  EXPECT_EQ(Sent("start").lease().lease_ms(), 0u);
  daemon_.node.mutable_caller()->set_pid(getpid());
  EXPECT_EQ(Sent("start").lease().starter_pid(), StarterPid());
}

TEST_F(SessionFlagsTest, RunProfilesTheNodeAndKeepsItsOwnLease) {
  const auto& sent = Sent("run --job j --options-json {\"l2\":\"on\"} -- true");
  EXPECT_TRUE(sent.target().all());
  EXPECT_EQ(sent.lease().lease_ms(), 60'000u);
  EXPECT_EQ(sent.lease().starter_pid(), getpid());
  EXPECT_EQ(sent.options_json(), "{\"l2\":\"on\"}");
  EXPECT_FALSE(Sent("run --devices 0 -- true").target().all());
  EXPECT_FALSE(Sent("run --job j --rank 0-1 -- true").target().all());
  EXPECT_EQ(Sent("run --detach -- true").lease().lease_ms(), 0u);
  EXPECT_FALSE(Sent("start --job j").target().all());
}

TEST_F(SessionFlagsTest, ShowsTheOptionsThatAreNotAtTheirDefault) {
  Effect("task_trace", "l1");
  Effect("training_trace", "on", "", "implied by task_trace");
  Effect("sys_io_sampling_freq", "83", "83", "rounded to 12 ms");
  Effect("host_sys_usage_freq", "50");
  Effect("l2", "off");
  Effect("output", "");
  answer_.mutable_spec()->mutable_lease()->set_lease_ms(60'000);
  AddOutcome("task_time", v1::Outcome::RESULT_NEEDS_PROCESS);
  EXPECT_EQ(Run({"start", "--detach"}), 0) << err();
  ExpectGolden(out(), "start_options.txt");
  EXPECT_EQ(Run({"start", "--detach", "-v"}), 0) << err();
  ExpectGolden(out(), "start_options_verbose.txt");
  EXPECT_EQ(Run({"start", "--json"}), 0) << err();
  EXPECT_EQ(Json::parse(out())["effective_options"].size(), 6u);
}

TEST_F(SessionFlagsTest, OptionsWithoutTheirProcessAreNotAFailure) {
  AddOutcome("hccs", v1::Outcome::RESULT_RUNNING);
  AddOutcome("task_time", v1::Outcome::RESULT_NEEDS_PROCESS);
  EXPECT_EQ(Run({"start"}), 0);
  EXPECT_THAT(out(), HasSubstr("needs_process"));
  answer_.mutable_status()->clear_outcomes();
  AddOutcome("task_time", v1::Outcome::RESULT_NEEDS_PROCESS);
  EXPECT_EQ(Run({"start"}), 0);
  AddOutcome("hccs", v1::Outcome::RESULT_BUSY);
  EXPECT_EQ(Run({"start"}), 5);
}

TEST_F(SessionFlagsTest, AScheduledSessionHasNotFailed) {
  answer_.mutable_status()->set_state(v1::Session::STATE_SCHEDULED);
  answer_.mutable_spec()->mutable_schedule()->set_start_at_ns(1'767'225'600'000'000'000);
  answer_.mutable_spec()->mutable_schedule()->set_steps(2);
  AddOutcome("hccs", v1::Outcome::RESULT_UNSPECIFIED);
  EXPECT_EQ(Run({"start", "--in", "5s"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("starts 2026-01-01 00:00:00"));
  EXPECT_THAT(out(), HasSubstr("ends after 2 steps"));
}

TEST_F(SessionFlagsTest, OutputIsKeptForFetch) {
  working_directory_ = "/data/me";
  EXPECT_EQ(Sent("start --output prof").metadata().at("output"), "/data/me/prof");
  EXPECT_THAT(out(), HasSubstr("profctl fetch s1"));
  EXPECT_EQ(Sent("start --output /abs").metadata().at("output"), "/abs");
  EXPECT_EQ(Sent("start --output /abs").options().output(), "/abs");
  EXPECT_EQ(Sent("start --options-json {\"output\":\"x\"}").metadata().at("output"), "/data/me/x");
  EXPECT_EQ(Sent("start").metadata().count("output"), 0u);
  ExpectUsage("start --no-dump --output /abs", "--output and --no-dump: give one of them");
  ExpectUsage("run --no-dump --output /abs -- true", "--output and --no-dump: give one of them");
  EXPECT_EQ(Sent("start --no-dump --options-json {\"output\":\"x\"}").metadata().count("output"), 0u);
  ascend_work_path_ = "/scratch";
  EXPECT_EQ(Sent("start").metadata().at("output"), "/scratch/profiling_data");
  EXPECT_EQ(Sent("start --output /abs").metadata().at("output"), "/abs");
  ascend_work_path_ = "/scra\ntch";
  ExpectUsage("start", "ASCEND_WORK_PATH");
}

void AddDump(FakeDaemon* daemon) {
  v1::DumpChunk chunk;
  chunk.set_dump_name("PROF_1");
  chunk.set_total_bytes(5);
  chunk.set_path("data/x");
  chunk.set_data("12345");
  chunk.set_last(true);
  daemon->dump = {chunk};
}

TEST_F(SessionFlagsTest, FetchUsesTheSessionsOutput) {
  TempDir dir;
  AddDump(&daemon_);
  std::string wanted = dir / "a/b";
  v1::Session& session = daemon_.sessions["s1"];
  (*session.mutable_spec()->mutable_metadata())["output"] = wanted;
  session.mutable_owner()->set_uid(geteuid());
  EXPECT_EQ(Run({"fetch", "s1"}), 0) << err();
  EXPECT_EQ(ReadText(wanted + "/PROF_1/data/x"), "12345");
  EXPECT_EQ(Run({"fetch", "s1", "--out", dir / "c"}), 0) << err();
  EXPECT_EQ(ReadText(dir / "c/PROF_1/data/x"), "12345");
}

TEST_F(SessionFlagsTest, FetchUsesTheOutputOfProfilingOptions) {
  TempDir dir;
  AddDump(&daemon_);
  v1::Session& session = daemon_.sessions["s1"];
  session.mutable_owner()->set_uid(geteuid());
  v1::EffectiveOption& option = *session.mutable_status()->add_effective_options();
  option.set_key("output");
  option.set_asked(dir / "from options");
  EXPECT_EQ(Run({"fetch", "s1"}), 0) << err();
  EXPECT_EQ(ReadText(dir / "from options/PROF_1/data/x"), "12345");
}

TEST_F(SessionFlagsTest, FetchOfAnothersSessionStaysWhereItIsCalled) {
  TempDir dir;
  AddDump(&daemon_);
  v1::Session& session = daemon_.sessions["s1"];
  (*session.mutable_spec()->mutable_metadata())["output"] = dir / "theirs";
  session.mutable_owner()->set_uid(geteuid() + 1);
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  EXPECT_EQ(Run({"fetch", "s1"}), 0) << err();
  std::filesystem::current_path(before);
  EXPECT_FALSE(std::filesystem::exists(dir / "theirs"));
  EXPECT_EQ(ReadText(dir / "PROF_1/data/x"), "12345");
}

TEST_F(SessionFlagsTest, RunBringsTheDumpToItsOutput) {
  TempDir dir;
  AddDump(&daemon_);
  EXPECT_EQ(Run({"run", "--output", dir / "here", "--", "true"}), 0) << err();
  EXPECT_EQ(ReadText(dir / "here/PROF_1/data/x"), "12345");
  EXPECT_THAT(err(), HasSubstr("output " + (dir / "here/PROF_1")));
  // A fetch that fails is said, and hides nothing.
  daemon_.stream_end = Internal("gone");
  ExpectMessage({"run", "--output", dir / "there", "--", "sh", "-c", "exit 4"}, 4, "could not be brought");
  EXPECT_FALSE(std::filesystem::exists(dir / "there/PROF_1"));
  EXPECT_EQ(Run({"run", "--", "true"}), 0);
  EXPECT_THAT(err(), Not(HasSubstr("output")));
}

}  // namespace
}  // namespace profd::client
