// For tests of this folder only: facts of a job that is well.
#pragma once

#include "base/clock.h"
#include "daemon/advice/checks.h"

namespace profd {

inline constexpr int64_t kTestNow = 1000 * kNsPerSecond;

// Steps of 100 ms: 70 computation, 20 wait, 10 free.
inline RankFacts WellRank(int rank) {
  RankFacts facts;
  facts.pid = 100 + rank;
  facts.rank = rank;
  facts.devices = {rank};
  facts.step = 50;
  facts.in_step = true;
  facts.last_step_ns = kTestNow - 50 * kNsPerMs;
  facts.steps_done = 50;
  for (int64_t i = 0; i < 20; ++i) facts.steps.push_back({30 + i, 100 * kNsPerMs, kTestNow - (20 - i) * 100 * kNsPerMs});
  facts.step_ms = facts.before_ms = 100;
  facts.now = facts.before = StepShares{70, 25, 20, 10};
  facts.kernels = {{"MatMul", 200, 300, 200}, {"Add", 20, 500, 20}};
  return facts;
}

inline JobFacts WellJob(int ranks = 4) {
  JobFacts job;
  job.job_id = "j";
  job.uid = 1000;
  job.world_size = ranks;
  job.now_ns = kTestNow;
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
