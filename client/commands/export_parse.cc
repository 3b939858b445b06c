#include "client/commands/export_parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <span>
#include <system_error>

#include "base/clock.h"
#include "base/text.h"
#include "client/cli_message.h"
#include "client/parse.h"
#include "client/render.h"
#include "dump/manifest.h"
#include "export/table.h"

namespace profd::client {
namespace {

using exporting::DumpInfo;
using exporting::ExportOptions;

constexpr unsigned kMaxThreads = 64;
constexpr const char* kPerfettoFormat = "perfetto";
// Of those that have nothing of a selection.
constexpr size_t kMaxNamedDumps = 8;

constexpr std::string_view kDumpPrefix = "PROF_";
// What `profctl fetch` of many nodes writes beside its folders (docs/many-nodes.md).
constexpr std::string_view kFleetIndex = "fleet.json";

struct Contents {
  bool listed = false;  // a directory, and it may be read
  bool is_dump = false;
  bool is_run = false;  // several nodes' dumps: their folders may have any name
  std::vector<std::string> dumps;    // PROF_* directories in it
  std::vector<std::string> folders;  // other directories in it
};

Contents Look(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  Contents contents;
  contents.is_dump = fs::exists(fs::path(path) / "host", error) ||
                     fs::exists(fs::path(path) / std::string(kManifestFile), error);
  fs::directory_iterator it(path, error);
  contents.listed = !error;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("device_")) contents.is_dump = true;
    if (name == kFleetIndex) contents.is_run = true;
    // One that may not even be looked at counts: opening it reports why it cannot be read.
    std::error_code why;
    if (!it->is_directory(why) && why != std::errc::permission_denied) continue;
    if (name.starts_with(kDumpPrefix)) {
      contents.dumps.push_back(it->path());
    } else if (!name.starts_with('.')) {
      contents.folders.push_back(it->path());
    }
  }
  contents.is_dump = contents.is_dump && !contents.is_run;
  return contents;
}

// Of a directory that is not a dump: those in it, and those in its folders. A PROF_* directory may be a run of several
// processes, whose dumps are in it.
std::vector<std::string> DumpsIn(Contents contents) {
  for (const std::string& folder : contents.folders) {
    Contents inner = Look(folder);
    if (!inner.is_dump) std::ranges::move(inner.dumps, std::back_inserter(contents.dumps));
  }
  std::vector<std::string> dumps;
  for (std::string& found : contents.dumps) {
    Contents inner = Look(found);
    if (inner.is_dump || inner.dumps.empty()) inner.dumps = {std::move(found)};
    std::ranges::move(inner.dumps, std::back_inserter(dumps));
  }
  std::ranges::sort(dumps);
  return dumps;
}

void ParseTargets(const std::string& text, ExportOptions* options, std::vector<std::string>* problems) {
  const auto items = ReadFlag("--devices", ParseList(text), problems);
  if (!items) return;
  for (const std::string& item : *items) {
    if (item == "host") {
      options->devices.insert(-1);
      continue;
    }
    const auto devices = ReadFlag("--devices", ParseDevices(item), problems);
    if (devices) options->devices.insert(devices->begin(), devices->end());
  }
}

void ParseChannels(const std::string& text, ExportOptions* options, std::vector<std::string>* problems) {
  const auto items = ReadFlag("--channels", ParseList(text), problems);
  if (!items) return;
  for (const std::string& item : *items) {
    if (item == exporting::kEventsChannel || exporting::FindTable(item) != nullptr) {
      options->channels.insert(item);
      continue;
    }
    std::vector<std::string_view> names;
    for (const exporting::TableSpec& table : exporting::Tables()) names.push_back(table.name);
    names.push_back(exporting::kEventsChannel);
    problems->push_back(fmt::format("--channels: no channel is called \"{}\"; there are {}", item, fmt::join(names, ", ")));
  }
}

void ParseFormats(std::string_view flag, const std::string& text, ExportOptions* options, std::vector<std::string>* problems) {
  const auto items = ReadFlag(flag, ParseList(text), problems);
  if (!items) return;
  std::vector<std::string_view> known = exporting::FormatNames();
  for (const std::string& item : *items) {
    if (std::ranges::find(options->formats, item) != options->formats.end()) continue;
    if (std::ranges::find(known, item) != known.end()) {
      options->formats.push_back(item);
    } else {
      problems->push_back(fmt::format("{}: no format is called \"{}\"; there are {}", flag, item, fmt::join(known, ", ")));
    }
  }
}

// What the selection is held against.
struct DumpFacts {
  std::string name;
  DumpSpan span;
  std::set<int> devices;  // -1 = host
};

DumpFacts FactsOf(const DumpInfo& info) {
  DumpFacts facts{info.name, SpanOf(info), {}};
  for (const exporting::Place& place : info.places) {
    if (place.kind == exporting::Place::Kind::kDevice) facts.devices.insert(place.device);
    if (place.kind == exporting::Place::Kind::kHost) facts.devices.insert(-1);
  }
  return facts;
}

// Those of the requested ranks.
std::vector<DumpFacts> OpenDumps(const ExportCommand& command, ExportOptions* options, std::vector<std::string>* problems) {
  std::vector<exporting::Dump> opened;
  for (const std::string& given : WithoutFiles(command.dumps)) {
    if (Status is_dump = CheckIsDump(given); !is_dump.ok()) {
      problems->push_back(is_dump.message());
      continue;
    }
    for (const std::string& path : DumpsAt(given)) {
      Result<exporting::Dump> dump = exporting::Dump::Open(path);
      if (!dump.ok()) {
        problems->push_back(WithFetchHint(dump.status(), {&path, 1}).message());
        continue;
      }
      opened.push_back(std::move(*dump));
    }
  }
  exporting::ShareRanks(&opened);
  CheckRanks(opened, options->ranks, problems);
  std::vector<DumpFacts> facts;
  for (const exporting::Dump& dump : opened) {
    if (!dump.info().HasRankOf(options->ranks)) continue;
    options->dumps.push_back(dump.info().path);
    facts.push_back(FactsOf(dump.info()));
  }
  return facts;
}

// Of all dumps together.
DumpSpan SpanOfAll(const std::vector<DumpFacts>& dumps) {
  DumpSpan span;
  for (const DumpFacts& dump : dumps) {
    const DumpSpan& one = dump.span;
    if (one.start_ns > 0 && (span.start_ns == 0 || one.start_ns < span.start_ns)) {
      span.start_ns = one.start_ns;
    }
    span.end_ns = std::max(span.end_ns, one.end_ns);
  }
  return span;
}

bool HasDevices(const DumpFacts& dump, const ExportOptions& options) {
  return options.devices.empty() || std::ranges::any_of(options.devices, [&](int device) {
           return dump.devices.contains(device);
         });
}

// A dump without a time range may have what is requested.
bool HasTimes(const DumpFacts& dump, const ExportOptions& options) {
  const bool after = dump.span.end_ns > 0 && options.window.from_ns > dump.span.end_ns;
  const bool before = dump.span.start_ns > 0 && options.window.to_ns < dump.span.start_ns;
  return !after && !before;
}

std::string DevicesText(const DumpFacts& dump) {
  std::vector<std::string> names;
  for (int device : dump.devices) {
    if (device >= 0) names.push_back(std::to_string(device));
  }
  if (dump.devices.contains(-1)) names.emplace_back("host");
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string TimesText(const DumpSpan& span) {
  if (span.start_ns == 0) return fmt::format("ends at {}", FormatTime(span.end_ns));
  if (span.end_ns == 0) return fmt::format("begins at {}", FormatTime(span.start_ns));
  return fmt::format("lasts {}, from {} to {}", FormatSpan(span.end_ns - span.start_ns),
                     FormatTime(span.start_ns), FormatTime(span.end_ns));
}

std::string WindowText(const ExportCommand& command) {
  std::string text;
  if (command.from) text += "--from " + *command.from;
  if (command.to) text += (text.empty() ? "" : " ") + ("--to " + *command.to);
  return text;
}

// What was requested is well written, and no dump has any of it.
Status CheckSelection(const ExportCommand& command, const std::vector<DumpFacts>& dumps,
                      const ExportOptions& options) {
  auto has_devices = [&](const DumpFacts& dump) { return HasDevices(dump, options); };
  auto has_times = [&](const DumpFacts& dump) { return HasTimes(dump, options); };
  if (std::ranges::any_of(dumps, [&](const auto& dump) {
        return has_devices(dump) && has_times(dump);
      })) {
    return {};
  }
  // A reason that explains it alone is reported alone.
  const bool devices = std::ranges::any_of(dumps, has_devices);
  const bool times = std::ranges::any_of(dumps, has_times);
  std::string text;
  for (const DumpFacts& dump : std::span(dumps).first(std::min(dumps.size(), kMaxNamedDumps))) {
    if (!has_devices(dump) && (!devices || times)) {
      text += fmt::format("--devices {}: none of these is in {}; its devices are {}\n",
                          *command.devices, dump.name, DevicesText(dump));
    }
    if (!has_times(dump) && (!times || devices)) {
      text += fmt::format("{}: nothing of {} is in there; it {}\n", WindowText(command), dump.name,
                          TimesText(dump.span));
    }
  }
  if (dumps.size() > kMaxNamedDumps) {
    text += fmt::format("nor is it in the other {} dumps\n", dumps.size() - kMaxNamedDumps);
  }
  return InvalidArgument(text + "nothing was exported");
}

void ResolveTime(const char* flag, const std::optional<std::string>& text, const DumpSpan& span,
                 int64_t* ns, std::vector<std::string>* problems) {
  const auto point = ReadFlag(flag, text, ParseTimePoint, problems);
  if (!point) return;
  using Kind = TimePoint::Kind;
  int64_t base = point->kind == Kind::kFromStart ? span.start_ns : span.end_ns;
  if (point->kind != Kind::kAbsolute && base == 0) {
    problems->push_back(fmt::format("{} {}: no dump records when it {}; use an absolute time", flag,
                                    *text, point->kind == Kind::kFromStart ? "began" : "ended"));
    return;
  }
  if (point->kind == Kind::kAbsolute) {
    *ns = point->ns;
  } else if (point->kind == Kind::kFromEnd) {
    *ns = base - point->ns;
  } else if (__builtin_add_overflow(base, point->ns, ns)) {
    *ns = INT64_MAX;
  }
}

void CheckOut(const ExportOptions& options, bool force, std::vector<std::string>* problems) {
  std::error_code error;
  auto status = std::filesystem::status(options.out_dir, error);
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_directory(status)) {
    problems->push_back("--out " + options.out_dir + ": not a directory");
  } else if (!force && !std::filesystem::is_empty(options.out_dir, error)) {
    problems->push_back(options.out_dir +
                        " is not empty: use --force to add files to it, or another --out");
  }
}

}  // namespace

void CheckFormats(std::string_view flag, const std::string& text, std::vector<std::string>* problems) {
  ExportOptions ignored;
  ParseFormats(flag, text, &ignored, problems);
}

DumpSpan SpanOf(const DumpInfo& dump) {
  DumpSpan span;
  if (dump.manifest) span = {dump.manifest->start_wall_ns, dump.manifest->end_wall_ns};
  // The manifest beside files of the vendor's profiler is written before the session has ended.
  const bool without_start = span.start_ns <= 0;
  const bool without_end = span.end_ns <= 0;
  for (const exporting::Place& place : dump.places) {
    constexpr int64_t kMaxUs = INT64_MAX / 1000;
    int64_t start = std::min(place.clock.begin_us, kMaxUs) * 1000;
    int64_t end = std::min(place.clock.end_us, kMaxUs) * 1000;
    if (without_start && start > 0 && (span.start_ns == 0 || start < span.start_ns)) {
      span.start_ns = start;
    }
    if (without_end) span.end_ns = std::max(span.end_ns, end);
  }
  return span;
}

std::vector<std::string> DumpsAt(const std::string& path) {
  Contents contents = Look(path);
  if (contents.is_dump) return {path};
  std::vector<std::string> dumps = DumpsIn(std::move(contents));
  return dumps.empty() ? std::vector<std::string>{path} : dumps;
}

std::vector<std::string> WithoutFiles(const std::vector<std::string>& given) {
  std::vector<std::string> kept;
  std::ranges::copy_if(given, std::back_inserter(kept), [](const std::string& path) {
    std::error_code ignored;
    return !std::filesystem::is_regular_file(path, ignored);
  });
  return kept.empty() ? given : kept;
}

std::string DirectoryName(const std::string& path) {
  const std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

Status CheckIsDump(const std::string& path) {
  if (DirectoryName(path).starts_with(kDumpPrefix)) return {};
  Contents contents = Look(path);
  if (!contents.listed || contents.is_dump || !DumpsIn(std::move(contents)).empty()) return {};
  return InvalidArgument(
      fmt::format("{}: not a profile dump: no manifest, no host/, no device_<N>/, and no PROF_* "
                  "directory in it or in a directory of it; name a PROF_* directory, or the one they "
                  "are in",
                  path));
}

Result<ExportOptions> BuildExport(const ExportCommand& command, const std::string& directory, std::vector<std::string>* problems) {
  ExportOptions options;
  ParseFormats("--format", command.format.value_or(command.open ? kPerfettoFormat : "csv"), &options, problems);
  const bool for_ui = std::ranges::find(options.formats, kPerfettoFormat) != options.formats.end();
  if (command.open && !for_ui) problems->push_back(fmt::format("--open is for --format {}", kPerfettoFormat));
  if (command.devices) ParseTargets(*command.devices, &options, problems);
  if (command.channels) ParseChannels(*command.channels, &options, problems);
  if (command.threads && (!ParseNumber(*command.threads, &options.threads) ||
                          options.threads == 0 || options.threads > kMaxThreads)) {
    problems->push_back(
        fmt::format("--threads \"{}\": a number from 1 to {}", *command.threads, kMaxThreads));
  }
  options.gzip = command.gzip;
  const auto is_one_of = [problems](std::string_view name, const std::optional<std::string>& word,
                                    std::initializer_list<std::string_view> words) {
    if (!word || std::ranges::find(words, *word) != words.end()) return;
    problems->push_back(fmt::format("{} \"{}\": must be {}", name, *word, fmt::join(words, " or ")));
  };
  is_one_of("--clock", command.clock, {"all", "start"});
  is_one_of("--compat", command.compat, {"msprof"});
  is_one_of("--names", command.names, {"legacy"});
  options.start_clock = command.clock == "start";
  options.compat_msprof = command.compat.has_value();
  options.legacy_names = command.names.has_value();
  if (command.gzip && std::ranges::find(options.formats, "perfetto") == options.formats.end()) {
    problems->push_back("--gzip is for --format perfetto");
  }
  ParseCuts(command, &options, problems);
  const std::vector<DumpFacts> dumps = OpenDumps(command, &options, problems);
  const DumpSpan span = SpanOfAll(dumps);
  ResolveTime("--from", command.from, span, &options.window.from_ns, problems);
  ResolveTime("--to", command.to, span, &options.window.to_ns, problems);
  if (command.from && command.to && options.window.from_ns > options.window.to_ns) {
    problems->push_back("--from is after --to");
  }
  if (!dumps.empty() || command.out) {
    options.out_dir = command.out.value_or(dumps.empty() ? "" : dumps.front().name + ".export");
    if (!options.out_dir.starts_with('/') && !directory.empty()) {
      options.out_dir = directory + "/" + options.out_dir;
    }
    CheckOut(options, command.force, problems);
  }
  RETURN_IF_ERROR(ResolveSteps(command, &options, problems));
  if (problems->empty()) RETURN_IF_ERROR(CheckSelection(command, dumps, options));
  return options;
}

}  // namespace profd::client
