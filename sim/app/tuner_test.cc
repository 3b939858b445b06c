// The tool's files are JSON as the requirement has them, but for the habits that are meant.
#include "sim/app/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/testing/temp_dir.h"

namespace profd::sim::app {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
name = "small"
[[layer]]
name = "block"
count = 2
[[layer.operator]]
type = "MatMulV2"
us = 100
backward_us = 200
[[layer.operator]]
type = "Softmax"
core = "aicpu"
us = 10
[[optimizer]]
type = "ApplyAdam"
us = 50
)";

class TunerTest : public ::testing::Test {
 protected:
  std::string Tuned() {
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      if (entry.path().extension() == ".json") std::filesystem::remove(entry.path());
    }
    EXPECT_TRUE(Tune(job_, options_).ok());
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      if (entry.path().extension() != ".json") continue;
      return ReadText(entry.path());
    }
    return "";
  }

  Job job_ = ParseJob(kJob).value();
  TempDir dir_;
  TunerOptions options_{false, dir_.path(), dir_.path(), false, 0};
};

TEST_F(TunerTest, OperatorsAndTheBankTheyComeFrom) {
  const std::string text = Tuned();
  const auto json = nlohmann::json::parse(text);
  // Two tasks have one key: JSON keeps the last.
  EXPECT_EQ(json.size(), 1u);
  EXPECT_NE(text.find("report_"), text.rfind("report_"));
  EXPECT_THAT(text, HasSubstr("\"tuning_failed_operators\": [\"block_0/Softmax\"]"));
  const TunedShares bank = ReadBank(dir_.path()).value();
  const auto row = json.front()[1]["OPAT"]["repo_modified_operators"][0];
  EXPECT_EQ(row["op_name"], "ApplyAdam");
  const auto gain = row["tune_performance"].front();
  const double before = gain["performance_before_tune(us)"], after = gain["performance_after_tune(us)"];
  EXPECT_NEAR(std::stod(gain["performance_improvement"].get<std::string>()), (before - after) / after * 100, 0.005001);
  EXPECT_NEAR(after / before, bank.at("ApplyAdam"), 1e-4);
  Job tuned = job_;
  ApplyBank(bank, &tuned);
  EXPECT_EQ(tuned.optimizer[0].forward_ns, std::llround(50'000 * bank.at("ApplyAdam")));
  EXPECT_EQ(tuned.layers[0].operators[1].forward_ns, 10'000);
}

TEST_F(TunerTest, ASecondTimeTheBankIsHit) {
  Tuned();
  EXPECT_THAT(Tuned(), HasSubstr("\"repo_add_num\": 0, \"repo_hit_num\": 1, \"repo_reserved_num\": 1"));
  options_.repeat = true;
  EXPECT_THAT(Tuned(), HasSubstr("\"update_mode\": \"update\""));
}

TEST_F(TunerTest, SubgraphsLackAComma) {
  options_.subgraph = true;
  const std::string text = Tuned();
  EXPECT_FALSE(nlohmann::json::accept(text));
  EXPECT_THAT(text, HasSubstr("] \"update_repo_subgraphs\""));
  EXPECT_TRUE(ReadBank(dir_.path()).value().contains("block/"));
}

TEST_F(TunerTest, WhatIsNotTuned) {
  job_.data_parallel = 2;
  EXPECT_THAT(Tune(job_, options_).message(), HasSubstr("several ranks"));
  job_.data_parallel = 1;
  options_.bank = dir_ / "none";
  EXPECT_THAT(Tune(job_, options_).message(), HasSubstr("is not there"));
}

}  // namespace
}  // namespace profd::sim::app
