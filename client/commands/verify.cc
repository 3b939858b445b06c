#include "client/commands/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "client/cli_message.h"
#include "client/commands/export_parse.h"
#include "client/commands/show_dump.h"
#include "client/json.h"
#include "client/render.h"
#include "client/session_view.h"
#include "dump/verify.h"

namespace profd::client {
namespace {

// On a terminal: how far it has come.
class ProgressLine {
 public:
  ProgressLine(const Io& io, bool wanted) : io_(io), on_(wanted && io.err_tty) {}
  ~ProgressLine() {
    if (shown_) io_.err << "\r\x1b[K" << std::flush;
  }
  bool Show(uint64_t done, uint64_t total) {
    const uint64_t percent = total == 0 ? 100 : done * 100 / total;
    if (!on_ || percent == last_) return true;
    last_ = percent;
    shown_ = true;
    io_.err << fmt::format("\rverifying {} of {}, {} %\x1b[K", FormatBytes(done),
                           FormatBytes(total), percent)
            << std::flush;
    return true;
  }

 private:
  const Io& io_;
  const bool on_;
  bool shown_ = false;
  uint64_t last_ = ~uint64_t{0};
};

// `file` as a label of this device or of the host has it. Files that lie beside the folders of data have their place in
// their names.
std::string LabelOf(const VerifyChannel& channel, std::string_view device, std::string_view file) {
  if (file.starts_with("host/") || file.starts_with("device_")) return std::string(file);
  return fmt::format("{}/{}", channel.device >= 0 ? device : "host", file);
}

// The same file of every device, or of every process, in one row.
std::vector<std::pair<std::string, VerifyChannel>> RowsOf(const VerifyReport& report, bool all) {
  std::vector<std::pair<std::string, VerifyChannel>> rows;
  std::map<std::string, size_t> index;
  for (const VerifyChannel& channel : report.channels) {
    const std::string label = all ? LabelOf(channel, fmt::format("npu{}", channel.device), channel.file)
                                  : LabelOf(channel, "npu*", FileKind(channel.file));
    auto [it, fresh] = index.try_emplace(label, rows.size());
    if (fresh) {
      rows.emplace_back(label, channel);
      continue;
    }
    VerifyChannel& row = rows[it->second].second;
    row.slices += channel.slices;
    row.bytes += channel.bytes;
    row.received += channel.received;
    row.missing += channel.missing;
    row.unexplained += channel.unexplained;
    row.judged = row.judged && channel.judged;
  }
  return rows;
}

void PrintChannels(const Io& io, const VerifyReport& report, bool all) {
  Table table(
      {"FILE", ">HZ", ">SLICES", ">BYTES", ">EXPECTED", ">RECEIVED", ">LOST", ">UNEXPLAINED"});
  for (const auto& [label, row] : RowsOf(report, all)) {
    if (!row.judged) {
      table.AddRow({label, "-", std::to_string(row.slices), FormatBytes(row.bytes), "-", "-", "-", "-"});
      continue;
    }
    table.AddRow(
        {label,
         row.hz > 0 ? fmt::format("{:g}", row.hz) : "-",
         std::to_string(row.slices),
         FormatBytes(row.bytes),
         std::to_string(row.expected()),
         std::to_string(row.received),
         {std::to_string(row.missing), row.missing > 0 ? Tone::kWarning : Tone::kPlain},
         {std::to_string(row.unexplained), row.unexplained > 0 ? Tone::kBad : Tone::kPlain}});
  }
  if (!table.empty()) table.Print(io.out, io.out_color(), "  ");
}

std::string Removed(const VerifyReport& report) {
  const ManifestOption& limit = report.storage_limit;
  return RemovedText(report.removed_records, report.removed_for_space,
                     limit.key.empty() ? "" : StorageLimitText(limit.value, limit.asked, limit.note));
}

std::string ChecksLine(const VerifyReport& report) {
  std::string done;
  std::string skipped;
  for (size_t i = 0; i < kVerifyChecks; ++i) {
    std::string& list = report.ran[i] ? done : skipped;
    list += (list.empty() ? "" : ", ") + std::string(ToString(static_cast<VerifyCheck>(i)));
  }
  std::string line = "checked: " + (done.empty() ? "nothing" : done);
  if (!skipped.empty()) line += "; nothing to check: " + skipped;
  return line;
}

void PrintReport(const Io& io, const VerifyReport& report, const VerifyOptions& options) {
  const bool quiet = options.quiet;
  if (!quiet || !report.ok()) {
    const bool running = report.state == DumpState::kRunning;
    const std::string verdict =
        !report.ok() ? Paint(CountText(report.problem_count, "problem"),
                             Tone::kBad, io.out_color()) +
                           fmt::format(", {}", ToString(report.state))
        : running ? Paint("running, consistent so far", Tone::kGood, io.out_color())
                  : Paint("valid", Tone::kGood, io.out_color()) +
                        fmt::format(", {}", ToString(report.state));
    io.out << Printable(report.name) << ": " << verdict
           << fmt::format(", {}, {}, {}\n", CountText(report.files, "file"),
                          FormatBytes(report.bytes), CountText(report.checksums, "checksum"));
  }
  if (!quiet) {
    PrintChannels(io, report, options.verbose);
    if (const std::string removed = Removed(report); !removed.empty()) io.out << "  removed: " << Printable(removed) << "\n";
    io.out << "  " << ChecksLine(report) << "\n";
    for (const std::string& note : report.notes) io.out << "  note: " << Printable(note) << "\n";
  }
  for (const VerifyProblem& problem : report.problems) {
    io.out << "  " << Paint(ToString(problem.check), Tone::kBad, io.out_color()) << ": "
           << Printable(problem.where) << ": " << Printable(problem.what) << "\n";
  }
  if (report.problem_count > report.problems.size()) {
    io.out << fmt::format("  and {} more\n", report.problem_count - report.problems.size());
  }
}

Json ToJson(const VerifyReport& report) {
  Json json = {{"dump", report.name},
               {"ok", report.ok()},
               {"state", ToString(report.state)},
               {"has_manifest", report.has_manifest},
               {"files", report.files},
               {"bytes", report.bytes},
               {"checksums", report.checksums},
               {"removed_records", report.removed_records},
               {"removed_for_space", report.removed_for_space},
               {"problem_count", report.problem_count}};
  json["checked"] = Json::array();
  for (size_t i = 0; i < kVerifyChecks; ++i) {
    if (report.ran[i]) json["checked"].push_back(ToString(static_cast<VerifyCheck>(i)));
  }
  json["problems"] = Json::array();
  for (const VerifyProblem& problem : report.problems) {
    json["problems"].push_back({{"check", ToString(problem.check)},
                                {"where", Printable(problem.where)},
                                {"what", Printable(problem.what)}});
  }
  json["channels"] = Json::array();
  for (const VerifyChannel& channel : report.channels) {
    json["channels"].push_back({{"collector", channel.collector},
                                {"device", channel.device},
                                {"channel", channel.channel},
                                {"file", Printable(channel.file)},
                                {"hz", channel.hz},
                                {"slices", channel.slices},
                                {"bytes", channel.bytes},
                                {"expected", channel.expected()},
                                {"received", channel.received},
                                {"lost", channel.missing},
                                {"lost_by_manifest", channel.lost},
                                {"unexplained", channel.unexplained},
                                {"judged", channel.judged}});
  }
  json["notes"] = report.notes;
  return json;
}

// A dump that is there and cannot be read is one that is not valid; what is not a dump, no directory
// (kFailedPrecondition) or not there at all was a mistake of the caller's.
int CodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kNotFound:
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
      return kExitNotFound;
    default:
      return kExitPartial;
  }
}

Result<VerifyReport> Verify(const Io& io, const std::string& path, bool progress) {
  RETURN_IF_ERROR(CheckIsDump(path));
  Result<DumpReader> reader = DumpReader::OpenPath(path);
  if (!reader.ok()) return WithFetchHint(reader.status(), {&path, 1});
  ProgressLine line(io, progress);
  Result<VerifyReport> report =
      VerifyDump(*reader, DirectoryName(path),
                 [&](uint64_t done, uint64_t total) { return line.Show(done, total); });
  if (!report.ok()) return report.status().Annotate(path);
  return report;
}

// What was not checked: among the problems, where its directory is one of many.
void PrintUnchecked(const Io& io, const std::string& name, const Status& status) {
  if (CodeOf(status) == kExitNotFound) {
    io.err << "profctl: verify: " << Printable(status.message()) << std::endl;
    return;
  }
  io.out << Printable(name) << ": " << Paint("cannot be read", Tone::kBad, io.out_color())
         << ", not checked\n  " << Paint("read", Tone::kBad, io.out_color()) << ": "
         << Printable(status.message());
  if (status.code() == StatusCode::kPermissionDenied) {
    io.out << "; its owner and root can read it, and profctl fetch brings a copy";
  }
  io.out << '\n';
}

Json UncheckedJson(const std::string& path, const Status& status) {
  const std::string message = Printable(status.message());
  Json json = {{"dump", Printable(DirectoryName(path))}, {"ok", false}, {"error", message}};
  if (CodeOf(status) == kExitNotFound) return json;
  json["problem_count"] = 1;
  json["problems"] = {{{"check", "read"}, {"where", Printable(path)}, {"what", message}}};
  return json;
}

}  // namespace

int RunVerify(const Io& io, const VerifyOptions& options, bool json) {
  int code = kExitOk;
  Json all = Json::array();
  std::vector<std::string> paths;
  for (const std::string& given : WithoutFiles(options.dumps)) {
    std::ranges::move(DumpsAt(given), std::back_inserter(paths));
  }
  for (const std::string& path : paths) {
    Result<VerifyReport> report = Verify(io, path, !json && !options.quiet);
    if (report.ok()) {
      if (!report->ok() && code == kExitOk) code = kExitPartial;
      if (json) {
        all.push_back(ToJson(*report));
      } else {
        PrintReport(io, *report, options);
      }
      continue;
    }
    // A mistake in the command line counts for more than a dump that is not valid.
    if (code != kExitNotFound) code = CodeOf(report.status());
    if (json) {
      all.push_back(UncheckedJson(path, report.status()));
      if (CodeOf(report.status()) != kExitNotFound) continue;
    }
    PrintUnchecked(io, DirectoryName(path), report.status());
  }
  if (json) io.out << JsonText({{"ok", code == kExitOk}, {"dumps", all}}, false) << "\n";
  return code;
}

}  // namespace profd::client
