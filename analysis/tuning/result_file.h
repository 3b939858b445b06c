// Result files of the vendor's tuning tool (AOE), analysis 8.2: what it tuned, what it promises. They are written while
// it tunes, so that a file may end anywhere; everything in it that is complete is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rank.h"
#include "base/status.h"

namespace profd::analysis {

// A time before tuning and after it, us for operators, ms for subgraphs and models.
struct Gain {
  double before = 0;
  double after = 0;
  std::optional<double> written;  // performance_improvement, %
  // (before - after) / after, %; nothing where that is not a number.
  std::optional<double> Percent() const;
};

// A strategy of an operator that was added to the bank, or changed in it.
struct TunedOperator {
  std::string name;
  std::vector<std::string> types;
  std::string mode;    // "Format", "Schedule", "Impl"
  std::string update;  // "add", "update"
  Gain gain;
};

struct TunedSubgraph {
  std::string key;     // in the bank
  std::string update;
  Gain gain;
};

// Numbers of strategies, or of subgraphs.
struct TuningSummary {
  std::optional<int64_t> add, hit, reserved, unsatisfied, update, total;
  bool empty() const { return !add && !hit && !reserved && !unsatisfied && !update && !total; }
};

// One tuning task: the value of a key report_<timestamp>_<thread>.
struct TuningTask {
  std::string key;
  std::string name;
  std::optional<double> seconds;  // nothing: it was cut short
  bool complete = false;          // its report is complete in the file
  bool has_operators = false;     // OPAT is there
  std::string result;             // opat_tuning_result
  std::vector<TunedOperator> operators;
  std::vector<std::string> failed;  // names of operators
  bool has_subgraphs = false;       // SGAT is there
  bool of_subgraphs = false;        // the file is of subgraph tuning
  std::optional<Gain> model;
  std::vector<TunedSubgraph> subgraphs;
  TuningSummary summary;

  // "successful", "failed", "incomplete", "nothing" (no operator to tune). SGAT is absent where tuning failed.
  std::string_view State() const;
};

struct TuningFile {
  std::string path;
  std::string timestamp;       // yyyymmddhhmmssmmm, of its name
  int64_t pid = 0;         // of its name; 0: not in it
  bool complete = false;   // its end is there
  std::vector<TuningTask> tasks;
  std::vector<Problem> problems;  // what does not fit together, and why it cannot be read on
  uint64_t left_out = 0;          // tasks, operators and subgraphs beyond the limits
};

inline constexpr uint64_t kMostTuningBytes = 64 << 20;  // of a file
inline constexpr size_t kMostTuningRows = 200'000;      // operators and subgraphs of a file
inline constexpr size_t kMostTuningTasks = 10'000;
inline constexpr size_t kMostTuningProblems = 100;

// Of aoe_result_opat_<timestamp>_<pid>.json and aoe_result_sgat_...; `timestamp` and `pid` may be null.
bool IsTuningResultName(std::string_view name, std::string* timestamp, int64_t* pid);

TuningFile ParseTuningResult(std::string_view text);
Result<TuningFile> ReadTuningResult(const std::string& path);

// The files that are meant: of a folder those with such a name in it and up to two levels below, by name; anything else
// is a file itself. An error: a path is not there.
Result<std::vector<std::string>> FindTuningResults(const std::vector<std::string>& paths);
// Those in the folders of a run.
std::vector<std::string> TuningResultsIn(const std::vector<std::string>& inputs);

}  // namespace profd::analysis
