// The arguments of `profctl export`, from what was typed to what the engine takes. Only reading: no
// file is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/endpoint.h"
#include "export/engine.h"

namespace profd::client {

// A point in time as --from and --to take it (docs/export.md).
struct TimePoint {
  enum class Kind { kAbsolute, kFromStart, kFromEnd };
  Kind kind = Kind::kAbsolute;
  int64_t ns = 0;  // since the epoch, after the start, or before the end
};
Result<TimePoint> ParseTimePoint(std::string_view text);

// As typed; unset = not given.
struct ExportCommand {
  std::vector<std::string> dumps;
  std::optional<std::string> format;
  std::optional<std::string> out;
  std::optional<std::string> devices;
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::optional<std::string> channels;
  std::optional<std::string> threads;
  std::optional<std::string> clock;
  std::optional<std::string> step;
  std::optional<std::string> rank;
  std::optional<std::string> top;
  std::optional<std::string> compat;
  std::optional<std::string> names;
  // With `to` as a database's address:
  std::optional<std::string> run_name;
  std::optional<std::string> cluster;
  bool resume = false;
  TlsFiles tls;

  bool allow_damaged = false;
  bool gzip = false;
  bool force = false;
  // Serve the trace to Perfetto's UI.
  bool open = false;
};

// The time range of a dump by its manifest; 0 = unknown.
struct DumpSpan {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};
DumpSpan SpanOf(const exporting::DumpInfo& dump);

// What was given without the plain files that a pattern such as run/* brings along; all of it where
// there is nothing else.
std::vector<std::string> WithoutFiles(const std::vector<std::string>& given);

// The last name in it, also of "run/" and "run/.".
std::string DirectoryName(const std::string& path);

// PROF_* directories in a directory that is not a dump itself, and in the directories in it, as `profctl
// fetch` of many nodes writes them; otherwise `path`.
std::vector<std::string> DumpsAt(const std::string& path);

// An error when `path` is a directory that neither is a dump nor has any: to be asked before its tree
// is walked, which may be /etc. What is not there or cannot be read is reported when it is opened.
Status CheckIsDump(const std::string& path);

// Adds what is wrong with "csv,perfetto", which was given with `flag`.
void CheckFormats(std::string_view flag, const std::string& text, std::vector<std::string>* problems);

// Every problem is added to `problems`, whatever else is wrong; the result means something only if
// there is none. An error: nothing is wrong, but no dump has any of the devices or times.
Result<exporting::ExportOptions> BuildExport(const ExportCommand& command,
                                             const std::string& directory,
                                             std::vector<std::string>* problems);

// What `profctl export` cuts a run down to besides times: ranks, training steps, the longest operators.

// --rank and --top, as they are written.
void ParseCuts(const ExportCommand& command, exporting::ExportOptions* options, std::vector<std::string>* problems);

// A rank that none of the dumps has is a problem.
void CheckRanks(const std::vector<exporting::Dump>& dumps, const std::set<int>& ranks,
                std::vector<std::string>* problems);

// --step as the window of `options`, whose dumps are read for it. kInvalidArgument names the steps there are.
Status ResolveSteps(const ExportCommand& command, exporting::ExportOptions* options,
                    std::vector<std::string>* problems);

}  // namespace profd::client
