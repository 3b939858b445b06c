// sim_train as a launcher starts it, and the truth it wrote.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "sim/app/job.h"
#include "sim/app/step_plan.h"
#include "sim/child_test_support.h"

namespace profd::sim::app {

inline constexpr char kTwoRanks[] = R"(
steps = 3
data_parallel = 2
batch_mb = 0.1
launch_us = 0
[[layer]]
name = "block"
count = 2
gradient_mb = 0.1
[[layer.operator]]
type = "MatMulV2"
us = 100
backward_us = 200
[[optimizer]]
type = "ApplyAdam"
us = 50
)";

class SimTrain : public testing::Test {
 protected:
  std::string WriteJob(const std::string& text) { return dir_.Write("job.toml", text); }
  ChildResult Run(const std::string& job, const char* rank = nullptr) {
    return RunChild(
        [&] {
          ::setenv("PROFD_DISABLE", "1", 1);
          ::execl(PROFD_SIM_TRAIN, PROFD_SIM_TRAIN, job.c_str(), dir_.path().c_str(), rank, nullptr);
          FAIL() << PROFD_SIM_TRAIN;
        },
        std::chrono::seconds(120));
  }
  // What of a rank's truth is of this kind, in the order of the file.
  std::vector<nlohmann::json> Truth(int rank, const std::string& what) {
    std::vector<nlohmann::json> found;
    std::ifstream file(dir_ / ("truth_" + std::to_string(rank) + ".jsonl"));
    for (std::string line; std::getline(file, line);) {
      nlohmann::json parsed = nlohmann::json::parse(line);
      if (parsed["what"] == what) found.push_back(std::move(parsed));
    }
    return found;
  }

  // Kernels and communication of each rank and stream are those of the plan, in its order, and take as long.
  void ExpectAsPlanned(const Job& job) {
    for (uint32_t rank = 0; rank < job.ranks(); ++rank) {
      std::vector<std::string> planned, ran;
      std::multiset<std::string> exchanges, exchanged;
      for (int64_t step = 0; step < job.steps; ++step) {
        for (const Action& action : PlanStep(job, rank, step)) {
          if (action.kind == Action::kLaunch) planned.push_back(action.name + " " + std::to_string(action.duration_ns));
          if (action.kind == Action::kCommunication) exchanges.insert(action.name + " " + action.group.name);
        }
      }
      for (const nlohmann::json& kernel : Truth(static_cast<int>(rank), "kernel")) {
        const int64_t begin = kernel["begin_ns"], end = kernel["end_ns"];
        ran.push_back(kernel["name"].get<std::string>() + " " + std::to_string(end - begin));
        EXPECT_EQ(kernel["device"], rank);
        EXPECT_LT(kernel["launch_ns"], begin);
      }
      for (const nlohmann::json& exchange : Truth(static_cast<int>(rank), "communication")) {
        exchanged.insert(exchange["name"].get<std::string>() + " " + exchange["group"].get<std::string>());
      }
      EXPECT_EQ(ran, planned) << job.name << ", rank " << rank;
      EXPECT_EQ(exchanged, exchanges) << job.name << ", rank " << rank;
      EXPECT_EQ(Truth(static_cast<int>(rank), "step").size(), static_cast<size_t>(job.steps));
    }
  }

  TempDir dir_;
};

}  // namespace profd::sim::app
