// `profctl options` and `profctl check`.
#include <gmock/gmock.h>

#include "client/test_support.h"

namespace profd::client {
namespace {

using testing::HasSubstr;

class OptionsCommandTest : public ProfctlTest {};

TEST_F(OptionsCommandTest, ListsTheDaemonsAnswer) {
  v1::OptionInfo* info = daemon_.options.add_options();
  info->set_key("sys_io_sampling_freq");
  info->set_type(v1::OptionInfo::TYPE_FREQUENCY);
  info->set_range("1..100");
  info->set_unit("Hz");
  info->set_source(v1::OptionInfo::SOURCE_DEVICE);
  info->set_effect("NIC, RoCE");
  info->set_reason("not supported on Ascend310P: no NIC");
  daemon_.options.add_chips("Ascend310P");
  EXPECT_EQ(Run({"options"}), 0) << err();
  ExpectGolden(out(), "options.txt");
  EXPECT_EQ(Run({"options", "--json"}), 0);
  EXPECT_EQ(Json::parse(out())["options"][0]["reason"], "not supported on Ascend310P: no NIC");
  daemon_.error = Unavailable("no daemon");
  EXPECT_EQ(Run({"options"}), 6);
}

TEST_F(OptionsCommandTest, ListsTheTableOffline) {
  daemon_.error = Unavailable("no daemon");
  EXPECT_EQ(Run({"options", "--offline"}), 0) << err();
  ExpectGolden(out(), "options_offline.txt");
  EXPECT_EQ(Run({"options", "--offline", "--chip", "910", "--json"}), 0) << err();
  Json json = Json::parse(out());
  EXPECT_EQ(json["chips"][0], "Ascend910");
  for (const Json& option : json["options"]) {
    EXPECT_EQ(option["supported"], option["key"] != "instr_profiling_freq") << option["key"];
  }
  ExpectMessage({"options", "--offline", "--chip", "912"}, 2, "Ascend910B");
  EXPECT_EQ(Run({"options", "--chip", "910"}), 2);
}

TEST_F(OptionsCommandTest, HelpIsTheTable) {
  EXPECT_EQ(Run({"check", "--help"}), 0);
  ExpectGolden(out(), "check_help.txt");
}

TEST_F(OptionsCommandTest, ChecksWithTheDaemon) {
  EXPECT_EQ(Run({"check", "--options-json", "{}", "--acl", "ACL_PROF_AICPU=on", "--best-effort",
                 "--dvpp-freq", "5"}),
            0)
      << err();
  EXPECT_EQ(daemon_.check_request.spec().options_json(), "{}");
  EXPECT_EQ(daemon_.check_request.spec().acl_switches().at("ACL_PROF_AICPU"), "on");
  EXPECT_EQ(daemon_.check_request.spec().options().dvpp_freq(), 5u);
  EXPECT_TRUE(daemon_.check_request.spec().best_effort());
  EXPECT_FALSE(daemon_.check_request.spec().target().job_id().empty());
  EXPECT_TRUE(daemon_.starts.empty());
  EXPECT_EQ(Run({"check", "--collector", "hbm=10", "--collector", "hccs"}), 0) << err();
  ASSERT_EQ(daemon_.check_request.spec().collectors_size(), 2);
  EXPECT_EQ(daemon_.check_request.spec().collectors(0).hz(), 10);
  EXPECT_EQ(daemon_.check_request.spec().collectors(1).name(), "hccs");
  EXPECT_EQ(Run({"check", "--collector", "=1", "--offline"}), 2);
  EXPECT_THAT(err(), testing::AllOf(HasSubstr("--collector needs a daemon"), HasSubstr("--collector \"=1\"")));
  EXPECT_EQ(Run({"check", "--no-job"}), 0);
  EXPECT_TRUE(daemon_.check_request.spec().target().job_id().empty());
}

TEST_F(OptionsCommandTest, ReportsAllProblems) {
  auto add = [this](const char* field, const char* value, const char* text) {
    v1::Problem* problem = daemon_.checked.add_problems();
    problem->set_kind(v1::Problem::KIND_INVALID);
    problem->set_field(field);
    problem->set_value(value);
    problem->set_text(text);
  };
  add("l2", "x", "must be on or off");
  add("gpu", "1", "unknown option");
  daemon_.checked.add_warnings("hccl is deprecated");
  EXPECT_EQ(Run({"check", "--l2", "x", "--dvpp-freq", "fast"}), 3);
  EXPECT_EQ(out(), "");
  ExpectGolden(err(), "check_problems.txt");
  EXPECT_EQ(Run({"check", "--json"}), 3);
  Json json = Json::parse(out());
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["problems"].size(), 2u);
  EXPECT_EQ(json["problems"][0]["kind"], "invalid");
}

TEST_F(OptionsCommandTest, CountsProblemsThatAreNotListed) {
  daemon_.checked.add_problems()->set_text("PROFILING_OPTIONS: and 176 more problems");
  daemon_.checked.mutable_problems(0)->set_left_out(176);
  for (int i = 0; i < 24; ++i) daemon_.checked.add_problems()->set_text("unknown option");
  ExpectMessage({"check", "--options-json", "{}"}, 3, "profctl: 200 problems; nothing would start");
}

TEST_F(OptionsCommandTest, WithoutADaemonTheExitCodeIsSix) {
  daemon_.error = Unavailable("no daemon");
  EXPECT_EQ(Run({"check", "--options-json", "{}"}), 6);
  EXPECT_EQ(Run({"check", "--options-json", "{}", "--offline"}), 0) << err();
}

TEST_F(OptionsCommandTest, ChecksOffline) {
  daemon_.error = Unavailable("no daemon");
  TempDir dir;
  std::ofstream(dir / "o.json") << R"({"task_trace":"on","aic_metrics":"L2Cache"})";
  EXPECT_EQ(Run({"check", "--offline", "--options-json", dir / "o.json"}), 0) << err();
  ExpectGolden(out(), "check_offline.txt");
  ExpectMessage({"check", "--offline", "--chip", "910", "--options-json", dir / "o.json"}, 3,
                "not supported on Ascend910");
  ExpectMessage({"check", "--offline", "--chip", "910", "--best-effort", "--options-json", dir / "o.json"}, 0,
                "warning: ");
  EXPECT_EQ(Run({"check", "--offline", "--options-json", "{\"l2\":1,\"gpu\":2}", "--acl",
                 "aiCoreMetricsType=9", "--dvpp-freq", "x", "--json"}),
            3);
  Json json = Json::parse(out());
  EXPECT_EQ(json["problems"].size(), 4u) << out();
  EXPECT_EQ(Run({"check", "--offline", "--host-sys", "cpu"}), 0);
  EXPECT_EQ(Run({"check", "--offline", "--host-sys", "cpu", "--no-job"}), 3);
  ExpectMessage({"check", "--offline", "--task-time", "l1", "--l2", "off", "--sys-hardware-mem-freq", "50", "--no-job"}, 0,
                "warning: task_time: needs an attached process that reports it\n");
  EXPECT_EQ(Run({"check", "--offline", "--task-time", "l1"}), 0);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(Run({"check", "--offline", "--options-json", dir / "none"}), 2);
  profiling_options_ = "{\"l2\":\"on\"";
  ExpectMessage({"check", "--offline", "--options-env"}, 3, "line 1, column");
}

// options.md: a switch that is not given has its own default, as in the daemon.
TEST_F(OptionsCommandTest, ChecksOfflineWithTheDefaultsOfTheSwitches) {
  const auto value = [this](std::string_view key) {
    const Json answer = Json::parse(out());
    for (const Json& option : answer["effective_options"]) {
      if (option["key"] == key) return option["value"].get<std::string>();
    }
    return std::string("not there");
  };
  EXPECT_EQ(Run({"check", "--offline", "--json", "--acl", "ACL_PROF_L2CACHE=on", "--hccl", "off"}), 0) << err();
  EXPECT_EQ(value("l2"), "on");
  EXPECT_EQ(value("aicpu"), "on");
  EXPECT_EQ(value("hccl"), "off");
  EXPECT_EQ(value("ACL_PROF_ACL_API"), "on");
  EXPECT_EQ(Run({"check", "--offline", "--json"}), 0) << err();
  EXPECT_EQ(value("aicpu"), "off");
  EXPECT_EQ(value("ACL_PROF_ACL_API"), "not there");
}

}  // namespace
}  // namespace profd::client
