#include "client/commands/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client/render.h"
#include "client/serve/trace_server.h"
#include "client/signals.h"

namespace profd::client {
namespace {

using exporting::ChannelReport;
using exporting::DumpInfo;
using exporting::ExportProgress;
using exporting::ExportReport;

constexpr size_t kBarWidth = 24;
constexpr size_t kMaxWarnings = 20;
constexpr const char* kUnfinished = "is still being written: what follows is missing in the files";

void Warning(const Io& io, const std::string& text) {
  io.err << Paint("profctl: warning: ", Tone::kWarning, io.err_color()) << Printable(text)
         << std::endl;
}

int Usage(const Io& io, const std::vector<std::string>& problems, bool json) {
  (void)UsageError(io, "export", problems);
  if (json) {
    io.out << JsonText(Json{{"error",
                             {{"code", "invalid_argument"},
                              {"problems", problems},
                              {"exit_code", static_cast<int>(kExitUsage)}}}},
                       true)
           << std::endl;
  }
  return kExitUsage;
}

std::string Rate(double bytes, double seconds) {
  return seconds > 0 ? FormatBytes(static_cast<uint64_t>(bytes / seconds)) + "/s" : "-";
}

void PrintOutputs(const Io& io, const ExportReport& report, const std::string& out_dir) {
  Table table({"FILE", ">SIZE", ">ROWS"});
  uint64_t bytes = 0;
  std::string prefix = out_dir + "/";
  for (const exporting::OutputFile& file : report.outputs) {
    bytes += file.bytes;
    std::string path = file.path.starts_with(prefix) ? file.path.substr(prefix.size()) : file.path;
    table.AddRow({path, FormatBytes(file.bytes), std::to_string(file.rows)});
  }
  if (!table.empty()) table.Print(io.out, io.out_color());
  io.out << fmt::format("{}: {}, {}, from {} in {:.1f} s ({})\n", Printable(out_dir),
                        CountText(report.outputs.size(), "file"), FormatBytes(bytes), FormatBytes(report.input_bytes),
                        report.seconds,
                        Rate(static_cast<double>(report.input_bytes), report.seconds));
}

constexpr int64_t kOpenForMs = 10 * 60'000;

// Until the browser has taken it.
int OpenInPerfetto(const Io& io, const ExportReport& report, SignalWatch* signals, bool json) {
  auto trace = std::ranges::find_if(report.outputs, [](const exporting::OutputFile& file) {
    return file.path.find(".perfetto-trace") != std::string::npos;
  });
  if (trace == report.outputs.end()) {
    io.err << "profctl: --open: there is no trace to open" << std::endl;
    return kExitPartial;
  }
  auto server = TraceServer::Open(trace->path, kPerfettoPort);
  if (!server.ok()) {
    io.err << "profctl: --open: " << PrintableLines(server.status().message())
           << "; Perfetto's UI opens traces from this port only: end what listens there, or open "
           << Printable(trace->path) << " by hand" << std::endl;
    return kExitPartial;
  }
  (json ? io.err : io.out) << "open " << Printable((*server)->Url())
                           << "\n  waits for the browser for 10 minutes, or until Ctrl-C" << std::endl;
  const bool taken = (*server)->Serve(kOpenForMs, [signals] { return signals->Poll() == 0; });
  if (!taken) io.err << "profctl: --open: no browser took the trace" << std::endl;
  return taken || signals->caught() != 0 ? kExitOk : kExitPartial;
}

}  // namespace

ExportProgressLine::ExportProgressLine(const Io& io, const Clock& clock, std::string what,
                                       bool wanted)
    : io_(io),
      clock_(clock),
      what_(std::move(what)),
      on_(wanted && io.err_tty),
      begin_ns_(clock.SteadyNs()) {}

ExportProgressLine::~ExportProgressLine() {
  if (shown_) io_.err << "\r\033[K" << std::flush;
}

void ExportProgressLine::Show(const ExportProgress& progress) {
  if (!on_ || progress.bytes_total == 0) return;
  double part = std::min(
      1.0, static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total));
  int64_t elapsed = clock_.SteadyNs() - begin_ns_;
  auto filled = static_cast<size_t>(part * kBarWidth);
  std::string bar(filled, '#');
  bar.append(kBarWidth - filled, '-');
  std::string left =
      part > 0.01 && part < 1
          ? FormatSpan(static_cast<int64_t>(static_cast<double>(elapsed) * (1 - part) / part)) +
                " left"
          : "";
  shown_ = true;
  io_.err << fmt::format("\r\033[K{} [{}] {:3.0f} %  {} of {}  {}  {}", what_, bar, part * 100,
                         FormatBytes(progress.bytes_done), FormatBytes(progress.bytes_total),
                         Rate(static_cast<double>(progress.bytes_done),
                              static_cast<double>(elapsed) / static_cast<double>(kNsPerSecond)),
                         left)
          << std::flush;
}

void WarnOfExport(const Io& io, const ExportReport& report) {
  size_t shown = 0;
  size_t more = 0;
  std::map<std::string, std::pair<size_t, std::string>> skipped;  // by reason
  for (const DumpInfo::Problem& problem : report.problems) {
    if (!problem.broken) {
      auto& [count, example] = skipped[problem.what];
      if (count++ == 0) example = problem.file;
    } else if (shown++ < kMaxWarnings) {
      Warning(io, problem.file + ": " + problem.what);
    } else {
      ++more;
    }
  }
  for (const ChannelReport& channel : report.channels) {
    if (channel.bad_bytes == 0) continue;
    if (shown++ >= kMaxWarnings) {
      ++more;
      continue;
    }
    Warning(io, fmt::format("{}: {} {}: {} ({}) could not be decoded and {} skipped",
                            channel.dump, PlaceName(channel.device), channel.file,
                            CountText(channel.bad_records, "record"), CountText(channel.bad_bytes, "byte"),
                            channel.bad_records == 1 ? "was" : "were"));
  }
  uint64_t unpaired = 0;
  for (const ChannelReport& channel : report.channels) unpaired += channel.unpaired;
  if (unpaired > 0) {
    Warning(io, fmt::format("{} without the other end {} skipped", CountText(unpaired, "begin/end mark"), unpaired == 1 ? "was" : "were"));
  }
  for (const auto& [what, entry] : skipped) {
    const auto& [count, example] = entry;
    Warning(io, count == 1 ? fmt::format("{}: {}", example, what)
                           : fmt::format("{} and {} more: {}", example, count - 1, what));
  }
  if (more > 0) Warning(io, fmt::format("and {} more; all of them with --json", more));
}

void NoteClipped(const Io& io, const ExportReport& report) {
  uint64_t clipped = 0;
  for (const ChannelReport& channel : report.channels) clipped += channel.clipped;
  if (clipped == 0) return;
  io.err << fmt::format("profctl: {} crossed the session border and {} clipped\n",
                        CountText(clipped, "begin/end mark"), clipped == 1 ? "was" : "were")
         << std::flush;
}

Json ToJson(const ExportReport& report) {
  Json json = {{"seconds", report.seconds}, {"input_bytes", report.input_bytes}};
  json["outputs"] = Json::array();
  for (const exporting::OutputFile& file : report.outputs) {
    json["outputs"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"rows", file.rows}});
  }
  json["failed"] = Json::array();
  for (const exporting::FormatFailure& failure : report.failed) {
    json["failed"].push_back({{"format", failure.format}, {"error", failure.error.message()}});
  }
  json["channels"] = Json::array();
  for (const ChannelReport& channel : report.channels) {
    json["channels"].push_back({{"dump", channel.dump},
                                {"device", channel.device},
                                {"file", channel.file},
                                {"bytes", channel.bytes},
                                {"records", channel.records},
                                {"rows", channel.rows},
                                {"bad_records", channel.bad_records},
                                {"bad_bytes", channel.bad_bytes},
                                {"clipped", channel.clipped},
                                {"unpaired", channel.unpaired}});
  }
  json["problems"] = Json::array();
  for (const DumpInfo::Problem& problem : report.problems) {
    json["problems"].push_back(
        {{"file", problem.file}, {"what", problem.what}, {"broken", problem.broken}});
  }
  for (const std::string& dump : report.unfinished) {
    json["problems"].push_back({{"file", dump}, {"what", kUnfinished}, {"broken", false}});
  }
  return json;
}

int RunExport(const Io& io, const Clock& clock, const std::string& directory,
              const ExportCommand& command, bool json) {
  if (IsExportToStore(command)) return RunExportToStore(io, clock, command, json);
  std::vector<std::string> problems;
  if (command.run_name || command.cluster || command.resume) problems.emplace_back("--run, --cluster and --resume are for --to with the address of a database");
  if (command.dumps.empty()) problems.emplace_back("name the directories of the dumps");
  Result<exporting::ExportOptions> built = BuildExport(command, directory, &problems);
  if (!problems.empty()) return Usage(io, problems, json);
  if (!built.ok()) return FailWith(io, built.status(), kExitRefused, json);
  const exporting::ExportOptions& options = *built;
  // Before the engine's threads.
  SignalWatch signals;
  Result<ExportReport> report = Internal("not run");
  {
    ExportProgressLine line(io, clock, "exporting", !json);
    report = exporting::RunExport(options, [&](const ExportProgress& progress) {
      line.Show(progress);
      return signals.Poll() == 0;
    });
  }
  if (!report.ok()) {
    int code = signals.caught() != 0 ? kExitPartial : ExitCodeFor(report.status().code());
    return FailWith(io, report.status(), code, json);
  }
  for (const exporting::FormatFailure& failure : report->failed) {
    io.err << "profctl: " << failure.format << ": " << PrintableLines(failure.error.message())
           << std::endl;
  }
  for (const std::string& dump : report->unfinished) Warning(io, dump + ": " + kUnfinished);
  WarnOfExport(io, *report);
  NoteClipped(io, *report);
  const bool damaged = report->damaged;
  if (damaged && !command.allow_damaged) {
    Warning(io, "the dump is damaged, and what is above is missing in the files; "
                "profctl verify DUMP shows more, but does not check operator files; "
                "--allow-damaged makes the exit code 0");
  }
  if (report->outputs.empty() && report->failed.empty()) {
    Warning(io, "no file was made: the dump has nothing of this selection for these formats; "
                "profctl show DUMP lists what it has");
  }
  if (json) {
    Json summary = {
        {"ok", report->failed.empty()}, {"damaged", damaged}, {"out", options.out_dir}};
    summary["dumps"] = options.dumps;
    summary.update(ToJson(*report));
    io.out << JsonText(summary, true) << std::endl;
  } else {
    PrintOutputs(io, *report, options.out_dir);
  }
  const bool complete = report->failed.empty() && (!damaged || command.allow_damaged);
  int code = complete ? kExitOk : kExitPartial;
  if (command.open) code = std::max(code, OpenInPerfetto(io, *report, &signals, json));
  return code;
}

}  // namespace profd::client
