#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "proto/options/options_test_support.h"

namespace profd::options {
namespace {

using testing::HasSubstr;

struct Parsed {
  std::vector<OptionInput> given;
  std::vector<Problem> problems;
};

Parsed Parse(const std::string& text) {
  Parsed parsed;
  ParseJson(text, &parsed.given, &parsed.problems);
  return parsed;
}

void ExpectProblem(const std::string& json, const std::string& text) {
  SCOPED_TRACE(json.substr(0, 100));
  Parsed parsed = Parse(json);
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].kind, Problem::Kind::kInvalid);
  EXPECT_THAT(Describe(parsed.problems[0]), HasSubstr(text));
}

TEST(OptionsJsonTest, TheVendorsExample) {
  CheckResult result = CheckJson(
      R"({"output":"/tmp/profiling","training_trace":"on","task_trace":"on","fp_point":"",)"
      R"("bp_point":"","aic_metrics":"PipeUtilization"})");
  ASSERT_TRUE(result.ok()) << Texts(result);
  EXPECT_EQ(result.options.Text("output"), "/tmp/profiling");
  EXPECT_TRUE(result.options.Asked("fp_point"));
  EXPECT_TRUE(result.options.Asked("aic_metrics"));
  EXPECT_FALSE(result.options.Asked("l2"));
}

TEST(OptionsJsonTest, AnObjectWithoutKeysRequestsNothing) {
  Parsed parsed = Parse(" { } ");
  EXPECT_TRUE(parsed.given.empty());
  EXPECT_TRUE(parsed.problems.empty());
}

TEST(OptionsJsonTest, NumbersAndTexts) {
  Parsed parsed = Parse(R"({"dvpp_freq":10,"sys_io_sampling_freq":"20","storage_limit":500})");
  ASSERT_TRUE(parsed.problems.empty());
  ASSERT_EQ(parsed.given.size(), 3u);
  EXPECT_EQ(parsed.given[0].value, "10");
  EXPECT_EQ(parsed.given[1].value, "20");
  EXPECT_EQ(parsed.given[2].value, "500");
  EXPECT_EQ(parsed.given[0].via, OptionSyntax::kJson);
}

TEST(OptionsJsonTest, WrongTypes) {
  for (const char* wrong : {"true", "false", "null", "[]", "[1,{\"a\":[2]}]", "{}",
                            "{\"l2\":\"on\"}", "1.5", "10.0", "1e1"}) {
    ExpectProblem(fmt::format(R"({{"dvpp_freq":{}}})", wrong), "wrong JSON type");
    ExpectProblem(fmt::format(R"({{"l2":{}}})", wrong), "wrong JSON type");
    ExpectProblem(fmt::format(R"({{"fp_point":{}}})", wrong), "wrong JSON type");
    ExpectProblem(fmt::format(R"({{"storage_limit":{}}})", wrong), "wrong JSON type");
  }
  for (const char* key : {"l2", "task_trace", "aic_metrics", "output", "fp_point", "host_sys",
                          "llc_profiling", "aicpu"}) {
    ExpectProblem(fmt::format(R"({{"{}":1}})", key), "wrong JSON type");
  }
}

TEST(OptionsJsonTest, WrongTypesAreNamed) {
  for (auto [value, type] : {std::pair("true", "boolean"), std::pair("null", "null"), std::pair("[50]", "array"),
                             std::pair("{}", "object"), std::pair("2e2", "floating-point number")}) {
    ExpectProblem(fmt::format(R"({{"storage_limit":{}}})", value), fmt::format("wrong JSON type, {}; must", type));
  }
  ExpectProblem(R"({"l2":1})", "wrong JSON type, number; must be a string: on, off");
}

TEST(OptionsJsonTest, WrongTypesNameKeyValueAndRange) {
  ExpectProblem(R"({"dvpp_freq":true})", "dvpp_freq = \"true\"");
  ExpectProblem(R"({"dvpp_freq":true})", "1..100");
  ExpectProblem(R"({"l2":true})", "on, off");
  ExpectProblem(R"({"dvpp_freq":99.5})", "99.5");
}

TEST(OptionsJsonTest, NumbersOfAnySizeAreOutOfRange) {
  for (const char* number :
       {"-1", "18446744073709551615", "18446744073709551616", "-99999999999999999999999999"}) {
    CheckResult result = CheckJson(fmt::format(R"({{"dvpp_freq":{}}})", number));
    ASSERT_EQ(result.problems.size(), 1u);
    EXPECT_THAT(Describe(result.problems[0]), HasSubstr("integer from 1 to 100"));
  }
}

TEST(OptionsJsonTest, DuplicatedKeys) {
  ExpectProblem(R"({"l2":"on","l2":"on"})", "given twice");
  ExpectProblem(R"({"l2":"on","l2":"off"})", "l2 = \"off\"");
  // However it is written.
  ExpectProblem(R"({"l2":"on","\u006c2":"on"})", "given twice");
  Parsed parsed = Parse(R"({"l2":"on","l2":"off"})");
  ASSERT_EQ(parsed.given.size(), 1u);
  EXPECT_EQ(parsed.given[0].value, "on");
}

TEST(OptionsJsonTest, UnknownKeysOfAnyType) {
  for (const char* value : {"1", "true", "\"on\"", "null", "[]", "{}", "1.5"}) {
    CheckResult result = CheckJson(fmt::format(R"({{"gpu_freq":{}}})", value));
    ASSERT_EQ(result.problems.size(), 1u) << value << '\n' << Texts(result);
    EXPECT_THAT(Describe(result.problems[0]), testing::StartsWith("gpu_freq = "));
    EXPECT_THAT(Describe(result.problems[0]), HasSubstr("unknown option"));
  }
  // A switch that equals an option is none, in JSON.
  EXPECT_FALSE(CheckJson(R"({"ACL_PROF_AICPU":"on"})").ok());
}

TEST(OptionsJsonTest, SyntaxHasLineAndColumn) {
  ExpectProblem("", "line 1, column 1");
  ExpectProblem("{", "line 1, column ");
  ExpectProblem("{\n  \"l2\": \"on\",\n}", "line 3, column 1: is not JSON");
  ExpectProblem("{\"l2\": on}", "line 1, column 8");
  ExpectProblem("{'l2': 'on'}", "line 1, column 2");
  ExpectProblem("{\"l2\": \"on\"} x", "line 1, column 14");
  ExpectProblem("{\"l2\": \"on\"}{}", "line 1, column 13");
  ExpectProblem("{\"dvpp_freq\": 010}", "is not JSON");
  ExpectProblem("{\"dvpp_freq\": 1e500}", "is not JSON: number overflow parsing '1e500'");
  ExpectProblem("{\"l2\": \"o\tn\"}", "is not JSON");
  ExpectProblem("{\"l2\": \"on\"} // no comments", "is not JSON");
  ExpectProblem(std::string("{\"l2\":\"on\"}\0{", 13), "NUL");
}

TEST(OptionsJsonTest, InvalidUtf8) {
  for (const char* bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe5\xb1"}) {
    ExpectProblem(fmt::format("{{\"fp_point\":\"{}\"}}", bytes), "is not JSON");
    ExpectProblem(fmt::format("{{\"{}\":\"on\"}}", bytes), "is not JSON");
  }
  EXPECT_TRUE(CheckJson("{\"fp_point\":\"\xe5\xb1\x82\"}").ok());
}

TEST(OptionsJsonTest, OnlyOneObject) {
  for (const char* other : {"[]", "\"l2\"", "1", "true", "null", "1.5", "[{\"l2\":\"on\"}]"}) {
    ExpectProblem(other, "must be one JSON object");
    EXPECT_TRUE(Parse(other).given.empty());
  }
}

TEST(OptionsJsonTest, SizeAndDepthAreBounded) {
  std::string fits = R"({"l2":"on"})";
  fits.resize(kMaxJsonBytes, ' ');
  EXPECT_TRUE(Parse(fits).problems.empty());
  ExpectProblem(fits + ' ', "at most 65536");
  std::string deep = R"({"l2":)" + std::string(40, '[') + std::string(40, ']') + "}";
  CheckResult result = CheckJson(deep);
  EXPECT_THAT(Texts(result), HasSubstr("nested deeper"));
}

TEST(OptionsJsonTest, ProblemsAreGatheredButBounded) {
  Parsed parsed = Parse(R"({"l2":true,"dvpp_freq":1.5,"l2":"on", })");
  EXPECT_EQ(parsed.problems.size(), 4u);
  std::string text = "{";
  for (int i = 0; i < 3000; ++i) text += fmt::format("\"k{}\":1,", i);
  for (int i = 0; i < 300; ++i) text += "\"l2\":\"on\",";
  text += "\"x\":1}";
  parsed = Parse(text);
  EXPECT_LE(parsed.problems.size(), kMaxProblems + 2);
  EXPECT_LE(parsed.given.size(), kMaxProblems + 2);
  EXPECT_THAT(Describe(parsed.problems.back()), HasSubstr("more problems"));
  // Of 3001 unknown keys and 299 repeated ones, two dozen each are listed: the unknown ones by the check.
  EXPECT_EQ(parsed.problems.back().left_out, 3001 - kMaxProblems + 299 - kMaxProblems);
}

}  // namespace
}  // namespace profd::options
