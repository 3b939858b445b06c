#include "client/commands/show_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "client/cli_message.h"
#include "client/commands/export.h"
#include "client/commands/export_parse.h"
#include "client/environment_variable.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kMaxWidth = 300;

size_t TerminalWidth(const Io& io) {
  size_t columns = io.out_columns;
  const bool known = columns > 0 || ParseNumber(EnvironmentVariable("COLUMNS"), &columns);
  return known ? std::clamp<size_t>(columns, 60, kMaxWidth) : kWidth;
}

// What the vendor's profiler left in the processes, and where that is.
void PrintProcessFiles(const Io& io, const exporting::DumpInfo& info) {
  if (!info.manifest || info.manifest->process_files.empty()) return;
  Table table({"PROCESS", ">RANK", ">FILES", ">SIZE", "STATE", "OF THE VENDOR'S PROFILER"});
  for (const ManifestProcessFiles& files : info.manifest->process_files) {
    const bool complete = files.state == "complete";
    const std::string where = files.layout == "merged" ? "among the files above" : "in " + files.directory;
    table.AddRow({std::to_string(files.pid), files.rank ? std::to_string(*files.rank) : "-", std::to_string(files.files),
                  FormatBytes(files.bytes), {files.state, complete ? Tone::kPlain : Tone::kWarning},
                  Printable(files.problem.empty() ? where : where + ": " + files.problem)});
  }
  io.out << '\n';
  table.Print(io.out, io.out_color());
}

// As the manifest has them.
Json ProcessFilesJson(const Manifest& manifest) {
  Manifest only;
  only.process_files = manifest.process_files;
  return Json::parse(Serialize(only)).value("process_files", Json::array());
}

}  // namespace

bool IsDumpArgument(const std::string& text) {
  std::error_code ignored;
  return text.find('/') != std::string::npos || std::filesystem::is_directory(text, ignored);
}

int RunShowDump(const Io& io, const Clock& clock, const std::string& given,
                const ShowDumpOptions& options, bool json) {
  const auto fail = [&](const Status& status) { return FailWith(io, status, json); };
  if (Status is_dump = CheckIsDump(given); !is_dump.ok()) return fail(is_dump);
  std::vector<std::string> found = DumpsAt(given);
  // Of a run that of profd, which has the run's name, is first; those of its processes are beside it.
  const auto own = std::ranges::find_if(found, [&](const std::string& path) { return DirectoryName(path) == DirectoryName(given); });
  if (found.size() > 1 && own == found.end()) {
    return fail(InvalidArgument(fmt::format("{} has {} dumps; one is shown at a time, as {}", given,
                                            found.size(), found.front())));
  }
  if (own != found.end()) std::iter_swap(found.begin(), own);
  const std::string& path = found.front();
  SignalWatch signals;
  Result<exporting::Dump> dump = exporting::Dump::Open(path);
  if (!dump.ok()) return fail(WithFetchHint(dump.status(), {&path, 1}));
  DumpPicture picture;
  picture.info = dump->info();
  for (const std::string& beside : std::span(found).subspan(1)) {
    if (Result<exporting::Dump> other = exporting::Dump::Open(beside); other.ok()) picture.info.bytes += other->info().bytes;
  }
  std::vector<std::unique_ptr<exporting::Format>> formats;
  formats.push_back(exporting::MakeSummaryFormat(&picture.summary));
  exporting::ExportOptions exported;
  exported.dumps = found;
  {
    ExportProgressLine line(io, clock, "reading", !json);
    auto report = exporting::RunExportInto(exported, std::move(formats),
                                           [&](const exporting::ExportProgress& progress) {
                                             line.Show(progress);
                                             return signals.Poll() == 0;
                                           });
    if (!report.ok()) return fail(report.status());
    picture.report = std::move(*report);
  }
  if (json) {
    Json shown = ToJson(picture);
    if (picture.info.manifest) shown["process_files"] = ProcessFilesJson(*picture.info.manifest);
    io.out << JsonText(shown, true) << std::endl;
    return kExitOk;
  }
  PictureStyle style{options.ascii || !IsUtf8Locale(), io.out_color(), options.all,
                     TerminalWidth(io)};
  PrintPicture(io.out, picture, style);
  PrintProcessFiles(io, picture.info);
  io.out.flush();
  WarnOfExport(io, picture.report);
  NoteClipped(io, picture.report);
  return kExitOk;
}

}  // namespace profd::client
