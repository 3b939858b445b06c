// `profctl analyze RUN...`: what a run of one rank or many spent its time with. Needs no daemon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/clickhouse/run_source.h"
#include "client/context.h"

namespace profd::client {

struct AnalyzeCommand {
  std::vector<std::string> runs;
  std::string only;      // names of views, separated by ','; empty: all
  std::string baseline;  // a run to compare with; empty: none
  std::optional<std::string> cluster_out;  // a directory for cluster_analysis_output
  bool force = false;                      // replaces its files
  StoreOptions store;
  bool overview = false;  // of a database: all ranks in few figures
};

// Of larger runs the text has what is about all of them.
inline constexpr size_t kMostRanksInFull = 16;

int RunAnalyze(const Io& io, const AnalyzeCommand& command, bool json);

// Names of --only.
std::vector<std::string> AnalysisNames();

// What could not be read, as ProblemsJson lists it, to stderr.
void PrintProblems(const Io& io, const Json& problems);

// The analyses of a run as tables; `run` as RunJson makes it. `only`: as the command has it.
void PrintAnalysis(const Io& io, const Json& run);
// Those of --overview.
void PrintOverview(const Io& io, const Json& overview);

}  // namespace profd::client
