// The rules between keys, both directions of each.
#include "proto/options/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "profd/v1/options.pb.h"
#include "proto/options/options_test_support.h"

namespace profd::options {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Problem::Kind;

const NodeSupport k910{.chip_ids = {1}, .chip_names = {"Ascend910"}, .lacking = {}};
const NodeSupport k910B{.chip_ids = {5}, .chip_names = {"Ascend910B"}, .lacking = {}};

void ExpectOne(const CheckResult& result, Kind kind, const std::string& key,
               const std::string& text) {
  ASSERT_EQ(result.problems.size(), 1u) << Texts(result);
  EXPECT_EQ(result.problems[0].kind, kind) << Texts(result);
  EXPECT_EQ(result.problems[0].field, key);
  EXPECT_THAT(Describe(result.problems[0]), HasSubstr(text));
}

TEST(OptionsTableTest, FieldsOfTheContractAreTheTable) {
  const auto* descriptor = v1::ProfilingOptions::descriptor();
  EXPECT_EQ(descriptor->field_count(), static_cast<int>(Table().size()));
  for (const Option& option : Table()) {
    const auto* field = descriptor->FindFieldByNumber(option.field);
    ASSERT_NE(field, nullptr) << option.key;
    EXPECT_EQ(field->name(), option.key);
    bool numeric = option.type == Type::kFrequency || option.type == Type::kCycles;
    EXPECT_EQ(field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32, numeric);
    EXPECT_TRUE(field->has_presence()) << option.key;
    EXPECT_FALSE(option.effect.empty()) << option.key;
    EXPECT_FALSE(RangeText(option).empty()) << option.key;
    EXPECT_FALSE(DefaultText(option).empty()) << option.key;
    EXPECT_EQ(Find(option.key), &option);
  }
  EXPECT_EQ(Find("gpu"), nullptr);
}

TEST(OptionsTest, Defaults) {
  CheckResult result = CheckGiven({});
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result.warnings, IsEmpty());
  std::vector<std::pair<std::string, std::string>> values;
  for (const Effective& effective : result.options.effective) {
    values.emplace_back(effective.key, effective.value);
    EXPECT_FALSE(effective.was_asked);
    EXPECT_EQ(effective.asked, "");
  }
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"output", ""},
      {"storage_limit", ""},
      {"training_trace", "off"},
      {"task_trace", "l1"},
      {"task_time", "l1"},
      {"hccl", "off"},
      {"aicpu", "off"},
      {"fp_point", ""},
      {"bp_point", ""},
      {"aic_metrics", "PipeUtilization"},
      {"l2", "off"},
      {"msproftx", "off"},
      {"runtime_api", "off"},
      {"sys_hardware_mem_freq", "off"},
      {"llc_profiling", "read"},
      {"sys_io_sampling_freq", "off"},
      {"sys_interconnection_freq", "off"},
      {"dvpp_freq", "off"},
      {"instr_profiling_freq", "off"},
      {"host_sys", "off"},
      {"host_sys_usage", "off"},
      {"host_sys_usage_freq", "50"}};
  EXPECT_EQ(values, expected);
  EXPECT_EQ(result.options.Text("l2"), "");
  EXPECT_FALSE(result.options.On("l2"));
  EXPECT_TRUE(result.options.On("task_time"));
  EXPECT_EQ(result.options.Text("no such key"), "");
}

TEST(OptionsTest, TaskTraceAndTaskTimeAreOneSwitch) {
  for (const char* name : {"task_trace", "task_time"}) {
    CheckResult result = CheckGiven({Field(name, "l0")});
    ASSERT_TRUE(result.ok()) << Texts(result);
    EXPECT_EQ(result.options.Text("task_trace"), "l0");
    EXPECT_EQ(result.options.Text("task_time"), "l0");
    EXPECT_EQ(result.options.Asked("task_trace"), std::string(name) == "task_trace");
  }
  EXPECT_TRUE(CheckGiven({Field("task_trace", "on"), Field("task_time", "l1")}).ok());
  EXPECT_TRUE(CheckGiven({Field("task_trace", "off"), Field("task_time", "off")}).ok());
  for (const char* other : {"l0", "off"}) {
    ExpectOne(CheckGiven({Field("task_trace", "on"), Field("task_time", other)}), Kind::kConflict,
              "task_time", "both name one switch");
  }
}

TEST(OptionsTest, TaskTraceImpliesTrainingTrace) {
  for (const char* level : {"on", "l0", "l1"}) {
    CheckResult implied = CheckGiven({Field("task_trace", level)});
    ASSERT_TRUE(implied.ok()) << Texts(implied);
    EXPECT_EQ(implied.options.Text("training_trace"), "on");
    EXPECT_EQ(implied.options.Get("training_trace")->note, "implied by task_trace");
    EXPECT_FALSE(implied.options.Asked("training_trace"));
  }
  // Neither the default nor the other name nor an explicit off asks for it.
  EXPECT_FALSE(CheckGiven({}).options.On("training_trace"));
  EXPECT_FALSE(CheckGiven({Field("task_time", "on")}).options.On("training_trace"));
  EXPECT_FALSE(CheckGiven({Field("task_trace", "off")}).options.On("training_trace"));
}

TEST(OptionsTest, TaskTraceBesideTrainingTraceOff) {
  for (const char* level : {"on", "l1"}) {
    ExpectOne(CheckGiven({Field("task_trace", level), Field("training_trace", "off")}),
              Kind::kConflict, "training_trace", "needs training_trace on");
  }
  EXPECT_TRUE(CheckGiven({Field("task_trace", "on"), Field("training_trace", "on")}).ok());
  EXPECT_TRUE(CheckGiven({Field("task_trace", "off"), Field("training_trace", "off")}).ok());
  EXPECT_TRUE(CheckGiven({Field("task_time", "on"), Field("training_trace", "off")}).ok());
  EXPECT_TRUE(CheckGiven({Field("training_trace", "off")}).ok());
  // Only "on" needs it: l0 leaves an explicit off alone.
  CheckResult l0 = CheckGiven({Field("task_trace", "l0"), Field("training_trace", "off")});
  EXPECT_TRUE(l0.ok()) << Texts(l0);
  EXPECT_FALSE(l0.options.On("training_trace"));
}

TEST(OptionsTest, HcclIsDeprecated) {
  CheckResult result = CheckGiven({Field("hccl", "on")});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.options.On("hccl"));
  EXPECT_THAT(result.warnings, Contains(AllOf(HasSubstr("deprecated"), HasSubstr("task_trace"))));
  EXPECT_THAT(result.options.Get("hccl")->note, HasSubstr("deprecated"));
  EXPECT_THAT(CheckGiven({Field("l2", "on")}).warnings, IsEmpty());
}

TEST(OptionsTest, AicpuCountsAsOffWithAWarning) {
  CheckResult result = CheckGiven({Field("aicpu", "yes")});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.options.On("aicpu"));
  EXPECT_THAT(result.warnings, Contains(AllOf(HasSubstr("aicpu = \"yes\""), HasSubstr("off"))));
  EXPECT_THAT(CheckGiven({Field("aicpu", "on")}).warnings, IsEmpty());
  EXPECT_THAT(CheckGiven({Field("aicpu", "off")}).warnings, IsEmpty());
}

TEST(OptionsTest, LlcNeedsAFrequencyOrItsCollector) {
  ExpectOne(CheckGiven({Field("llc_profiling", "read")}), Kind::kConflict, "llc_profiling",
            "sys_hardware_mem_freq");
  EXPECT_TRUE(
      CheckGiven({Field("llc_profiling", "write"), Field("sys_hardware_mem_freq", "1")}).ok());
  CheckRequest named;
  named.given = {Field("llc_profiling", "write")};
  named.collectors = {"hbm"};
  EXPECT_FALSE(Check(named).ok());
  named.collectors = {"hbm", "llc"};
  EXPECT_TRUE(Check(named).ok());
  // A frequency that is wrong is one problem, not two.
  EXPECT_EQ(CheckGiven({Field("llc_profiling", "read"), Field("sys_hardware_mem_freq", "0")})
                .problems.size(),
            1u);
}

TEST(OptionsTest, UsageFrequencyNeedsUsage) {
  ExpectOne(CheckGiven({Field("host_sys_usage_freq", "50")}), Kind::kConflict,
            "host_sys_usage_freq", "host_sys_usage");
  EXPECT_TRUE(CheckGiven({Field("host_sys_usage_freq", "1"), Field("host_sys_usage", "cpu")}).ok());
  EXPECT_TRUE(CheckGiven({Field("host_sys_usage", "cpu")}).ok());
  ExpectOne(CheckGiven({Field("host_sys_usage_freq", "1"), Field("host_sys", "cpu")}),
            Kind::kConflict, "host_sys_usage_freq", "host_sys_usage");
}

TEST(OptionsTest, HostSysNeedsAProcess) {
  CheckRequest request;
  request.given = {Field("host_sys", "cpu,mem")};
  EXPECT_TRUE(Check(request).ok());
  request.has_process = false;
  ExpectOne(Check(request), Kind::kConflict, "host_sys", "needs a process");
  request.given = {Field("host_sys_usage", "cpu,mem")};
  EXPECT_TRUE(Check(request).ok());
}

TEST(OptionsTest, InstrExcludesRequestedOptions) {
  struct Excluded {
    const char* key;
    const char* value;
  };
  constexpr Excluded kExcluded[] = {
      {"training_trace", "on"},  {"task_trace", "l0"},  {"hccl", "on"},
      {"aicpu", "on"},           {"fp_point", "conv1"}, {"bp_point", "conv1"},
      {"aic_metrics", "Memory"}, {"l2", "on"},          {"task_time", "l1"},
      {"runtime_api", "on"}};
  for (const Excluded& excluded : kExcluded) {
    SCOPED_TRACE(excluded.key);
    CheckResult result =
        CheckGiven({Field("instr_profiling_freq", "300"), Field(excluded.key, excluded.value)});
    ExpectOne(result, Kind::kConflict, excluded.key, "instr_profiling_freq = \"300\"");
    EXPECT_TRUE(CheckGiven({Field(excluded.key, excluded.value)}).ok());
  }
  for (const char* key :
       {"training_trace", "task_trace", "hccl", "aicpu", "l2", "task_time", "runtime_api"}) {
    SCOPED_TRACE(key);
    EXPECT_TRUE(CheckGiven({Field("instr_profiling_freq", "300"), Field(key, "off")}).ok());
  }
  EXPECT_TRUE(CheckGiven({Field("instr_profiling_freq", "300"), Field("fp_point", ""),
                          Field("msproftx", "on"), Field("dvpp_freq", "10")})
                  .ok());
}

TEST(OptionsTest, InstrTurnsTheDefaultsOff) {
  CheckResult result = CheckGiven({Field("instr_profiling_freq", "30000")});
  ASSERT_TRUE(result.ok()) << Texts(result);
  EXPECT_EQ(result.options.Number("instr_profiling_freq"), 30000u);
  for (const char* key : {"task_trace", "task_time", "aic_metrics"}) {
    EXPECT_FALSE(result.options.On(key)) << key;
    EXPECT_THAT(result.options.Get(key)->note, HasSubstr("instr_profiling_freq"));
  }
}

TEST(OptionsTest, ImpossibleOnThisChipIsAnErrorOfItsOwn) {
  ExpectOne(CheckGiven({Field("aic_metrics", "L2Cache")}, &k910), Kind::kUnsupported, "aic_metrics",
            "not supported on Ascend910: ");
  EXPECT_TRUE(CheckGiven({Field("aic_metrics", "L2Cache")}, &k910B).ok());
  EXPECT_TRUE(CheckGiven({Field("aic_metrics", "L2Cache")}).ok());
  EXPECT_TRUE(CheckGiven({Field("aic_metrics", "Memory")}, &k910).ok());
  ExpectOne(CheckGiven({Field("instr_profiling_freq", "300")}, &k910), Kind::kUnsupported,
            "instr_profiling_freq", "not supported on Ascend910: ");
  EXPECT_TRUE(CheckGiven({Field("instr_profiling_freq", "300")}, &k910B).ok());
  EXPECT_TRUE(CheckGiven({Field("instr_profiling_freq", "300")}).ok());
}

TEST(OptionsTest, OptionsTheNodeLacks) {
  NodeSupport node = k910B;
  node.lacking["sys_io_sampling_freq"] = "this chip has no NIC or RoCE channel";
  node.lacking["dvpp_freq"] = "";
  ExpectOne(CheckGiven({Field("sys_io_sampling_freq", "10"), Field("dvpp_freq", "10")}, &node),
            Kind::kUnsupported, "sys_io_sampling_freq",
            "not supported on Ascend910B: this chip has no NIC or RoCE channel");
  EXPECT_TRUE(CheckGiven({Field("dvpp_freq", "10")}, &node).ok());
  // The default was not requested.
  node.lacking["llc_profiling"] = "this chip has no LLC channel";
  CheckResult result = CheckGiven({Field("sys_hardware_mem_freq", "10")}, &node);
  EXPECT_TRUE(result.ok());
  EXPECT_FALSE(result.options.On("llc_profiling"));
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(OptionsTest, BestEffortForgivesOnlyTheChip) {
  CheckRequest request;
  request.node = &k910;
  request.best_effort = true;
  request.given = {Field("aic_metrics", "L2Cache"), Field("instr_profiling_freq", "300"),
                   Field("l2", "on")};
  CheckResult result = Check(request);
  ASSERT_TRUE(result.ok()) << Texts(result);
  EXPECT_FALSE(result.options.On("aic_metrics"));
  EXPECT_FALSE(result.options.On("instr_profiling_freq"));
  EXPECT_TRUE(result.options.On("l2"));
  EXPECT_THAT(result.warnings, Contains(HasSubstr("not supported on Ascend910")));
  EXPECT_EQ(result.warnings.size(), 2u);
  EXPECT_THAT(result.options.Get("aic_metrics")->note, HasSubstr("not supported"));

  request.given = {Field("sys_io_sampling_freq", "0"), Field("llc_profiling", "read"),
                   Field("gpu", "on")};
  EXPECT_EQ(Check(request).problems.size(), 3u);
}

TEST(OptionsTest, OneKeyInSeveralWays) {
  auto both = [](const char* key, const char* field, const char* json) {
    return CheckGiven({Field(key, field), {.key = key, .value = json, .via = OptionSyntax::kJson}});
  };
  EXPECT_TRUE(both("l2", "on", "on").ok());
  EXPECT_TRUE(both("task_time", "on", "l1").ok());
  EXPECT_TRUE(both("storage_limit", "200MB", "200").ok());
  EXPECT_TRUE(both("host_sys", "cpu,mem", "mem, cpu").ok());
  EXPECT_TRUE(both("aic_metrics", "Custom:73", "Custom:0x49").ok());
  ExpectOne(both("l2", "on", "off"), Kind::kConflict, "l2", "PROFILING_OPTIONS");
  ExpectOne(both("task_time", "on", "l0"), Kind::kConflict, "task_time", "differs");
  ExpectOne(both("dvpp_freq", "10", "11"), Kind::kConflict, "dvpp_freq", "\"10\"");
}

// aclprof's interface has a number for each group and a NULL for events (in-application 3.3): registers have no way into it.
TEST(OptionsTest, RegistersAreRightButCannotBeRecorded) {
  const CheckResult result = CheckGiven({Field("aic_metrics", "Custom:8")});
  EXPECT_TRUE(result.ok());
  EXPECT_THAT(result.warnings, ElementsAre(AllOf(HasSubstr("aic_metrics = \"Custom:8\": is not recorded"),
                                                 HasSubstr("use a group of metrics, or run the job under msprof --aic-metrics=Custom:"))));
  EXPECT_THAT(CheckGiven({Field("aic_metrics", "Memory")}).warnings, IsEmpty());
}

TEST(OptionsTest, AllProblemsAtOnceAndNotTooMany) {
  CheckResult result = CheckGiven({Field("sys_io_sampling_freq", "0"), Field("l2", "yes"),
                                   Field("gpu", "1"), Field("llc_profiling", "read"),
                                   Field("task_trace", "on"), Field("training_trace", "off")});
  EXPECT_EQ(result.problems.size(), 5u) << Texts(result);
  std::vector<OptionInput> many(1000, Field("gpu", "1"));
  result = CheckGiven(many);
  ASSERT_EQ(result.problems.size(), kMaxProblems + 1);
  EXPECT_EQ(result.problems.back().text, fmt::format("and {} more problems", 1000 - kMaxProblems));
  EXPECT_EQ(result.problems.back().left_out, 1000 - kMaxProblems);
  EXPECT_EQ(result.problems.back().kind, Kind::kInvalid);
}

TEST(OptionsTest, KnowsTheChipsByName) {
  ASSERT_TRUE(SupportOfChip("910B").has_value());
  EXPECT_EQ(SupportOfChip("Ascend910B")->chip_ids, std::vector<int>{5});
  EXPECT_EQ(SupportOfChip("910C")->chip_ids, std::vector<int>{5});
  EXPECT_EQ(SupportOfChip("910")->chip_ids, std::vector<int>{1});
  EXPECT_EQ(SupportOfChip("910b")->chip_ids, std::vector<int>{5});
  EXPECT_EQ(SupportOfChip("ascend310p")->chip_ids, std::vector<int>{4});
  EXPECT_FALSE(SupportOfChip("910Z").has_value());
  EXPECT_FALSE(SupportOfChip("").has_value());
  auto p310 = SupportOfChip("310P");
  ASSERT_TRUE(p310.has_value());
  EXPECT_EQ(CheckGiven({Field("sys_io_sampling_freq", "5")}, &*p310).problems.size(), 1u);
  auto mini = SupportOfChip("310");
  ASSERT_TRUE(mini.has_value());
  EXPECT_EQ(CheckGiven({Field("sys_hardware_mem_freq", "5"), Field("llc_profiling", "read"), Field("l2", "on")}, &*mini)
                .problems.size(), 2u);
  for (std::string_view name : ChipNames()) EXPECT_TRUE(SupportOfChip(name).has_value()) << name;
}

}  // namespace
}  // namespace profd::options
