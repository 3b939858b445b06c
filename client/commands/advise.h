// `profctl advise RUN...`: what is slow in a run, what it costs and what to do. Needs no daemon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/clickhouse/run_source.h"
#include "client/context.h"

namespace profd::client {

struct AdviseCommand {
  std::vector<std::string> runs;
  std::string baseline;            // a run to compare with; empty: none
  std::string limits;              // a TOML file; empty: those of the table
  std::optional<std::string> out;  // a directory for advice.json, advice.html, advice.xlsx and advice.sarif
  std::string language = "en";     // or "zh": of all texts
  std::string format = "text";     // on the terminal: "text", "json", "sarif"
  std::string fail_on;             // "high", "medium", "low"; empty: never
  StoreOptions store;
  bool force = false;              // replaces files that are there
  bool list = false;               // the checks, and their limits
};

int RunAdvise(const Io& io, const Clock& clock, const AdviseCommand& command, bool json);

}  // namespace profd::client
