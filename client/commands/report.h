// `profctl report RUN... -o FILE`: a run as one page that opens in any browser. Needs no daemon.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/checks/translated_text.h"
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
  std::string language = "en";        // of the advice
  std::vector<std::string> tuning;    // results of tuning beside those in the runs
  StoreOptions store;
  bool force = false;                 // replaces a file that is there
};

// Whether a file can be made there, before what takes long; leaves nothing. An error where one is that is not to be replaced.
Status CheckWritable(const std::string& path, bool replace);
// The complete file, or nothing. An error where it is there already and is not to be replaced.
Status WriteWhole(const std::string& path, const std::string& text, bool replace);
// The same of what `write` puts into an empty file that it is given the name of.
Status WriteBy(const std::string& path, bool replace, const std::function<Status(const std::string& unfinished)>& write);

// Of --language.
Result<analysis::Language> ParseLanguage(const std::string& word);
// Of --slices.
Result<size_t> ParseSlices(const std::optional<std::string>& text);

int RunReport(const Io& io, const Clock& clock, const ReportCommand& command, bool json);

}  // namespace profd::client
