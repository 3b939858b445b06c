#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "proto/options/options_test_support.h"

namespace profd::options {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Answer {
  CheckResult result;
  std::vector<std::string> warnings;
};

Answer CheckSwitches(const std::map<std::string, std::string>& switches, bool with_defaults = false,
                     std::vector<OptionInput> given = {}) {
  CheckRequest request;
  request.given = std::move(given);
  std::vector<Problem> problems;
  Answer answer;
  FromAclSwitches(switches, with_defaults, &request.given, &problems, &answer.warnings);
  answer.result = Check(request);
  answer.result.problems.insert(answer.result.problems.begin(), problems.begin(), problems.end());
  return answer;
}

TEST(AclSwitchesTest, EquivalentOptionsOfEachSwitch) {
  struct Case {
    const char* name;
    const char* key;
    const char* on;
  };
  constexpr Case kCases[] = {{"ACL_PROF_TASK_TIME", "task_time", "l1"},
                             {"ACL_PROF_AICPU", "aicpu", "on"},
                             {"ACL_PROF_L2CACHE", "l2", "on"},
                             {"ACL_PROF_HCCL_TRACE", "hccl", "on"},
                             {"ACL_PROF_TRAINING_TRACE", "training_trace", "on"}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    for (const char* on : {"on", "True", " on "}) {
      Answer answer = CheckSwitches({{c.name, on}});
      ASSERT_TRUE(answer.result.ok()) << Texts(answer.result);
      EXPECT_EQ(answer.result.options.Text(c.key), c.on);
      EXPECT_TRUE(answer.result.options.Asked(c.key));
    }
    for (const char* off : {"off", "False"}) {
      Answer answer = CheckSwitches({{c.name, off}});
      ASSERT_TRUE(answer.result.ok()) << Texts(answer.result);
      EXPECT_EQ(answer.result.options.Text(c.key), "");
    }
    for (const char* wrong : {"ON", "true", "1", "", "l1"}) {
      Answer answer = CheckSwitches({{c.name, wrong}});
      ASSERT_EQ(answer.result.problems.size(), 1u) << wrong;
      EXPECT_EQ(answer.result.problems[0].field, c.name);
      EXPECT_THAT(Describe(answer.result.problems[0]), HasSubstr("must be on or off"));
    }
  }
}

TEST(AclSwitchesTest, MetricTypes) {
  struct Case {
    const char* type;
    const char* metrics;
  };
  constexpr Case kCases[] = {{"0", "ArithmeticUtilization"},
                             {"1", "PipeUtilization"},
                             {"2", "Memory"},
                             {"3", "MemoryL0"},
                             {"4", "ResourceConflictRatio"},
                             {"5", "MemoryUB"},
                             {"0xFF", ""},
                             {"0xff", ""},
                             {"255", ""}};
  for (const Case& c : kCases) {
    Answer answer = CheckSwitches({{"aiCoreMetricsType", c.type}});
    ASSERT_TRUE(answer.result.ok()) << Texts(answer.result);
    EXPECT_EQ(answer.result.options.Text("aic_metrics"), c.metrics) << c.type;
  }
  for (const char* wrong : {"6", "-1", "", "0x", "0x100", "254", "256", "1.0", "one"}) {
    Answer answer = CheckSwitches({{"aiCoreMetricsType", wrong}});
    ASSERT_EQ(answer.result.problems.size(), 1u) << wrong;
    EXPECT_THAT(Describe(answer.result.problems[0]), HasSubstr("0..5"));
  }
}

TEST(AclSwitchesTest, EveryMetricTypeHasItsColumns) {
  const std::vector<size_t> columns = {6, 7, 8, 8, 9, 4, 0};
  ASSERT_EQ(MetricsTypes().size(), columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    std::string_view text = MetricsTypes()[i].columns;
    size_t count =
        text.empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
    EXPECT_EQ(count, columns[i]) << i;
  }
}

TEST(AclSwitchesTest, MetricsCountOnlyWhileTheirSwitchIsOn) {
  Answer off = CheckSwitches({{"ACL_PROF_AICORE_METRICS", "off"}, {"aiCoreMetricsType", "2"}});
  ASSERT_TRUE(off.result.ok()) << Texts(off.result);
  EXPECT_EQ(off.result.options.Text("aic_metrics"), "");
  EXPECT_THAT(off.warnings, Contains(HasSubstr("aiCoreMetricsType")));
  Answer on = CheckSwitches({{"ACL_PROF_AICORE_METRICS", "on"}, {"aiCoreMetricsType", "2"}});
  EXPECT_EQ(on.result.options.Text("aic_metrics"), "Memory");
  EXPECT_THAT(on.warnings, IsEmpty());
  Answer alone = CheckSwitches({{"ACL_PROF_AICORE_METRICS", "on"}});
  EXPECT_EQ(alone.result.options.Text("aic_metrics"), "PipeUtilization");
  EXPECT_FALSE(alone.result.options.Asked("aic_metrics"));
  // On, and the type comes from elsewhere.
  Answer elsewhere =
      CheckSwitches({{"ACL_PROF_AICORE_METRICS", "on"}}, false, {Field("aic_metrics", "Memory")});
  ASSERT_TRUE(elsewhere.result.ok()) << Texts(elsewhere.result);
  EXPECT_EQ(elsewhere.result.options.Text("aic_metrics"), "Memory");
  // Off, and requested all the same.
  Answer torn =
      CheckSwitches({{"ACL_PROF_AICORE_METRICS", "off"}}, false, {Field("aic_metrics", "Memory")});
  ASSERT_EQ(torn.result.problems.size(), 1u);
  EXPECT_EQ(torn.result.problems[0].kind, Problem::Kind::kConflict);
}

TEST(AclSwitchesTest, ProblemsThatAreNotListedAreCounted) {
  std::map<std::string, std::string> many;
  for (int i = 0; i < 100; ++i) many["NO_SUCH_" + std::to_string(i)] = "on";
  const Answer answer = CheckSwitches(many);
  ASSERT_EQ(answer.result.problems.size(), kMaxProblems + 1);
  EXPECT_EQ(answer.result.problems.back().text, fmt::format("and {} more problems", 100 - kMaxProblems));
  EXPECT_EQ(answer.result.problems.back().left_out, 100 - kMaxProblems);
}

TEST(AclSwitchesTest, SwitchesAndOptionsMustAgree) {
  EXPECT_TRUE(
      CheckSwitches({{"ACL_PROF_TASK_TIME", "on"}}, false, {Field("task_time", "on")}).result.ok());
  Answer torn = CheckSwitches({{"ACL_PROF_TASK_TIME", "on"}}, false, {Field("task_time", "l0")});
  ASSERT_EQ(torn.result.problems.size(), 1u);
  EXPECT_EQ(torn.result.problems[0].kind, Problem::Kind::kConflict);
  EXPECT_THAT(Describe(torn.result.problems[0]), HasSubstr("ACL switch"));
}

TEST(AclSwitchesTest, DefaultsOnlyWhereRequested) {
  Answer none = CheckSwitches({});
  EXPECT_FALSE(none.result.options.On("aicpu"));
  EXPECT_EQ(none.result.options.Get("ACL_PROF_ACL_API"), nullptr);

  Answer all = CheckSwitches({}, /*with_defaults=*/true);
  ASSERT_TRUE(all.result.ok()) << Texts(all.result);
  EXPECT_THAT(all.result.warnings, IsEmpty());
  for (const char* on : {"ACL_PROF_ACL_API", "task_time", "aic_metrics", "aicpu", "hccl"}) {
    EXPECT_TRUE(all.result.options.On(on)) << on;
    EXPECT_FALSE(all.result.options.Asked(on)) << on;
  }
  for (const char* off : {"l2", "training_trace", "TORCH_CALL_STACK"}) {
    EXPECT_FALSE(all.result.options.On(off)) << off;
  }
  EXPECT_THAT(AwaitedOptions(all.result.options), ElementsAre("task_time", "hccl", "aicpu", "aic_metrics", "ACL_PROF_ACL_API"));
  // They give way to what was requested.
  Answer some = CheckSwitches({{"ACL_PROF_AICPU", "off"}}, true,
                              {Field("task_trace", "l0"), Field("aic_metrics", "MemoryUB")});
  ASSERT_TRUE(some.result.ok()) << Texts(some.result);
  EXPECT_EQ(some.result.options.Text("task_time"), "l0");
  EXPECT_EQ(some.result.options.Text("aic_metrics"), "MemoryUB");
  EXPECT_FALSE(some.result.options.On("aicpu"));
  EXPECT_THAT(AwaitedOptions(some.result.options), ElementsAre("task_trace", "hccl", "aic_metrics", "ACL_PROF_ACL_API"));
  Answer instr = CheckSwitches({}, true, {Field("instr_profiling_freq", "300")});
  EXPECT_TRUE(instr.result.ok()) << Texts(instr.result);
  EXPECT_FALSE(instr.result.options.On("aicpu"));
}

TEST(AclSwitchesTest, SwitchesWithoutAnOptionAreCarried) {
  Answer answer = CheckSwitches({{"ACL_PROF_ACL_API", "on"}, {"TORCH_CALL_STACK", "True"}});
  ASSERT_TRUE(answer.result.ok()) << Texts(answer.result);
  EXPECT_TRUE(answer.result.options.On("ACL_PROF_ACL_API"));
  EXPECT_TRUE(answer.result.options.On("TORCH_CALL_STACK"));
  EXPECT_EQ(answer.result.options.effective.size(), Table().size() + 2);
  EXPECT_EQ(CheckSwitches({{"TORCH_CALL_STACK", "1"}}).result.problems.size(), 1u);
}

// Without the defaults that stand behind the switches.
TEST(AclSwitchesTest, CarriedSwitchesMayBeInTheJson) {
  CheckRequest request;
  std::vector<Problem> problems;
  ParseJson(R"({"TORCH_CALL_STACK": "on"})", &request.given, &problems);
  const CheckResult result = Check(request);
  ASSERT_TRUE(problems.empty() && result.ok()) << Texts(result);
  EXPECT_TRUE(result.options.On("TORCH_CALL_STACK"));
  EXPECT_TRUE(result.options.Asked("TORCH_CALL_STACK"));
  EXPECT_FALSE(result.options.On("aicpu"));
  // As the same switches given by name: blanks around a value do not count, and Python's words are right.
  for (const char* on : {" on ", "True"}) {
    request.given.front().value = on;
    EXPECT_TRUE(Check(request).options.On("TORCH_CALL_STACK")) << on;
  }
  for (const char* wrong : {"1", "true", "", "On"}) {
    request.given.front().value = wrong;
    EXPECT_EQ(Check(request).problems.size(), 1u) << wrong;
  }
  request.given.front().value = "False";
  EXPECT_FALSE(Check(request).options.On("TORCH_CALL_STACK"));
  request.given.push_back(request.given.front());
  request.given.back().value = "on";
  const CheckResult both = Check(request);
  ASSERT_EQ(both.problems.size(), 1u);
  EXPECT_THAT(Describe(both.problems.front()),
              AllOf(HasSubstr("differs from \"off\""), HasSubstr("give the switch once"), HasSubstr("on, off")));
}

TEST(AclSwitchesTest, UnknownNames) {
  Answer answer = CheckSwitches({{"ACL_PROF_GPU", "on"}, {"acl_prof_aicpu", "on"}});
  ASSERT_EQ(answer.result.problems.size(), 2u);
  for (const Problem& problem : answer.result.problems) {
    EXPECT_THAT(Describe(problem), HasSubstr("ACL_PROF_AICPU"));
  }
}

}  // namespace
}  // namespace profd::options
