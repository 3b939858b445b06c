// The conditions of tuning (analysis 8.1): what is known of machine, node, training and environment, and what follows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/json.h"

namespace profd::client {

// What is to be tuned, and how.
struct TuneRequest {
  bool subgraph = false;
  std::vector<uint32_t> devices;
  bool devices_given = false;
  std::optional<uint64_t> model_bytes;  // of the host's memory
  uint64_t parallel_num = 1;            // TUNING_PARALLEL_NUM
  bool parallel_given = false;
  uint64_t te_parallel = 8;             // TE_PARALLEL_COMPILER
  uint64_t processes = 1;
  std::string job;
  std::vector<std::string> command;
  std::map<std::string, std::string> variables;  // for the command: AOE_MODE, ...
};

// Of a run of the training that was profiled before.
struct TuneProfile {
  size_t ranks = 0;
  uint64_t most_blocks = 0;  // cores that an operator was cut for; 0: not recorded
  uint64_t cores = 0;        // of the device; 0: not recorded
  std::optional<bool> dynamic;
};

// A line of the training's own files that is about a condition.
struct TuneScriptLine {
  std::string file;
  size_t line = 0;
  std::string text;
};

struct TuneDevice {
  uint32_t id = 0;
  std::string chip;
  uint32_t chip_id = 0;
  std::string problem;
};

struct TuneFacts {
  std::map<std::string, std::string> environment;  // of those variables that are set
  std::string home;
  std::optional<uint64_t> home_free;
  std::optional<uint64_t> memory_available;
  uint64_t cpus = 0;          // online
  uint64_t cpus_allowed = 0;  // of them, those that this process may use
  Status node;                // whether the daemon answers
  int32_t caller_pid = 0;     // how it sees this process; 0: not known
  std::vector<TuneDevice> devices;
  Status lease;               // its answer to the lease
  std::optional<TuneProfile> profile;
  size_t script_files = 0;  // that were read
  std::vector<TuneScriptLine> static_memory, profiling;
  std::string python_library;  // the folder where it was found; empty: in none
  Status bank;                 // of TUNE_BANK_PATH, where one is given
  std::string work_path;       // where results will be
  Status work_path_state;
};

enum class TuneVerdict : uint8_t { kOk, kUnknown, kAdvice, kImpossible };
std::string_view WordOf(TuneVerdict verdict);

struct TuneCondition {
  std::string_view name;  // "home_disk"
  std::string_view what;
  std::string figure;
  TuneVerdict verdict = TuneVerdict::kOk;
  std::string advice;  // what to do; empty: nothing
};

std::vector<TuneCondition> CheckConditions(const TuneRequest& request, const TuneFacts& facts);
// Whether tuning may start; `force`: conditions that are advice do not count.
bool MayTune(const std::vector<TuneCondition>& conditions, bool force);

Json ToJson(const std::vector<TuneCondition>& conditions);

// Lines of a script or configuration that switch profiling on, or the memory's static allocation. Of Python, shell, JSON.
void LookThroughScript(std::string_view text, const std::string& file, TuneFacts* facts);

}  // namespace profd::client
