// What the live checks look at: a small picture of one job now and in its past, made once a second
// (daemon/advice/history.h). Plain values, so that a check is a function of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace profd {

struct StepTime {
  int64_t step = 0;
  int64_t duration_ns = 0;
  int64_t end_ns = 0;  // CLOCK_MONOTONIC_RAW
};

// Of a step, means over the last seconds. Computation, wait (communication without computation) and free time make it.
struct StepShares {
  double computation_ms = 0;
  double communication_ms = 0;  // all of it
  double wait_ms = 0;
  double free_ms = 0;
  double step_ms() const { return computation_ms + wait_ms + free_ms; }
};

// What a process's marks say that the host did, per step.
struct HostShares {
  double gc_ms = 0;
  double longest_gc_ms = 0;
  double dataloader_ms = 0;
  double longest_dataloader_ms = 0;
  double compile_ms = 0;
};

struct KernelTime {
  std::string name;
  double mean_us = 0;
  uint64_t count = 0;
  double before_us = 0;  // in the past; 0: not known
};

struct RankFacts {
  pid_t pid = 0;
  std::optional<int> rank = {};
  std::vector<int> devices = {};  // logical ids
  // Of its steps.
  std::optional<int64_t> step = {};  // the last that began
  bool in_step = false;
  int64_t last_step_ns = 0;  // when it last began or ended one; CLOCK_MONOTONIC_RAW
  uint64_t steps_done = 0;
  std::vector<StepTime> steps = {};  // the last ones, oldest first
  double step_ms = 0;           // median of the last ones; 0: not known
  double before_ms = 0;         // in the past; 0: not known
  char state = 0;               // of the process, as the kernel has it; 0: not looked at
  // While its activity is collected.
  std::optional<StepShares> now = {};
  std::optional<StepShares> before = {};
  std::vector<KernelTime> kernels = {};  // most time first
  double aicpu_ms = 0;              // per step
  uint64_t aicpu_kernels = 0;       // in the last seconds
  uint64_t compilations = 0;        // calls, the same
  double compile_api_ms = 0;        // per step
  int64_t last_kernel_ns = 0;       // when the last one ended; 0: not known
  // While its marks are taken.
  HostShares host = {};
};

// Of a link between devices, per second.
struct LinkFacts {
  double retries = 0;
  double crc_errors = 0;
};

// One device as it was read last. Rates are per second, over about the last half minute.
struct NpuFacts {
  std::string npu;  // its label in metrics
  std::optional<double> clock_hz;
  std::optional<double> rated_hz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::vector<std::string> throttle_reasons;
  double memory_errors = 0;  // that were corrected or not, per second
  std::optional<double> memory_bytes;
  std::optional<double> memory_used_bytes;
  std::map<std::string, LinkFacts> links = {};  // by name: "HCCS link 3"
  double roce_retransmits = 0;
  double pfc_frames = 0;  // of one priority in one direction
  double port_errors = 0;
};

// Shares of the last seconds in which a process of the host waited.
struct HostFacts {
  std::optional<double> cpu_waiting;
  std::optional<double> memory_waiting;
  std::optional<double> io_waiting;
};

struct JobFacts {
  std::string job_id = {};
  uint32_t uid = 0;
  int world_size = 0;  // 0: not known
  int64_t now_ns = 0;  // CLOCK_MONOTONIC_RAW
  std::vector<RankFacts> ranks = {};
  std::map<int, NpuFacts> devices = {};  // of its ranks, by logical id
  HostFacts host = {};
  // Communication of the rank that has least of it, per step; 0: not known.
  double transfer_ms = 0;
  double transfer_before_ms = 0;
};

}  // namespace profd
