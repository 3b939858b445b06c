// `profctl show DUMP`: what is in a dump's directory, with a picture of it. Needs no daemon.
#pragma once

#include <string>
#include <vector>

#include "client/context.h"
#include "export/engine.h"
#include "export/show/summary.h"

namespace profd::client {

struct ShowDumpOptions {
  bool ascii = false;  // no Unicode blocks
  bool all = false;    // every series
};

// Whether `profctl show` means a directory: with a '/', or one that is there.
bool IsDumpArgument(const std::string& text);

int RunShowDump(const Io& io, const Clock& clock, const std::string& path,
                const ShowDumpOptions& options, bool json);

// What was found, for the renderer.
struct DumpPicture {
  exporting::DumpInfo info;
  exporting::DumpSummary summary;
  exporting::ExportReport report;
};
struct PictureStyle {
  bool ascii = false;
  bool color = false;
  bool all = false;
  size_t width = 100;
};
void PrintPicture(std::ostream& out, const DumpPicture& picture, const PictureStyle& style);
Json ToJson(const DumpPicture& picture);

// Files of processes together: "*-CpuUsage.data".
std::string FileKind(const std::string& file);

// Printable, in so many bytes at most.
std::string ShortName(const std::string& name, size_t bytes);

// The operators that took longest, and communication: of all ranks together, then of each.
void PrintOperators(std::ostream& out, const exporting::DumpSummary& summary, const PictureStyle& style);
Json OperatorsJson(const exporting::DumpSummary& summary);

// What the devices did in each step, and a timeline of the longest one.
void PrintSteps(std::ostream& out, const exporting::StepView& view, const PictureStyle& style);
Json StepsJson(const exporting::StepView& view);

// A line for each series that stands for its channel, or for each one; and each series with its course.
void PrintSeries(std::ostream& out, const DumpPicture& picture, const PictureStyle& style);
Json SeriesJson(const exporting::SeriesSummary& series, const exporting::DumpSummary& summary);

}  // namespace profd::client
