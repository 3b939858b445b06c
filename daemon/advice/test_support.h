// For tests of this folder only: facts of a job that is well.
#pragma once

#include "base/clock.h"
#include "daemon/advice/checks.h"

namespace profd {

inline constexpr int64_t kTestNow = 1000 * kNsPerSecond;

// Steps of 100 ms: 70 computation, 20 wait, 10 free.
inline RankFacts WellRank(int rank) {
  RankFacts facts{.pid = 100 + rank, .rank = rank, .devices = {rank}, .step = 50, .in_step = true,
                  .last_step_ns = kTestNow - 50 * kNsPerMs, .steps_done = 50};
  for (int64_t i = 0; i < 20; ++i) facts.steps.push_back({30 + i, 100 * kNsPerMs, kTestNow - (20 - i) * 100 * kNsPerMs});
  facts.step_ms = facts.before_ms = 100;
  facts.now = facts.before = StepShares{70, 25, 20, 10};
  facts.kernels = {{"MatMul", 200, 300, 200}, {"Add", 20, 500, 20}};
  return facts;
}

inline JobFacts WellJob(int ranks = 4) {
  JobFacts job{.job_id = "j", .uid = 1000, .world_size = ranks, .now_ns = kTestNow};
  for (int rank = 0; rank < ranks; ++rank) {
    job.ranks.push_back(WellRank(rank));
    NpuFacts& device = job.devices[rank];
    device.npu = std::to_string(rank);
    device.clock_hz = device.rated_hz = 1.8e9;
    device.temperature_c = 60;
    device.memory_bytes = 64e9;
    device.memory_used_bytes = 32e9;
  }
  job.transfer_ms = job.transfer_before_ms = 25;
  return job;
}

}  // namespace profd
