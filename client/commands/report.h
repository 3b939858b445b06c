// `profctl report RUN... -o FILE`: a run as one page that opens in any browser. Needs no daemon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/clickhouse/run_source.h"
#include "client/context.h"

namespace profd::client {

struct ReportCommand {
  std::vector<std::string> runs;
  std::optional<std::string> out;     // default: report.html
  std::string baseline;               // a run to compare with; empty: none
  std::optional<std::string> slices;  // on the timelines, in all
  StoreOptions store;
  bool force = false;                 // replaces a file that is there
};

// The whole file, or nothing. An error where it is there already and is not to be replaced.
Status WriteWhole(const std::string& path, const std::string& text, bool replace);

// Of --slices.
Result<size_t> ParseSlices(const std::optional<std::string>& text);

int RunReport(const Io& io, const Clock& clock, const ReportCommand& command, bool json);

}  // namespace profd::client
