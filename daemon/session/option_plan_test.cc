#include "daemon/session/option_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/session/plan_test_support.h"
#include "daemon/session/session.h"
#include "proto/options/options_message.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using OptionPlanTest = SessionPlanTest;

struct Support {
  int chip;
  const char* json;
  const char* why;  // nullptr: supported
};

TEST_F(OptionPlanTest, UnsupportedOptionsHaveACodeOfTheirOwn) {
  const Support kCases[] = {
      {1, R"({"sys_hardware_mem_freq":50})", nullptr},
      {1, R"({"sys_io_sampling_freq":100})", nullptr},
      {1, R"({"sys_interconnection_freq":50})", nullptr},
      {1, R"({"dvpp_freq":100})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"llc_profiling":"write"})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"l2":"on"})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"aic_metrics":"Memory"})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"aic_metrics":"L2Cache"})", "L2Cache events do not exist"},
      {1, R"({"instr_profiling_freq":300})", "Ascend910B (A2) only"},
      {5, R"({"sys_hardware_mem_freq":50,"aic_metrics":"L2Cache"})", nullptr},
      {5, R"({"sys_io_sampling_freq":100,"l2":"on"})", nullptr},
      {5, R"({"instr_profiling_freq":300})", nullptr},
  };
  for (const Support& one : kCases) {
    SCOPED_TRACE(fmt::format("chip {}: {}", one.chip, one.json));
    devices_ = {Device(0, one.chip)};
    request_.set_options_json(one.json);
    Result<SessionPlan> plan = Plan();
    ASSERT_EQ(plan.ok(), one.why == nullptr) << plan.status().ToString();
    if (one.why == nullptr) continue;
    EXPECT_EQ(plan.status().code(), StatusCode::kUnimplemented);
    EXPECT_THAT(plan.status().message(), AllOf(HasSubstr(one.why), HasSubstr("not supported on")));
  }
}

TEST_F(OptionPlanTest, EveryOptionWithoutItsChannelsIsUnsupported) {
  devices_[0].channels = {2, 5};
  devices_.resize(1);
  for (const char* json :
       {R"({"sys_hardware_mem_freq":1})", R"({"sys_io_sampling_freq":1})",
        R"({"sys_interconnection_freq":1})", R"({"dvpp_freq":1})", R"({"l2":"on"})"}) {
    request_.set_options_json(json);
    Result<SessionPlan> plan = Plan();
    EXPECT_EQ(plan.status().code(), StatusCode::kUnimplemented) << json;
    EXPECT_THAT(plan.status().message(), HasSubstr("not supported on Ascend910B")) << json;
  }
  devices_.clear();
  request_.set_options_json(R"({"training_trace":"on","host_sys_usage":"cpu"})");
  EXPECT_THAT(Problems(), HasSubstr("no devices on this node"));
  request_.set_options_json(R"({"msproftx":"on","host_sys_usage":"cpu"})");
  EXPECT_TRUE(Plan().ok()) << Plan().status().ToString();
}

TEST_F(OptionPlanTest, ProcessesWhoseDevicesAreNotKnownMayCollectWhatTheNodesChipsCan) {
  devices_.clear();
  request_.set_options_json(R"({"aic_metrics":"Memory","msproftx":"on","host_sys_usage":"cpu"})");
  EXPECT_THAT(Problems(), HasSubstr("no devices on this node"));
  maybe_devices_ = {Device(0, 1)};
  EXPECT_TRUE(Plan().ok()) << Plan().status().ToString();
  request_.set_options_json(R"({"aic_metrics":"L2Cache","host_sys_usage":"cpu"})");
  EXPECT_THAT(Problems(), HasSubstr("L2Cache events do not exist"));
  request_.set_options_json(R"({"sys_hardware_mem_freq":50,"host_sys_usage":"cpu"})");
  EXPECT_THAT(Problems(), HasSubstr("no devices on this node"));
}

// Both kinds are listed; the code shows whether leaving out what this chip lacks would be enough.
TEST_F(OptionPlanTest, UnsupportedIsTheCodeOnlyWhenNothingElseIsWrong) {
  devices_ = {Device(0, 1)};
  request_.set_options_json(R"({"instr_profiling_freq":300})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kUnimplemented);
  request_.set_label("two\nlines");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Plan().status().message(), AllOf(HasSubstr("instr_profiling_freq"), HasSubstr("label")));
  request_.clear_label();
  request_.set_options_json(R"({"instr_profiling_freq":300,"dvpp_freq":101})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Plan().status().message(),
              AllOf(HasSubstr("instr_profiling_freq"), HasSubstr("dvpp_freq")));
  request_.mutable_target()->add_pids(20);
  EXPECT_EQ(Plan().status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(Plan().status().message(), AllOf(HasSubstr("uid 2000"), HasSubstr("dvpp_freq")));
}

TEST_F(OptionPlanTest, ALostDeviceForbidsNothingThatTheOthersCan) {
  DeviceInfo lost;
  lost.id = lost.physical_id = 1;
  lost.chip_name = "unknown";
  devices_ = {Device(0, 5), lost};
  request_.set_options_json(R"({"instr_profiling_freq":300})");
  EXPECT_TRUE(Plan().ok()) << Plan().status().ToString();
  devices_ = {lost};
  EXPECT_EQ(Plan().status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Plan().status().message(), HasSubstr("not supported on unknown"));
}

TEST_F(OptionPlanTest, BestEffortTurnsUnsupportedAndOnlyThatIntoWarnings) {
  devices_ = {Device(0, 1)};
  request_.set_best_effort(true);
  request_.set_options_json(R"({"sys_io_sampling_freq":50,"aic_metrics":"L2Cache"})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("nic", "roce"));
  EXPECT_THAT(plan->warnings, Contains(HasSubstr("aic_metrics = \"L2Cache\"")));
  EXPECT_EQ(Option(*plan, "aic_metrics").value, "off");
  EXPECT_EQ(Option(*plan, "aic_metrics").asked, "L2Cache");
  EXPECT_THAT(Option(*plan, "aic_metrics").note, HasSubstr("not supported on Ascend910"));
  EXPECT_FALSE(plan->application_options.contains("aic_metrics"));
  request_.set_options_json(R"({"sys_io_sampling_freq":101,"aic_metrics":"L2Cache"})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  // Nothing is left of the request: it must not become a request of everything.
  request_.set_options_json(R"({"instr_profiling_freq":300})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kUnimplemented);
}

// ---- the three forms ----

TEST_F(OptionPlanTest, TheThreeFormsMeanTheSame) {
  request_.mutable_options()->set_aicpu("on");
  request_.mutable_options()->set_dvpp_freq(10);
  Result<SessionPlan> fields = Plan();
  request_.Clear();
  request_.set_options_json(R"({"aicpu":"on","dvpp_freq":"10"})");
  Result<SessionPlan> json = Plan();
  request_.Clear();
  (*request_.mutable_acl_switches())["ACL_PROF_AICPU"] = "on";
  request_.mutable_options()->set_dvpp_freq(10);
  Result<SessionPlan> switches = Plan();
  ASSERT_TRUE(fields.ok() && json.ok() && switches.ok()) << switches.status().ToString();
  for (const Result<SessionPlan>* plan : {&fields, &json, &switches}) {
    EXPECT_EQ((*plan)->application_options.at("aicpu"), "on");
    EXPECT_THAT(Named(**plan), ElementsAre("dvpp"));
  }
  for (const Result<SessionPlan>* plan : {&fields, &json}) EXPECT_THAT((*plan)->awaited_options, ElementsAre("aicpu"));
  // The switches have defaults of their own.
  EXPECT_THAT(switches->awaited_options, ElementsAre("task_time", "hccl", "aicpu", "aic_metrics", "ACL_PROF_ACL_API"));
  request_.set_options_json(R"({"dvpp_freq":20})");
  EXPECT_THAT(Problems(), HasSubstr("dvpp_freq"));
  request_.set_options_json(R"({"dvpp_freq":10})");
  EXPECT_TRUE(Plan().ok());
  request_.set_options_json("{\"dvpp_freq\":10,}");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  request_.set_options_json(R"({"dvpp_frq":10})");
  EXPECT_THAT(Problems(), HasSubstr("dvpp_freq"));
}

// ---- effective options ----

TEST_F(OptionPlanTest, RatesAreReportedAsTheDriverRunsThem) {
  struct {
    const char* key;
    uint32_t asked;
    const char* value;
    const char* note;
  } const kCases[] = {
      {"sys_io_sampling_freq", 100, "100", ""},
      {"sys_io_sampling_freq", 80, "83.3333", "every 12 ms"},
      {"sys_io_sampling_freq", 1, "1", ""},
      {"sys_interconnection_freq", 30, "30.303", "every 33 ms"},
      {"dvpp_freq", 99, "100", "every 10 ms"},
      {"sys_hardware_mem_freq", 100, "100", ""},
      {"sys_hardware_mem_freq", 60, "62.5", "every 16 ms"},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(fmt::format("{} = {}", one.key, one.asked));
    request_.Clear();
    options::SetField(one.key, std::to_string(one.asked), request_.mutable_options());
    Result<SessionPlan> plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(Option(*plan, one.key).value, one.value);
    EXPECT_EQ(Option(*plan, one.key).asked, std::to_string(one.asked));
    EXPECT_EQ(Option(*plan, one.key).note, one.note);
  }
  EXPECT_EQ(Plan()->options.size(), options::Table().size());
}

TEST_F(OptionPlanTest, HostRatesAreReportedWhereOnePollServesTwo) {
  request_.mutable_options()->set_host_sys_usage("cpu,mem");
  request_.mutable_options()->set_host_sys_usage_freq(10);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Option(*plan, "host_sys_usage_freq").value, "10");
  EXPECT_EQ(Of(*plan, "host_mem").hz, 10);
  request_.mutable_options()->set_host_sys("cpu");
  request_.mutable_target()->add_pids(10);
  plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Of(*plan, "host_cpu").hz, 50);
  EXPECT_EQ(Of(*plan, "host_mem").hz, 10);
  EXPECT_TRUE(Of(*plan, "host_cpu").poll.system);
  EXPECT_EQ(Option(*plan, "host_sys_usage_freq").value, "50");
}

TEST_F(OptionPlanTest, UsersRatesAreLimitedAdministratorsAreNot) {
  config_.max_user_hz = 40;
  request_.mutable_options()->set_sys_io_sampling_freq(40);
  EXPECT_TRUE(Plan().ok());
  request_.mutable_options()->set_sys_io_sampling_freq(41);
  EXPECT_THAT(Problems(), AllOf(HasSubstr("sys_io_sampling_freq = 41: at most 40 Hz"),
                                HasSubstr("limits.max_user_hz")));
  request_.Clear();
  v1::CollectorRequest* request = request_.add_collectors();
  request->set_name("hbm");
  request->set_hz(41);
  EXPECT_THAT(Problems(), HasSubstr("limits.max_user_hz"));
  request->clear_hz();
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Of(*plan, "hbm").hz, 40);  // its default is 50
  EXPECT_THAT(plan->warnings, Contains(HasSubstr("limits.max_user_hz")));
  request->set_hz(41);
  peer_.admin = true;
  EXPECT_TRUE(Plan().ok());
}

// ---- data from inside the application ----

TEST_F(OptionPlanTest, MarksFollowTheirOptionOrGoWithoutSaying) {
  struct Case {
    const char* options;
    bool marks;
    bool taken;
  };
  for (const Case& each : {Case{"", false, true}, Case{R"({"dvpp_freq":10})", false, false},
                           Case{R"({"dvpp_freq":10})", true, true},
                           Case{R"({"dvpp_freq":10,"msproftx":"on"})", false, true},
                           Case{R"({"dvpp_freq":10,"msproftx":"off"})", true, false}}) {
    request_.set_options_json(each.options);
    request_.set_marks(each.marks);
    Result<SessionPlan> plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(plan->takes_marks, each.taken) << each.options;
    EXPECT_EQ(Option(*plan, "msproftx").value, each.taken ? "on" : "off") << each.options;
  }
}

TEST_F(OptionPlanTest, ApplicationOptionsAreCarriedAndNoted) {
  request_.set_options_json(
      R"({"training_trace":"on","task_trace":"l0","fp_point":"conv1","sys_io_sampling_freq":10})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_FALSE(plan->application_only);
  EXPECT_THAT(plan->awaited_options, ElementsAre("training_trace", "task_trace", "fp_point"));
  EXPECT_EQ(plan->application_options.at("task_time"), "l0");  // the other name of task_trace
  EXPECT_EQ(plan->application_options.at("fp_point"), "conv1");
  EXPECT_FALSE(plan->application_options.contains("msproftx"));
  for (const auto& [key, value] : plan->application_options) {
    EXPECT_THAT(Option(*plan, key).note, HasSubstr(std::string(kNeedsProcess))) << key;
  }
  // A default is never awaited, but it is in force and says what it lacks.
  request_.set_options_json(R"({"sys_io_sampling_freq":10})");
  plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->awaited_options.empty());
  EXPECT_EQ(Option(*plan, "task_time").value, "l1");
  EXPECT_EQ(Option(*plan, "task_time").note, kNeedsProcess);
}

TEST_F(OptionPlanTest, RequestedOptionsAreCollectedInTheProcesses) {
  using Collect = std::map<std::string, attach::CollectKinds>;
  using enum attach::CollectKind;
  attached_ = true;
  request_.set_options_json(R"({"task_trace":"l0","hccl":"on","runtime_api":"on"})");
  const Collect collect = Plan()->collect;
  EXPECT_EQ(collect, (Collect{{"task_trace", {kKernel, kNodeApi}},
                              {"hccl", {kCommunication}},
                              {"runtime_api", {kRuntimeApi, kMemory}}}));
  EXPECT_EQ(Option(*Plan(), "task_time").note, "") << "the other name of what is recorded";
  // Points and parts of steps are found among what ran in them.
  request_.set_options_json(R"({"training_trace":"on","fp_point":"conv"})");
  EXPECT_TRUE(Plan()->aclprof.has_value()) << "for the iterations of GE";
  EXPECT_EQ(Plan()->collect, (Collect{{"training_trace", {}}, {"fp_point", {}}})) << "among the operators of aclprof";
  EXPECT_EQ(Option(*Plan(), "fp_point").note, "");
  request_.set_options_json(R"({"training_trace":"on","fp_point":"conv","task_time":"off"})");
  EXPECT_THAT(Option(*Plan(), "fp_point").note, HasSubstr("the session records none: task_time is off"));
  request_.set_options_json(R"({"training_trace":"on","fp_point":"conv"})");
  request_.set_provider(v1::SessionSpec::PROVIDER_MSPTI);
  EXPECT_EQ(Plan()->collect, (Collect{{"training_trace", {kKernel, kCommunication}},
                                      {"fp_point", {kKernel, kCommunication}}}));
  EXPECT_EQ(Option(*Plan(), "fp_point").note, "");
  request_.set_options_json(R"({"task_trace":"l0","hccl":"on","runtime_api":"on"})");
  request_.set_provider(v1::SessionSpec::PROVIDER_OFF);
  EXPECT_TRUE(Plan()->collect.empty());
  EXPECT_THAT(Option(*Plan(), "hccl").note, HasSubstr("the session's provider is off"));
}

// One of the vendor's profilers at a time serves a process: what only aclprof measures takes the rest along.
TEST_F(OptionPlanTest, OptionsOnlyAclprofMeasuresAreSentToIt) {
  using Collect = std::map<std::string, attach::CollectKinds>;
  using enum attach::CollectKind;
  attached_ = true;
  request_.set_options_json(
      R"({"task_trace":"l0","hccl":"on","aic_metrics":"Memory","fp_point":"conv","storage_limit":"500MB"})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok() && plan->aclprof.has_value());
  EXPECT_EQ(plan->aclprof->bits, 0x800u | 0x20u | 0x4u | 0x40u) << "task_trace implies training_trace";
  EXPECT_EQ(plan->aclprof->metrics, 2u);
  EXPECT_EQ(plan->aclprof->config, (std::map<std::string, std::string>{{"storage_limit", "500MB"}}));
  EXPECT_EQ(plan->collect,
            (Collect{{"training_trace", {}}, {"task_trace", {}}, {"hccl", {}}, {"aic_metrics", {}}, {"fp_point", {}}}));
  request_.set_options_json(R"({"l2":"on"})");
  EXPECT_EQ(Plan()->aclprof->bits, 0x822u | 0x10u) << "with the tasks that it counts for";
  EXPECT_EQ(Option(*Plan(), "task_time").note, "");
  // What the dump may hold at most is a limit of the vendor's files, too, whether or not it was asked for.
  EXPECT_EQ(Plan()->aclprof->config.at("storage_limit"), fmt::format("{}MB", Plan()->max_bytes >> 20));
  EXPECT_EQ(Option(*Plan(), "l2").note, "");
  // Where another provider is requested, or the files have no place.
  request_.set_provider(v1::SessionSpec::PROVIDER_MSPTI);
  EXPECT_FALSE(Plan()->aclprof.has_value());
  EXPECT_THAT(Option(*Plan(), "l2").note, HasSubstr("the session's provider is mspti; use auto or aclprof"));
  request_.set_provider(v1::SessionSpec::PROVIDER_OFF);
  EXPECT_THAT(Option(*Plan(), "l2").note, HasSubstr("the session's provider is off"));
  request_.set_provider(v1::SessionSpec::PROVIDER_AUTO);
  request_.set_no_dump(true);
  EXPECT_THAT(Option(*Plan(), "l2").note, HasSubstr("the session has no dump"));
  request_.set_no_dump(false);
  request_.set_provider(v1::SessionSpec::PROVIDER_MSPTI);
  request_.set_options_json(R"({"task_time":"l1"})");
  EXPECT_FALSE(Plan()->aclprof.has_value());
  request_.set_provider(v1::SessionSpec::PROVIDER_ACLPROF);
  EXPECT_EQ(Plan()->aclprof->bits, 0x822u);
  request_.set_no_dump(true);
  EXPECT_FALSE(Plan()->aclprof.has_value());
  request_.set_no_dump(false);
  request_.set_provider(v1::SessionSpec::PROVIDER_AUTO);
  request_.set_options_json(R"({"aic_metrics":"Custom:0x8","task_time":"l1"})");
  EXPECT_FALSE(Plan()->aclprof.has_value()) << "its interface has no registers";
}

// Of training_trace as task_trace implies it: where aclprof runs it is recorded, and alone it does not choose aclprof.
TEST_F(OptionPlanTest, AnImpliedIterationTraceIsRecordedWhereAclprofRuns) {
  attached_ = true;
  for (const char* level : {"on", "l1"}) {
    request_.set_options_json(fmt::format(R"({{"task_trace":"{}","aic_metrics":"Memory"}})", level));
    const Result<SessionPlan> plan = Plan();
    ASSERT_TRUE(plan.ok() && plan->aclprof.has_value());
    EXPECT_EQ(plan->aclprof->bits, 0x822u | 0x4u | 0x40u) << level;
    EXPECT_EQ(Option(*plan, "training_trace").note, "implied by task_trace");
  }
  request_.set_options_json(R"({"task_time":"l1","aic_metrics":"Memory"})");
  EXPECT_EQ(Plan()->aclprof->bits, 0x822u | 0x4u) << "task_time implies nothing";
  request_.set_options_json(R"({"task_trace":"on"})");
  for (const auto provider : {v1::SessionSpec::PROVIDER_AUTO, v1::SessionSpec::PROVIDER_MSPTI}) {
    request_.set_provider(provider);
    EXPECT_FALSE(Plan()->aclprof.has_value());
    EXPECT_EQ(Option(*Plan(), "training_trace").note,
              "implied by task_trace; the steps that processes mark; the iterations of GE only aclprof records: use provider "
              "aclprof, or request it");
  }
  request_.set_provider(v1::SessionSpec::PROVIDER_ACLPROF);
  EXPECT_EQ(Plan()->aclprof->bits, 0x822u | 0x40u);
  EXPECT_EQ(Option(*Plan(), "training_trace").note, "implied by task_trace");
  request_.set_provider(v1::SessionSpec::PROVIDER_OFF);
  EXPECT_THAT(Option(*Plan(), "training_trace").note, HasSubstr("the session's provider is off"));
}

// task_time is on by default: for those who ask for nothing, and a process that starts its own session.
TEST_F(OptionPlanTest, TheDefaultIsCollectedWhereNothingElseIsRequested) {
  using enum attach::CollectKind;
  const attach::CollectKinds all{kKernel, kNodeApi, kCommunication};
  attached_ = true;
  request_.set_options_json("{}");
  EXPECT_EQ(Plan()->collect["task_time"], all);
  request_.set_options_json(R"({"sys_io_sampling_freq":10})");
  EXPECT_TRUE(Plan()->collect.empty());
  for (const char* key : {"task_time", "aic_metrics"}) EXPECT_EQ(Option(*Plan(), key).note, "a default only: not recorded unless it is requested");
  request_.set_marks(true);
  EXPECT_EQ(Plan()->collect["task_time"], all);
  request_.set_options_json(R"({"dvpp_freq":10,"task_time":"off"})");
  EXPECT_TRUE(Plan()->collect.empty());
}

TEST_F(OptionPlanTest, ApplicationOptionsAloneNeedAProcess) {
  for (const char* json : {R"({"msproftx":"on"})", R"({"training_trace":"on","task_trace":"on"})",
                           R"({"aic_metrics":"Memory"})", R"({"l2":"on","output":"/tmp/x"})"}) {
    SCOPED_TRACE(json);
    attached_ = false;
    request_.set_options_json(json);
    Result<SessionPlan> plan = Plan();
    EXPECT_EQ(plan.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(plan.status().message(),
                AllOf(HasSubstr("inside the application"), HasSubstr("sys_io_sampling_freq")));
    attached_ = true;
    plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(plan->application_only);
    EXPECT_TRUE(plan->collectors.empty());
  }
  request_.set_options_json(R"({"msproftx":"on"})");
  EXPECT_EQ(Option(*Plan(), "msproftx").note, "");
  // Switched off is nothing at all, attached or not; and only that.
  request_.set_options_json(R"({"task_trace":"off"})");
  EXPECT_THAT(Problems(), HasSubstr("nothing would be collected"));
  request_.set_options_json(R"({"output":"/tmp/x","storage_limit":"200MB"})");
  // All of them, but for what is only collected on request.
  const auto by_default = std::count_if(
      Collectors().begin(), Collectors().end(),
      [](const CollectorEntry& entry) { return entry.spec->default_hz > 0; });
  EXPECT_EQ(Plan()->collectors.size(), static_cast<size_t>(by_default));
  EXPECT_EQ(by_default + 1, std::ssize(Collectors()));
}

// The command of `profctl run` attaches only once the session lets it run.
TEST_F(OptionPlanTest, ApplicationOptionsAloneMayWaitForTheSessionsOwnCommand) {
  attached_ = false;
  request_.set_options_json(R"({"task_time":"l1"})");
  request_.mutable_target()->add_pids(10);
  EXPECT_FALSE(Plan().ok());
  request_.mutable_schedule()->set_end_with_pid(10);
  const Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(plan->application_only);
  EXPECT_TRUE(plan->collect.contains("task_time"));
}

TEST_F(OptionPlanTest, WhereADumpIsWrittenIsNotWhatIsCollected) {
  attached_ = true;
  request_.set_options_json(R"({"output":"/tmp/x","storage_limit":"200MB"})");
  const Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(plan->collect.contains("task_time"));
  EXPECT_TRUE(plan->takes_marks);
  EXPECT_FALSE(plan->collectors.empty());
}

// ---- storage ----

TEST_F(OptionPlanTest, WithoutAStorageLimitItIsNineTenthsOfWhatIsFree) {
  free_bytes_ = 1000ULL << 20;
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->max_bytes >> 20, 900u);
  EXPECT_FALSE(plan->storage_limited);
  EXPECT_EQ(Option(*plan, "storage_limit").value, "900MB");
  EXPECT_EQ(Option(*plan, "storage_limit").note, "90 % of the free space");
  config_.max_session_mb = 100;
  EXPECT_EQ(Plan()->max_bytes, 100ULL << 20);
  EXPECT_EQ(Option(*Plan(), "storage_limit").note, "dump.max_session_mb");
  EXPECT_FALSE(Plan()->limit_ages);
  request_.mutable_options()->set_storage_limit("200MB");
  EXPECT_EQ(Plan()->max_bytes, 100ULL << 20);
  EXPECT_TRUE(Plan()->limit_ages);
  EXPECT_THAT(Plan()->warnings, Contains(HasSubstr("lowered to 100 MB")));
}

// ---- sample.json ----

TEST_F(OptionPlanTest, SampleFactsHaveTheRateOfEachOption) {
  request_.set_options_json(R"({"sys_hardware_mem_freq":10,"sys_interconnection_freq":50,
      "llc_profiling":"write","host_sys_usage":"mem","host_sys_usage_freq":5,
      "msproftx":"on","task_time":"l0","storage_limit":"200MB"})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  SampleOptions facts = SampleFactsOf(*plan, devices_);
  EXPECT_EQ(facts.hardware_mem_hz, 10);
  EXPECT_EQ(facts.interconnect_hz, 50);
  EXPECT_EQ(facts.io_hz, 0);
  EXPECT_EQ(std::get<std::string>(facts.collectors.at("llc_profiling")), "write");
  EXPECT_TRUE(facts.collectors.contains("ai_core_lpm"));  // comes with any option of the devices
  EXPECT_TRUE(facts.host_usage_mem);
  EXPECT_FALSE(facts.host_usage_cpu);
  EXPECT_FALSE(facts.host_sys_mem);
  EXPECT_EQ(facts.host_usage_hz, 5);
  EXPECT_FALSE(facts.collectors.contains("host_network_profiling"));
  EXPECT_EQ(facts.storage_limit_mb, 200u);
  // Of the application's options those that were asked for, not the defaults.
  EXPECT_THAT(facts.application,
              UnorderedElementsAre(Pair("msproftx", "on"), Pair("task_time", "l0")));
  EXPECT_EQ(facts.asked.at("sys_hardware_mem_freq"), "10");

  request_.Clear();
  facts = SampleFactsOf(*Plan(), devices_);  // no options at all: everything runs
  EXPECT_TRUE(facts.collectors.contains("host_network_profiling"));
  EXPECT_EQ(facts.io_hz, 100);
  EXPECT_TRUE(facts.application.empty());
}

}  // namespace
}  // namespace profd
