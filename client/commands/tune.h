// `profctl tune`: a training under the vendor's tuning tool (AOE), with its conditions checked before, its devices kept
// meanwhile and its results shown afterwards; and what can be done with results that are there already.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// Of the caller.
struct TuneSurroundings {
  std::string home;
  std::string search_path;
  std::string work_path;  // $ASCEND_WORK_PATH
  std::string working_directory;
  std::function<std::string(const char* name)> variable;

  std::string Variable(const char* name) const { return variable ? variable(name) : std::string(); }
};

struct TuneCommand {
  enum class Action : uint8_t { kRun, kCheck, kShow, kVerify, kLeases, kRelease };
  Action action = Action::kRun;
  std::optional<std::string> mode, devices, job, model_memory, parallel_num, te_parallel, processes, bank, repeat, profile, interval;
  bool force = false;
  std::vector<std::string> command;
  std::vector<std::string> results;
  bool csv = false;
  std::string before, after;  // runs
  std::string lease;
  TuneSurroundings surroundings;
};

int RunTune(const Context& context, const TuneCommand& command);
int RunTuneShow(const Io& io, const TuneCommand& command, bool json);
int RunTuneVerify(const Io& io, const TuneCommand& command, bool json);

}  // namespace profd::client
