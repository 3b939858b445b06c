// `profctl tune`: conditions as functions of what is known, and real child processes with a fake daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/commands/tune_facts.h"
#include "client/commands/tune_watch.h"
#include "client/test_support.h"

namespace profd::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A machine on which nothing is in the way of operator tuning.
TuneFacts GoodFacts() {
  TuneFacts facts;
  facts.environment = {{"ASCEND_OPP_PATH", "/opt/opp"}};
  facts.home = "/root";
  facts.home_free = 20'000'000'000;
  facts.memory_available = uint64_t{64} << 30;
  facts.cpus = facts.cpus_allowed = 192;
  facts.devices = {{0, "Ascend910B", 5, ""}, {1, "Ascend910", 1, ""}};
  facts.profile = TuneProfile{1, 24, 24, false};
  facts.script_files = 1;
  facts.python_library = "/usr/lib";
  facts.work_path = ".";
  return facts;
}
TuneRequest GoodRequest() {
  TuneRequest request;
  request.devices = {0};
  request.devices_given = true;
  request.model_bytes = uint64_t{16} << 30;
  request.parallel_num = 4;
  request.parallel_given = true;
  request.command = {"python", "train.py"};
  return request;
}
TuneCondition Of(std::string_view name, const TuneRequest& request, const TuneFacts& facts) {
  for (const TuneCondition& each : CheckConditions(request, facts)) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no condition " << name;
  return {};
}
TuneVerdict VerdictOf(std::string_view name, const TuneRequest& request, const TuneFacts& facts) { return Of(name, request, facts).verdict; }

TEST(TuneConditionsTest, AllHold) {
  for (const TuneCondition& each : CheckConditions(GoodRequest(), GoodFacts())) EXPECT_EQ(each.verdict, TuneVerdict::kOk) << each.name << ": " << each.figure;
}

TEST(TuneConditionsTest, SeveralDevicesAreSeveralWithoutADaemon) {
  TuneRequest request = GoodRequest();
  TuneFacts facts = GoodFacts();
  facts.node = Unavailable("no profd");
  facts.devices.clear();
  EXPECT_EQ(VerdictOf("device", request, facts), TuneVerdict::kUnknown);
  request.devices = {0, 1};
  EXPECT_EQ(VerdictOf("device", request, facts), TuneVerdict::kAdvice);
}

// Each of analysis 8.1, with the least that does not hold.
TEST(TuneConditionsTest, EachFailsByItself) {
  struct Case {
    const char* name;
    TuneVerdict verdict;
    std::function<void(TuneRequest*, TuneFacts*)> spoil;
  };
  const Case cases[] = {
      {"mode", TuneVerdict::kImpossible, [](TuneRequest* request, TuneFacts*) { request->subgraph = true; }},
      {"device", TuneVerdict::kImpossible, [](TuneRequest* request, TuneFacts*) { request->devices = {7}; }},
      {"device", TuneVerdict::kImpossible, [](TuneRequest*, TuneFacts* facts) { facts->devices[0].problem = "gone"; }},
      {"device", TuneVerdict::kAdvice, [](TuneRequest* request, TuneFacts*) { request->devices = {0, 1}; }},
      {"lease", TuneVerdict::kImpossible, [](TuneRequest*, TuneFacts* facts) { facts->lease = ResourceExhausted("another user"); }},
      {"lease", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->node = Unavailable("no profd"); }},
      {"single_rank", TuneVerdict::kImpossible, [](TuneRequest*, TuneFacts* facts) { facts->environment["RANK_SIZE"] = "2"; }},
      {"single_rank", TuneVerdict::kImpossible, [](TuneRequest*, TuneFacts* facts) { facts->profile->ranks = 8; }},
      {"single_rank", TuneVerdict::kAdvice, [](TuneRequest* request, TuneFacts*) { request->command = {"/usr/bin/torchrun", "x"}; }},
      {"home_disk", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->home_free = 19'999'999'999; }},
      {"memory", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { --*facts->memory_available; }},
      {"memory", TuneVerdict::kUnknown, [](TuneRequest* request, TuneFacts*) { request->model_bytes.reset(); }},
      {"device_cores", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->profile->most_blocks = 25; }},
      {"device_cores", TuneVerdict::kUnknown, [](TuneRequest*, TuneFacts* facts) { facts->profile.reset(); }},
      {"static_shapes", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->profile->dynamic = true; }},
      {"profiling_off", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->environment["PROFILING_MODE"] = "true"; }},
      {"profiling_off", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->environment["PROFILING_OPTIONS"] = "{}"; }},
      {"static_memory", TuneVerdict::kUnknown, [](TuneRequest*, TuneFacts* facts) { facts->script_files = 0; }},
      {"cpu_binding", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->cpus_allowed = 4; }},
      {"environment", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->environment.clear(); }},
      {"python", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->python_library.clear(); }},
      {"bank", TuneVerdict::kImpossible, [](TuneRequest* request, TuneFacts* facts) {
         request->variables["TUNE_BANK_PATH"] = "/no";
         facts->bank = NotFound("/no: not there");
       }},
      {"work_path", TuneVerdict::kAdvice, [](TuneRequest*, TuneFacts* facts) { facts->work_path_state = PermissionDenied("x"); }},
  };
  for (const Case& each : cases) {
    TuneRequest request = GoodRequest();
    TuneFacts facts = GoodFacts();
    each.spoil(&request, &facts);
    EXPECT_EQ(VerdictOf(each.name, request, facts), each.verdict) << each.name << ": " << Of(each.name, request, facts).figure;
    EXPECT_EQ(MayTune(CheckConditions(request, facts), false), each.verdict == TuneVerdict::kUnknown) << each.name;
    EXPECT_EQ(MayTune(CheckConditions(request, facts), true), each.verdict != TuneVerdict::kImpossible) << each.name;
  }
}

// PROFILING_MODE=false keeps PROFILING_OPTIONS from starting anything (api.md).
TEST(TuneConditionsTest, ProfilingThatIsSwitchedOffIsOff) {
  TuneFacts facts = GoodFacts();
  facts.environment["PROFILING_OPTIONS"] = "{}";
  facts.environment["PROFILING_MODE"] = "false";
  EXPECT_EQ(VerdictOf("profiling_off", GoodRequest(), facts), TuneVerdict::kOk);
  EXPECT_EQ(Of("profiling_off", GoodRequest(), facts).figure, "PROFILING_MODE=false");
}

TEST(TuneConditionsTest, AdviceIsWhatCanBeDone) {
  TuneRequest request = GoodRequest();
  TuneFacts facts = GoodFacts();
  facts.lease = ResourceExhausted("NPU 0 is kept for tuning by another user");
  EXPECT_EQ(Of("lease", request, facts).advice, "wait until it ends, or end it");
  facts.lease = NotFound("no device 7 on this node");
  EXPECT_EQ(Of("lease", request, facts).advice, "") << "nothing to wait for";
  request.variables["TUNE_BANK_PATH"] = "/no";
  facts.bank = NotFound("/no: not there");
  EXPECT_THAT(Of("bank", request, facts).advice, HasSubstr("mkdir -p /no"));
  facts.bank = InvalidArgument("/no is not a folder");
  EXPECT_EQ(Of("bank", request, facts).advice, "name a folder of yours: --bank DIR");
}

// The driver's problems begin with the NPU, others do not.
TEST(TuneConditionsTest, ADevicesProblemNamesItOnce) {
  const TuneRequest request = GoodRequest();
  TuneFacts facts = GoodFacts();
  facts.devices[0].problem = "NPU 0 does not answer";
  EXPECT_EQ(Of("device", request, facts).figure, "NPU 0 does not answer");
  facts.devices[0].problem = "gone";
  EXPECT_EQ(Of("device", request, facts).figure, "NPU 0: gone");
}

// Operators: 2 x (8 + 4 + min(n / 2, 8) + 50) = 140 of more than 16; subgraphs: 2 x (2 x 4 + 8) = 32.
TEST(TuneConditionsTest, CpusByTheTwoFormulas) {
  TuneRequest request = GoodRequest();
  request.processes = 2;
  TuneFacts facts = GoodFacts();
  const auto with = [&](uint64_t cpus) {
    facts.cpus = facts.cpus_allowed = cpus;
    return VerdictOf("cpus", request, facts);
  };
  EXPECT_EQ(with(140), TuneVerdict::kOk);
  EXPECT_EQ(with(139), TuneVerdict::kAdvice);
  EXPECT_THAT(Of("cpus", request, facts).figure, HasSubstr("139 CPUs; 2 x (8 + 4 + 8 + 50) = 140"));
  request.subgraph = true;
  EXPECT_EQ(with(32), TuneVerdict::kOk);
  EXPECT_EQ(with(31), TuneVerdict::kAdvice);
  // With 4 CPUs min(4 / 2, 8) is 2.
  request.subgraph = false;
  facts.cpus = 4;
  EXPECT_THAT(Of("cpus", request, facts).figure, HasSubstr("2 x (8 + 4 + 2 + 50) = 128"));
}

TEST(TuneConditionsTest, SubgraphTuningByChip) {
  TuneRequest request = GoodRequest();
  request.subgraph = true;
  request.devices = {1};
  EXPECT_EQ(VerdictOf("mode", request, GoodFacts()), TuneVerdict::kOk);
}

TEST(TuneConditionsTest, ScriptIsSearchedForConditions) {
  TuneFacts facts = GoodFacts();
  LookThroughScript("import x\ncustom_op.parameter_map[\"static_memory_policy\"].i = 0\n# profiling_mode = True\n", "train.py", &facts);
  EXPECT_EQ(VerdictOf("static_memory", GoodRequest(), facts), TuneVerdict::kOk);
  EXPECT_EQ(VerdictOf("profiling_off", GoodRequest(), facts), TuneVerdict::kOk);
  LookThroughScript("a\n  custom_op.parameter_map[\"static_memory_policy\"].i = 1\ncustom_op.parameter_map[\"profiling_mode\"].b = True\n", "train.py", &facts);
  EXPECT_EQ(VerdictOf("static_memory", GoodRequest(), facts), TuneVerdict::kAdvice);
  EXPECT_THAT(Of("static_memory", GoodRequest(), facts).figure, HasSubstr("train.py:2: custom_op"));
  EXPECT_THAT(Of("profiling_off", GoodRequest(), facts).figure, HasSubstr("train.py:3: "));
}

TEST(TuneConditionsTest, ScriptThatSetsProfilingOptions) {
  TuneFacts facts = GoodFacts();
  LookThroughScript("# PROFILING_OPTIONS='{}'\nunset PROFILING_OPTIONS\nexport PROFILING_OPTIONS=\nexport PROFILING_OPTIONS=''\n", "train.sh", &facts);
  EXPECT_EQ(VerdictOf("profiling_off", GoodRequest(), facts), TuneVerdict::kOk);
  LookThroughScript(R"(export PROFILING_OPTIONS='{"output":"/tmp/profiling","task_trace":"on"}')", "train.sh", &facts);
  EXPECT_EQ(VerdictOf("profiling_off", GoodRequest(), facts), TuneVerdict::kAdvice);
  EXPECT_THAT(Of("profiling_off", GoodRequest(), facts).figure, HasSubstr("train.sh:1: export PROFILING_OPTIONS"));
  facts = GoodFacts();
  facts.environment["PROFILING_MODE"] = "false";
  LookThroughScript("export PROFILING_OPTIONS='{}'", "train.sh", &facts);
  EXPECT_EQ(VerdictOf("profiling_off", GoodRequest(), facts), TuneVerdict::kOk);
}

TEST(TuneSignsTest, AreFoundWhereverTheOutputIsCut) {
  const std::string text = "x in tune mode, training graph handled by tools. y Aoe tuning graph.";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    TuneSigns signs;
    signs.Feed(text.substr(0, cut));
    signs.Feed(text.substr(cut));
    EXPECT_TRUE(signs.adapter() && signs.tool()) << cut;
  }
  TuneSigns none;
  none.Feed("Aoe tuning graph");
  EXPECT_FALSE(none.tool());
}

class TuneTest : public ProfctlTest {
 protected:
  TuneTest() {
    working_directory_ = dir_.path();
    home_ = dir_.path();
    v1::Device& device = *daemon_.node.add_devices();
    device.set_chip("Ascend910B");
    device.set_chip_id(5);
    daemon_.node.mutable_caller()->set_pid(getpid());
    daemon_.tuning_lease.set_lease_id("t1");
  }
  int Shell(const std::string& script, std::vector<std::string> options = {"--force"}) {
    options.insert(options.begin(), "tune");
    options.insert(options.end(), {"--", "sh", "-c", script, "sh", dir_.path()});
    return Run(options);
  }
  TempDir dir_;
};

constexpr const char* kTuned =
    "echo 'in tune mode, training graph handled by tools.'; echo 'Aoe tuning graph.' >&2; env | grep -E '^(AOE_MODE|TUNE_BANK_PATH|ASCEND_DEVICE_ID)='; "
    "printf '{\"report_1_1\": [{\"basic\": {\"tuning_name\": \"t\", \"tuning_time(s)\": 3}}]}' > $1/aoe_result_opat_1_pid7.json; exit 5";

TEST_F(TuneTest, RunsTheCommandWithItsVariablesAndShowsTheResults) {
  std::ofstream(dir_ / "aoe_result_opat_0_pid1.json") << "{}";  // of an earlier tuning
  EXPECT_EQ(Shell(kTuned, {"--force", "--mode", "operator", "--bank", dir_.path(), "--job", "bert", "--devices", "0"}), 5) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("in tune mode"), HasSubstr("AOE_MODE=2"), HasSubstr("ASCEND_DEVICE_ID=0"), HasSubstr("TUNE_BANK_PATH=" + dir_.path())));
  EXPECT_THAT(err(), AllOf(HasSubstr("Aoe tuning graph."), HasSubstr("aoe_result_opat_1_pid7.json"), HasSubstr("t: nothing, 3 s"),
                           HasSubstr("op_compiler_cache_mode to force"), HasSubstr("export TUNE_BANK_PATH=" + dir_.path()), Not(HasSubstr("pid1.json"))));
  ASSERT_EQ(daemon_.tuning_requests.size(), 2u);
  EXPECT_TRUE(daemon_.tuning_requests[0].check_only());
  EXPECT_EQ(daemon_.tuning_requests[0].job_id(), "bert") << "else a check would pass that tuning does not";
  EXPECT_GT(daemon_.tuning_requests[1].pid(), 0);
  EXPECT_NE(daemon_.tuning_requests[1].pid(), getpid());
  EXPECT_EQ(daemon_.tuning_requests[1].job_id(), "bert");
  EXPECT_EQ(daemon_.released, std::vector<std::string>{"t1"});
}

TEST_F(TuneTest, TheBankOfTheEnvironmentIsTheOneToTrainWith) {
  const std::string bank = dir_ / "a bank's";
  std::filesystem::create_directory(bank);
  variables_["TUNE_BANK_PATH"] = bank;
  EXPECT_EQ(Shell(kTuned, {"--force", "--mode", "operator", "--devices", "0"}), 5) << err();
  EXPECT_THAT(out(), HasSubstr("TUNE_BANK_PATH=" + bank));
  EXPECT_THAT(err(), HasSubstr("train with the tuned bank: export TUNE_BANK_PATH='" + (dir_ / "a bank'\\''s'")));
}

TEST_F(TuneTest, ABankWithoutANameIsRefused) {
  EXPECT_EQ(Shell("touch $1/ran", {"--force", "--bank", ""}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("--bank \"\": an absolute path of a folder"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
}

TEST_F(TuneTest, NothingRunsWhereAConditionDoesNotHold) {
  EXPECT_EQ(Shell("touch $1/ran", {}), kExitRefused);
  EXPECT_THAT(err(), AllOf(HasSubstr("not tuned: "), HasSubstr("--force")));
  EXPECT_EQ(Shell("touch $1/ran", {"--force", "--mode", "subgraph"}), kExitRefused);
  EXPECT_THAT(err(), AllOf(HasSubstr("not tuned: mode"), HasSubstr("Atlas A2")));
  daemon_.tuning_error = ResourceExhausted("NPU 0 is kept for tuning by another user");
  EXPECT_EQ(Shell("touch $1/ran"), kExitRefused);
  EXPECT_THAT(err(), HasSubstr("kept for tuning by another user"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
}

TEST_F(TuneTest, WithoutADaemonOnlyByForce) {
  daemon_.error = Unavailable("no profd here");
  EXPECT_EQ(Shell("exit 0"), 0) << err();
  EXPECT_THAT(err(), HasSubstr("nothing keeps other users"));
}

TEST_F(TuneTest, CheckPrintsAndRunsNothing) {
  EXPECT_EQ(Run({"tune", "check", "--json", "--mode", "subgraph"}), kExitRefused);
  const Json json = Json::parse(out());
  EXPECT_EQ(json["may_tune"], false);
  EXPECT_EQ(json["conditions"][0]["name"], "mode");
  EXPECT_EQ(json["conditions"][0]["verdict"], "impossible");
  EXPECT_TRUE(daemon_.released.empty());
}

TEST_F(TuneTest, ACommandWithoutDashesIsShownWithThem) {
  ExpectMessage({"tune", "python", "train.py", "--epochs", "3"}, 2,
                "follows --, as in: profctl tune -- python train.py --epochs 3\n");
}

TEST_F(TuneTest, RefusesInvalidCommandLines) {
  EXPECT_EQ(Shell("exit 0", {"--model-memory", "12"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("--model-memory \"12\""));
  EXPECT_EQ(Shell("exit 0", {"--mode", "both", "--model-memory", "much", "--parallel-num", "0", "--interval", "x"}), kExitUsage);
  EXPECT_THAT(err(), AllOf(HasSubstr("--mode \"both\""), HasSubstr("--model-memory \"much\""), HasSubstr("--parallel-num \"0\""), HasSubstr("--interval")));
  EXPECT_EQ(Run({"tune", "--force"}), kExitUsage);
  EXPECT_EQ(Run({"tune", "--", "no-such-program-here"}), 127);
}

TEST_F(TuneTest, SignalsReachTheCommandAndTheDeathIsItsOwn) { EXPECT_EQ(Shell("kill -TERM $$"), 128 + SIGTERM); }

// analysis 8.3: 55.1191 is written as 55.11, 78.1570 as 78.15.
TEST_F(TuneTest, GainsOfSubgraphsAreCut) {
  std::ofstream(dir_ / "aoe_result_sgat_1_pid7.json") << R"json({"report_1_1": [{"basic": {"tuning_name": "g", "tuning_time(s)": 19}}, {"SGAT": {
    "model_baseline_performance(ms)": 5.600486, "model_result_performance(ms)": 3.610442, "model_performance_improvement": "55.11%",
    "repo_modified_subgraphs": {"update_repo_subgraphs": [{"performance_before_tune(ms)": 4.58434, "performance_after_tune(ms)": 2.573203,
    "performance_improvement": "78.15%", "repo_key": "k"}]}}}]})json";
  EXPECT_EQ(Run({"tune", "show", dir_.path()}), kExitOk) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr(" 55.11 %"), HasSubstr("78.15"), Not(HasSubstr("78.16"))));
  // (5 - 10) / 10
  std::ofstream(dir_ / "aoe_result_sgat_1_pid7.json") << R"json({"report_1_1": [{"basic": {"tuning_name": "g", "tuning_time(s)": 19}}, {"SGAT": {
    "model_baseline_performance(ms)": 5, "model_result_performance(ms)": 10, "model_performance_improvement": "-50.00%"}}]})json";
  EXPECT_EQ(Run({"tune", "show", dir_.path()}), kExitOk) << err();
  EXPECT_THAT(out(), HasSubstr(" -50.00 %"));
}

TEST_F(TuneTest, AFileThatIsNamedTwiceCountsOnce) {
  std::filesystem::create_directory(std::string(dir_ / "sub"));
  const std::string path = dir_ / "sub/aoe_result_opat_1_pid7.json";
  std::ofstream(path) << R"json({"report_1_1": [{"basic": {"tuning_name": "t", "tuning_time(s)": 3}}]})json";
  EXPECT_EQ(Run({"tune", "show", "--json", dir_.path(), path, dir_ / "sub/../sub", dir_ / "./sub/aoe_result_opat_1_pid7.json"}), kExitOk) << err();
  EXPECT_EQ(Json::parse(out())["files"].size(), 1u);
  EXPECT_EQ(analysis::TuningResultsIn({dir_.path(), dir_ / "sub"}), std::vector<std::string>({path}));
}

// analysis 8.2: OPAT is absent where there was nothing to tune, SGAT where tuning failed.
TEST_F(TuneTest, SubgraphTuningWithoutAResultHasFailed) {
  const std::string basic = R"json("report_1_1": [{"basic": {"tuning_name": "none", "tuning_time(s)": 19}}])json";
  const std::string done = R"json("report_1_2": [{"basic": {"tuning_name": "done", "tuning_time(s)": 19}},
    {"SGAT": {"model_baseline_performance(ms)": 2, "model_result_performance(ms)": 1}}])json";
  const auto shown = [&](const char* name, const std::string& text) {
    const std::string path = dir_ / name;
    std::ofstream(path) << text;
    EXPECT_EQ(Run({"tune", "show", path}), kExitOk) << err();
    return std::string(out());
  };
  EXPECT_THAT(shown("aoe_result_opat_1_pid7.json", "{" + basic + "}"), HasSubstr("none: nothing, 19 s"));
  EXPECT_THAT(shown("aoe_result_sgat_1_pid7.json", "{" + basic + "}"), HasSubstr("none: failed, 19 s"));
  EXPECT_THAT(shown("aoe_result_opat_2_pid7.json", "{" + basic + ", " + done + "}"), AllOf(HasSubstr("none: failed, 19 s"), HasSubstr("done: successful, 19 s")));
}

TEST_F(TuneTest, ShowAndLeases) {
  std::ofstream(dir_ / "aoe_result_opat_1_pid7.json") << R"json({"report_1_1": [{"basic": {"tuning_name": "t"}}, {"OPAT": {"repo_modified_operators": [
    {"op_name": "a", "op_type": "Add", "tune_performance": {"Impl": {"performance_after_tune(us)": 2, "performance_before_tune(us)": 3, "performance_improvement": "50.00%", "update_mode": "add"}}}]}}]})json";
  EXPECT_EQ(Run({"tune", "show", dir_.path()}), kExitOk) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("t: incomplete"), HasSubstr("50.00"), HasSubstr("Impl")));
  EXPECT_EQ(Run({"tune", "show", "--csv", dir_.path()}), kExitOk);
  EXPECT_THAT(out(), HasSubstr(",operator,a,Add,Impl,add,3.0,2.0,50.0\n"));
  EXPECT_EQ(Run({"tune", "show", "--json", dir_.path()}), kExitOk);
  EXPECT_EQ(Json::parse(out())["totals"]["operators"], 1);
  EXPECT_EQ(Run({"tune", "show", dir_ / "none"}), kExitNotFound);
  v1::TuningLease& lease = *daemon_.tuning_leases.add_leases();
  lease.set_lease_id("t1");
  lease.add_devices(3);
  EXPECT_EQ(Run({"tune", "leases"}), kExitOk);
  EXPECT_THAT(out(), AllOf(HasSubstr("t1"), HasSubstr("another")));
}

// As `tune show` has it, that is code 4, and 3 where no file can be read; a gain that is missing is 7.
TEST_F(TuneTest, VerifyOfNothingIsNoSuccess) {
  const auto make_run = [&](const std::string& name, const std::string& kernel) {
    const std::filesystem::path folder = std::filesystem::path(std::string(dir_ / name)) / "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "kernel_details.csv") << "Name,Type,Start Time(us),Duration(us)\n" << kernel << ",1,3\n";
    return dir_ / name;
  };
  const std::string run = make_run("run", "a,Add"), other = make_run("other", "b,Mul");
  ExpectMessage({"tune", "verify", "--before", run, "--after", run}, kExitNotFound,
                "nothing to compare: no aoe_result_opat_*.json");
  const std::string result = dir_ / "aoe_result_opat_1_pid7.json";
  std::ofstream(result) << R"json({"report_1_1": [{"basic": {"tuning_name": "t"}}, {"OPAT": {"repo_modified_operators": [
    {"op_name": "a", "op_type": "Add", "tune_performance": {"Impl": {"performance_after_tune(us)": 2, "performance_before_tune(us)": 3, "performance_improvement": "50.00%", "update_mode": "add"}}}]}}]})json";
  ExpectMessage({"tune", "verify", "--before", other, "--after", other, result}, kExitNotFound,
                "nothing to compare: no tuned operator is in both profiles");
  EXPECT_EQ(Run({"tune", "verify", "--before", run, "--after", run, result}), 7);
  EXPECT_EQ(Run({"tune", "show", "/dev/null"}), kExitRefused);
  EXPECT_EQ(Run({"tune", "verify", "--before", run, "--after", run, "/dev/null"}), kExitRefused);
  EXPECT_EQ(err(), "profctl: /dev/null: not a plain file\n");
}

}  // namespace
}  // namespace profd::client
