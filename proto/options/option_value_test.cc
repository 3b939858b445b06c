// Every limit of every key, and one beyond it, in every way a value can be given.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <deque>
#include <nlohmann/json.hpp>

#include "profd/v1/options.pb.h"
#include "proto/options/options_message.h"
#include "proto/options/options_test_support.h"

namespace profd::options {
namespace {

using testing::HasSubstr;

struct Value {
  const char* key;
  std::string given;
  // What it becomes; nullptr = refused.
  const char* canonical;
};

std::string NameOf(const Value& value) {
  return fmt::format("{} = {}", value.key, value.given.substr(0, 80));
}

// Keys without which the value could not stand; taken out of the answer by looking at one key only.
std::vector<OptionInput> WithNeeds(const char* key) {
  std::string_view name = key;
  if (name == "llc_profiling") return {Field("sys_hardware_mem_freq", "50")};
  if (name == "host_sys_usage_freq") return {Field("host_sys_usage", "cpu")};
  return {};
}

std::string Registers(int count) {
  std::string text = "Custom:1";
  for (int i = 1; i < count; ++i) text += ",1";
  return text;
}

const std::vector<Value>& Values() {
  static const std::vector<Value> kValues = {
      {"output", "/tmp/profiling", "/tmp/profiling"},
      {"output", "relative", "relative"},
      {"output", " /a b ", "/a b"},
      {"output", "", nullptr},
      {"output", "  ", nullptr},
      {"output", "/a\n", nullptr},
      {"output", "/a\f", nullptr},
      {"output", "/a\r", nullptr},
      {"output", "/a\b", nullptr},
      {"output", "/a\t", nullptr},
      {"output", "/a\v", nullptr},
      {"output", "/a\x7f", nullptr},
      {"output", std::string("/a\0b", 4), nullptr},
      {"output", "/" + std::string(4094, 'a'), ""},
      {"output", "/" + std::string(4095, 'a'), nullptr},
      {"storage_limit", "200MB", "200MB"},
      {"storage_limit", "199MB", nullptr},
      {"storage_limit", "4294967295MB", "4294967295MB"},
      {"storage_limit", "4294967296MB", nullptr},
      {"storage_limit", "200", "200MB"},
      {"storage_limit", "4294967295", "4294967295MB"},
      {"storage_limit", "99999999999999999999999MB", nullptr},
      {"storage_limit", "-200MB", nullptr},
      {"storage_limit", "+200MB", nullptr},
      {"storage_limit", "200mb", nullptr},
      {"storage_limit", "200 MB", nullptr},
      {"storage_limit", "2GB", nullptr},
      {"storage_limit", "MB", nullptr},
      {"storage_limit", "200.5MB", nullptr},
      {"storage_limit", " 300MB\t", "300MB"},
      {"task_trace", "on", "l1"},
      {"task_trace", "l1", "l1"},
      {"task_trace", "l0", "l0"},
      {"task_trace", "off", "off"},
      {"task_trace", "l2", nullptr},
      {"task_trace", "ON", nullptr},
      {"task_trace", "", nullptr},
      {"task_time", "on", "l1"},
      {"task_time", "l0", "l0"},
      {"task_time", "L0", nullptr},
      {"aicpu", "on", "on"},
      {"aicpu", "off", "off"},
      {"aicpu", "ON", "off"},
      {"aicpu", "", "off"},
      {"aicpu", "whatever", "off"},
      {"fp_point", "", ""},
      {"fp_point", "resnet/conv1:0", "resnet/conv1:0"},
      {"fp_point", " conv ", "conv"},
      {"fp_point", "off", "off"},
      {"fp_point", "a\nb", nullptr},
      {"bp_point", "", ""},
      {"bp_point", "\xe5\xb1\x82", "\xe5\xb1\x82"},
      {"bp_point", std::string(1024, 'a'), ""},
      {"bp_point", std::string(1025, 'a'), nullptr},
      {"aic_metrics", "ArithmeticUtilization", "ArithmeticUtilization"},
      {"aic_metrics", "PipeUtilization", "PipeUtilization"},
      {"aic_metrics", "Memory", "Memory"},
      {"aic_metrics", "MemoryL0", "MemoryL0"},
      {"aic_metrics", "MemoryUB", "MemoryUB"},
      {"aic_metrics", "ResourceConflictRatio", "ResourceConflictRatio"},
      {"aic_metrics", "L2Cache", "L2Cache"},
      {"aic_metrics", "pipeutilization", nullptr},
      {"aic_metrics", "MemoryAccess", nullptr},
      {"aic_metrics", "none", nullptr},
      {"aic_metrics", "off", nullptr},
      {"aic_metrics", "", nullptr},
      {"aic_metrics", "Custom:0x49,0x8,0x15,0x1b,0x64,0x10", "Custom:0x49,0x8,0x15,0x1b,0x64,0x10"},
      {"aic_metrics", "Custom: 73 , 8", "Custom:0x49,0x8"},
      {"aic_metrics", "Custom:0x1", "Custom:0x1"},
      {"aic_metrics", "Custom:0x0", nullptr},
      {"aic_metrics", "Custom:0", nullptr},
      {"aic_metrics", "Custom:0x6E", "Custom:0x6e"},
      {"aic_metrics", "Custom:0X6e", "Custom:0x6e"},
      {"aic_metrics", "Custom:0x6F", nullptr},
      {"aic_metrics", "Custom:110", "Custom:0x6e"},
      {"aic_metrics", "Custom:111", nullptr},
      {"aic_metrics", Registers(8), "Custom:0x1,0x1,0x1,0x1,0x1,0x1,0x1,0x1"},
      {"aic_metrics", Registers(9), nullptr},
      {"aic_metrics", "Custom:", nullptr},
      {"aic_metrics", "Custom:1,,2", nullptr},
      {"aic_metrics", "Custom:1,", nullptr},
      {"aic_metrics", "Custom:0x", nullptr},
      {"aic_metrics", "Custom:6e", nullptr},
      {"aic_metrics", "Custom:-1", nullptr},
      {"aic_metrics", "Custom:0x10000000000000001", nullptr},
      {"aic_metrics", "custom:1", nullptr},
      {"llc_profiling", "read", "read"},
      {"llc_profiling", "write", "write"},
      {"llc_profiling", " write ", "write"},
      {"llc_profiling", "Read", nullptr},
      {"llc_profiling", "read,write", nullptr},
      {"llc_profiling", "capacity", nullptr},
      {"host_sys", "cpu", "cpu"},
      {"host_sys", "mem", "mem"},
      {"host_sys", "cpu,mem", "cpu,mem"},
      {"host_sys", "mem , cpu", "cpu,mem"},
      {"host_sys", "disk", nullptr},
      {"host_sys", "CPU", nullptr},
      {"host_sys", "cpu,", nullptr},
      {"host_sys", ",cpu", nullptr},
      {"host_sys", "cpu,,mem", nullptr},
      {"host_sys", "", nullptr},
      {"host_sys", "cpu;mem", nullptr},
      {"host_sys_usage", "cpu,mem", "cpu,mem"},
      {"host_sys_usage", "cpu", "cpu"},
      {"host_sys_usage", "mem", "mem"},
      {"host_sys_usage", "cpu, ", nullptr},
      {"host_sys_usage", "network", nullptr},
  };
  return kValues;
}

// The numbers have their limits from the documentation, not from the table they test.
struct Limits {
  const char* key;
  int64_t min;
  int64_t max;
};
constexpr Limits kLimits[] = {
    {"sys_hardware_mem_freq", 1, 100},    {"sys_io_sampling_freq", 1, 100},
    {"sys_interconnection_freq", 1, 50},  {"dvpp_freq", 1, 100},
    {"instr_profiling_freq", 300, 30000}, {"host_sys_usage_freq", 1, 50},
};
constexpr const char* kSwitches[] = {"training_trace", "hccl", "l2", "msproftx", "runtime_api"};

std::vector<Value> AllValues() {
  std::vector<Value> all = Values();
  static std::deque<std::string> kept;
  auto keep = [](int64_t number) { return kept.emplace_back(std::to_string(number)).c_str(); };
  for (const Limits& limits : kLimits) {
    for (int64_t good : {limits.min, limits.max}) {
      all.push_back({limits.key, std::to_string(good), keep(good)});
    }
    for (int64_t bad : {limits.min - 1, limits.max + 1, int64_t{-1}, int64_t{4294967296},
                        limits.min - 4294967296}) {
      all.push_back({limits.key, std::to_string(bad), nullptr});
    }
    for (const char* bad :
         {"", "off", "on", "10.0", "1e1", "0x10", "+10", "10Hz", "99999999999999999999999999"}) {
      all.push_back({limits.key, bad, nullptr});
    }
  }
  for (const char* key : kSwitches) {
    all.push_back({key, "on", "on"});
    all.push_back({key, "off", "off"});
    all.push_back({key, "\t on ", "on"});
    for (const char* bad : {"ON", "On", "true", "1", "l1", "", "on off"}) {
      all.push_back({key, bad, nullptr});
    }
  }
  return all;
}

void ExpectAnswer(const Value& value, const CheckResult& result) {
  if (value.canonical == nullptr) {
    ASSERT_EQ(result.problems.size(), 1u) << Texts(result);
    const Problem& problem = result.problems.front();
    EXPECT_EQ(problem.kind, Problem::Kind::kInvalid);
    EXPECT_EQ(problem.field, value.key);
    EXPECT_THAT(Describe(problem), testing::StartsWith(std::string(value.key)));
    EXPECT_EQ(problem.value.empty(), value.given.empty());
    // What is allowed, and what to do.
    EXPECT_THAT(Describe(problem), HasSubstr("must "));
    EXPECT_THAT(Describe(problem), HasSubstr("; "));
    return;
  }
  ASSERT_TRUE(result.ok()) << Texts(result);
  const Effective* effective = result.options.Get(value.key);
  ASSERT_NE(effective, nullptr);
  EXPECT_TRUE(effective->was_asked);
  EXPECT_TRUE(result.options.Asked(value.key));
  bool long_text = value.given.size() > 1000;
  if (long_text) {
    EXPECT_EQ(effective->value, value.given);
  } else {
    EXPECT_EQ(effective->value, value.canonical);
  }
}

TEST(OptionValueTest, EveryLimitAndOneBeyondAsAField) {
  for (const Value& value : AllValues()) {
    SCOPED_TRACE(NameOf(value));
    std::vector<OptionInput> given = WithNeeds(value.key);
    given.push_back(Field(value.key, value.given));
    ExpectAnswer(value, CheckGiven(given));
  }
}

TEST(OptionValueTest, EveryLimitAndOneBeyondAsJsonText) {
  for (const Value& value : AllValues()) {
    SCOPED_TRACE(NameOf(value));
    nlohmann::json json;
    for (const OptionInput& need : WithNeeds(value.key)) json[need.key] = need.value;
    json[value.key] = value.given;
    ExpectAnswer(value, CheckJson(json.dump()));
  }
}

TEST(OptionValueTest, EveryLimitAndOneBeyondAsJsonNumber) {
  int numbers = 0;
  for (const Value& value : AllValues()) {
    int64_t number = 0;
    auto [end, error] =
        std::from_chars(value.given.data(), value.given.data() + value.given.size(), number);
    const Option* option = Find(value.key);
    bool whole = error == std::errc() && end == value.given.data() + value.given.size();
    bool numeric = option->max != 0 && option->type != Type::kMetrics;
    if (!whole || !numeric) continue;
    SCOPED_TRACE(NameOf(value));
    nlohmann::json json;
    for (const OptionInput& need : WithNeeds(value.key)) json[need.key] = need.value;
    json[value.key] = number;
    ExpectAnswer(value, CheckJson(json.dump()));
    ++numbers;
  }
  EXPECT_GT(numbers, 30);
}

TEST(OptionValueTest, EveryLimitAndOneBeyondThroughTheMessage) {
  for (const Value& value : AllValues()) {
    SCOPED_TRACE(NameOf(value));
    v1::ProfilingOptions message;
    for (const OptionInput& need : WithNeeds(value.key)) {
      ASSERT_TRUE(SetField(need.key, need.value, &message));
    }
    if (!SetField(value.key, value.given, &message)) {
      // What the field's type does not hold is wrong anyway.
      EXPECT_EQ(value.canonical, nullptr);
      continue;
    }
    v1::ProfilingOptions arrived;
    ASSERT_TRUE(arrived.ParseFromString(message.SerializeAsString()));
    ExpectAnswer(value, CheckGiven(FromMessage(arrived)));
  }
}

TEST(OptionValueTest, NumbersCarryTheirValue) {
  CheckResult result = CheckJson(R"({"sys_io_sampling_freq":"7","storage_limit":4294967295})");
  ASSERT_TRUE(result.ok()) << Texts(result);
  EXPECT_EQ(result.options.Number("sys_io_sampling_freq"), 7u);
  EXPECT_EQ(result.options.Number("storage_limit"), 4294967295u);
  EXPECT_EQ(result.options.Number("dvpp_freq"), 0u);
  EXPECT_EQ(result.options.Number("host_sys_usage_freq"), 50u);
}

TEST(OptionValueTest, ListsSayWhatTheyHave) {
  CheckResult result = CheckJson(R"({"host_sys_usage":"mem"})");
  EXPECT_TRUE(result.options.ListHas("host_sys_usage", "mem"));
  EXPECT_FALSE(result.options.ListHas("host_sys_usage", "cpu"));
  EXPECT_FALSE(result.options.ListHas("host_sys", "mem"));
}

TEST(OptionValueTest, ProblemsAreFitForTerminalsAndMessages) {
  CheckResult result =
      CheckGiven({Field("l2", std::string("\x1b[31m\xff\xc2\x9b") + "\xe5\xb1\x82"),
                  Field("k\x07y", std::string(5000, 'x'))});
  ASSERT_EQ(result.problems.size(), 2u);
  EXPECT_THAT(Describe(result.problems[0]), HasSubstr("\\x1b[31m\\xff\\xc2\\x9b\xe5\xb1\x82"));
  EXPECT_THAT(Describe(result.problems[1]), HasSubstr("\"k\\x07y\""));
  EXPECT_LT(Describe(result.problems[1]).size(), 300u);
  EXPECT_TRUE(result.problems[1].value.ends_with("...")) << result.problems[1].value;
  for (const Problem& problem : result.problems) {
    EXPECT_EQ(problem.value.find('\x1b'), std::string::npos);
    EXPECT_LT(problem.value.size(), 100u);
  }
}

TEST(OptionValueTest, SuggestsTheNearestKey) {
  EXPECT_THAT(Texts(CheckJson(R"({"sys_io_freq": 5})")), HasSubstr("unknown option"));
  EXPECT_THAT(Texts(CheckJson(R"({"task_trce": "on"})")), HasSubstr("did you mean task_trace?"));
  EXPECT_THAT(Texts(CheckJson(R"({"sys_hardware_mem": 5})")),
              HasSubstr("did you mean sys_hardware_mem_freq?"));
  EXPECT_THAT(Texts(CheckJson(R"({"gpu": "on"})")), testing::EndsWith("unknown option\n"));
  EXPECT_THAT(Texts(CheckJson(R"({"L2": "on"})")), HasSubstr("unknown option"));
}

TEST(OptionValueTest, WhatIsNoKeyIsNamed) {
  EXPECT_EQ(Describe(CheckJson(R"({"": "x"})").problems.at(0)), "PROFILING_OPTIONS: has an empty key; remove it");
  EXPECT_THAT(Describe(CheckJson(R"({"ACL_PROF_L2CACHE": "on"})").problems.at(0)),
              AllOf(HasSubstr("ACL_PROF_L2CACHE = \"on\": is a switch of PyTorch's profiler"), HasSubstr("give l2=on in its place, or --acl ACL_PROF_L2CACHE=VALUE")));
}

TEST(OptionValueTest, AnEmptyListHasNoComma) {
  EXPECT_EQ(Describe(CheckJson(R"({"host_sys_usage": ""})").problems.at(0)),
            "host_sys_usage: is empty; must be cpu, mem, or both (cpu,mem); use one of these, or omit it to disable");
  EXPECT_THAT(Texts(CheckJson(R"({"host_sys_usage": "cpu,"})")), HasSubstr("remove the extra comma"));
}

}  // namespace
}  // namespace profd::options
