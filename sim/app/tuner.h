// A training under the vendor's tuning tool (AOE_MODE), and with the bank that it left: what the tool prints and writes,
// with its habits. Nothing is trained meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "sim/app/job.h"

namespace profd::sim::app {

struct TunerOptions {
  bool subgraph = false;        // AOE_MODE 1, else 2
  std::string work_path;        // where results are written
  std::string bank;             // TUNE_BANK_PATH; empty: nothing is kept
  bool repeat = false;          // REPEAT_TUNE
  int64_t operator_ms = 20;     // how long the tuning of one takes
};

// Shares of its time that each operator takes when it is tuned: by "layer/operator", of the backward "layer/operator_grad",
// of a subgraph "layer/".
using TunedShares = std::map<std::string, double>;
Result<TunedShares> ReadBank(const std::string& folder);
// The job with its operators as fast as the bank makes them.
void ApplyBank(const TunedShares& bank, Job* job);

Status Tune(const Job& job, const TunerOptions& options);

}  // namespace profd::sim::app
