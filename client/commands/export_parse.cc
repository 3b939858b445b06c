#include "client/commands/export_parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/text.h"
#include "client/parse.h"
#include "dump/manifest.h"
#include "export/table.h"

namespace profd::client {
namespace {

using exporting::DumpInfo;
using exporting::ExportOptions;

constexpr unsigned kMaxThreads = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Status BadTime(std::string_view text) {
  return InvalidArgument(fmt::format(
      "\"{}\" is no point in time: 2026-01-01T00:00:00Z, seconds since 1970, +10s after "
      "the start or -5s before the end",
      text));
}

// Takes `count` digits and the character behind them, if one is wanted.
bool TakeDigits(std::string_view* text, size_t count, int* value, char behind = 0) {
  if (text->size() < count || !std::ranges::all_of(text->substr(0, count), IsDigit)) return false;
  if (!ParseNumber(text->substr(0, count), value)) return false;
  text->remove_prefix(count);
  if (behind == 0) return true;
  if (text->empty() || text->front() != behind) return false;
  text->remove_prefix(1);
  return true;
}

// "", "Z", "+08:00"; nothing = local time.
bool TakeZone(std::string_view text, bool* local, int64_t* offset_s) {
  *local = text.empty();
  *offset_s = 0;
  if (text.empty() || text == "Z" || text == "z") return true;
  int sign = text.front() == '-' ? -1 : 1;
  if (text.front() != '-' && text.front() != '+') return false;
  text.remove_prefix(1);
  int hours = 0, minutes = 0;
  if (!TakeDigits(&text, 2, &hours, ':') || !TakeDigits(&text, 2, &minutes) || !text.empty()) {
    return false;
  }
  *offset_s = sign * (hours * 3600 + minutes * 60);
  return hours < 24 && minutes < 60;
}

int64_t TakeFraction(std::string_view* text) {
  if (text->empty() || text->front() != '.') return 0;
  text->remove_prefix(1);
  int64_t ns = 0;
  for (int64_t digit = 100'000'000; !text->empty() && IsDigit(text->front());
       digit /= 10, text->remove_prefix(1)) {
    ns += digit * (text->front() - '0');
  }
  return ns;
}

std::optional<int64_t> ParseDate(std::string_view text) {
  std::tm tm{};
  if (!TakeDigits(&text, 4, &tm.tm_year, '-') || !TakeDigits(&text, 2, &tm.tm_mon, '-') ||
      !TakeDigits(&text, 2, &tm.tm_mday)) {
    return std::nullopt;
  }
  if (text.empty() || (text.front() != 'T' && text.front() != ' ')) return std::nullopt;
  text.remove_prefix(1);
  if (!TakeDigits(&text, 2, &tm.tm_hour, ':') || !TakeDigits(&text, 2, &tm.tm_min, ':') ||
      !TakeDigits(&text, 2, &tm.tm_sec)) {
    return std::nullopt;
  }
  int64_t fraction = TakeFraction(&text);
  bool local = false;
  int64_t offset_s = 0;
  if (!TakeZone(text, &local, &offset_s)) return std::nullopt;
  if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 ||
      tm.tm_min > 59 || tm.tm_sec > 60 || tm.tm_year < 1970 || tm.tm_year > 2200) {
    return std::nullopt;
  }
  tm.tm_year -= 1900;
  --tm.tm_mon;
  tm.tm_isdst = -1;
  int64_t seconds = local ? std::mktime(&tm) : ::timegm(&tm) - offset_s;
  return seconds * kNsPerSecond + fraction;
}

// Seconds, ms, us or ns since 1970, whichever gives a year people live in.
std::optional<int64_t> ParseEpoch(std::string_view text) {
  double value = 0;
  int64_t whole = 0;
  if (ParseNumber(text, &whole) && whole >= 0) {
    // Each up to the year 2255.
    if (whole < 9'000'000'000) return whole * kNsPerSecond;
    if (whole < 9'000'000'000'000) return whole * kNsPerMs;
    if (whole < 9'000'000'000'000'000) return whole * 1000;
    return whole;
  }
  if (!ParseNumber(text, &value) || !(value >= 0 && value < 9e9)) return std::nullopt;
  // Its decimals as they are written.
  size_t dot = text.find('.');
  if (dot == std::string_view::npos || !ParseNumber(text.substr(0, dot), &whole)) {
    return std::nullopt;
  }
  std::string_view fraction = text.substr(dot);
  int64_t ns = TakeFraction(&fraction);
  if (!fraction.empty()) return std::nullopt;
  return whole * kNsPerSecond + ns;
}

void ParseTargets(const std::string& text, ExportOptions* options,
                  std::vector<std::string>* problems) {
  auto items = ParseList(text);
  if (!items.ok()) return problems->push_back("--devices " + items.status().message());
  for (const std::string& item : *items) {
    if (item == "host") {
      options->devices.insert(-1);
      continue;
    }
    auto devices = ParseDevices(item);
    if (!devices.ok()) {
      problems->push_back("--devices " + devices.status().message());
      continue;
    }
    for (uint32_t device : *devices) options->devices.insert(static_cast<int>(device));
  }
}

void ParseChannels(const std::string& text, ExportOptions* options,
                   std::vector<std::string>* problems) {
  auto items = ParseList(text);
  if (!items.ok()) return problems->push_back("--channels " + items.status().message());
  for (const std::string& item : *items) {
    if (item == exporting::kEventsChannel || exporting::FindTable(item) != nullptr) {
      options->channels.insert(item);
      continue;
    }
    std::vector<std::string_view> names;
    for (const exporting::TableSpec& table : exporting::Tables()) names.push_back(table.name);
    names.push_back(exporting::kEventsChannel);
    problems->push_back(fmt::format("--channels: no channel is called \"{}\"; there are {}", item,
                                    fmt::join(names, ", ")));
  }
}

void ParseFormats(const std::string& text, ExportOptions* options,
                  std::vector<std::string>* problems) {
  auto items = ParseList(text);
  if (!items.ok()) return problems->push_back("--format " + items.status().message());
  std::vector<std::string_view> known = exporting::FormatNames();
  for (const std::string& item : *items) {
    if (std::ranges::find(options->formats, item) != options->formats.end()) continue;
    if (std::ranges::find(known, item) != known.end()) {
      options->formats.push_back(item);
    } else {
      problems->push_back(fmt::format("--format: no format is called \"{}\"; there are {}", item,
                                      fmt::join(known, ", ")));
    }
  }
}

// Of all dumps together.
DumpSpan OpenDumps(const ExportCommand& command, ExportOptions* options, std::string* first,
                   std::vector<std::string>* problems) {
  DumpSpan span;
  for (const std::string& given : command.dumps) {
    for (const std::string& path : DumpsAt(given)) {
      Result<exporting::Dump> dump = exporting::Dump::Open(path);
      if (!dump.ok()) {
        problems->push_back(dump.status().message());
        continue;
      }
      options->dumps.push_back(path);
      if (first->empty()) *first = dump->info().name;
      DumpSpan one = SpanOf(dump->info());
      if (one.start_ns > 0 && (span.start_ns == 0 || one.start_ns < span.start_ns)) {
        span.start_ns = one.start_ns;
      }
      span.end_ns = std::max(span.end_ns, one.end_ns);
    }
  }
  return span;
}

void ResolveTime(const char* flag, const std::optional<std::string>& text, const DumpSpan& span,
                 int64_t* ns, std::vector<std::string>* problems) {
  if (!text) return;
  Result<TimePoint> point = ParseTimePoint(*text);
  if (!point.ok()) return problems->push_back(flag + (" " + point.status().message()));
  using Kind = TimePoint::Kind;
  int64_t base = point->kind == Kind::kFromStart ? span.start_ns : span.end_ns;
  if (point->kind != Kind::kAbsolute && base == 0) {
    problems->push_back(fmt::format("{} {}: no dump says when it {}; give the time itself", flag,
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
    problems->push_back("--out " + options.out_dir + ": is no directory");
  } else if (!force && !std::filesystem::is_empty(options.out_dir, error)) {
    problems->push_back(options.out_dir +
                        " is not empty: --force writes beside what is there, --out elsewhere");
  }
}

}  // namespace

Result<TimePoint> ParseTimePoint(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return BadTime(text);
  if (text.front() == '+' || text.front() == '-') {
    auto ms = ParseDurationMs(text.substr(1));
    bool zero = text.substr(1) == "0s" || text.substr(1) == "0";
    if (!ms.ok() && !zero) return BadTime(text);
    auto kind = text.front() == '+' ? TimePoint::Kind::kFromStart : TimePoint::Kind::kFromEnd;
    return TimePoint{kind, zero ? 0 : static_cast<int64_t>(*ms) * kNsPerMs};
  }
  auto ns = ParseDate(text);
  if (!ns) ns = ParseEpoch(text);
  if (!ns) return BadTime(text);
  return TimePoint{TimePoint::Kind::kAbsolute, *ns};
}

DumpSpan SpanOf(const DumpInfo& dump) {
  DumpSpan span;
  if (dump.manifest) span = {dump.manifest->start_wall_ns, dump.manifest->end_wall_ns};
  for (const exporting::Place& place : dump.places) {
    constexpr int64_t kMaxUs = INT64_MAX / 1000;
    int64_t start = std::min(place.clock.begin_us, kMaxUs) * 1000;
    int64_t end = std::min(place.clock.end_us, kMaxUs) * 1000;
    if (!dump.manifest && start > 0 && (span.start_ns == 0 || start < span.start_ns)) {
      span.start_ns = start;
    }
    if (!dump.manifest) span.end_ns = std::max(span.end_ns, end);
  }
  return span;
}

std::vector<std::string> DumpsAt(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(fs::path(path) / "host", error) ||
      fs::exists(fs::path(path) / std::string(kManifestFile), error)) {
    return {path};
  }
  std::vector<std::string> found;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("device_")) return {path};
    std::error_code ignored;
    if (name.starts_with("PROF_") && it->is_directory(ignored)) found.push_back(it->path());
  }
  std::ranges::sort(found);
  return found.empty() ? std::vector<std::string>{path} : found;
}

ExportOptions BuildExport(const ExportCommand& command, const std::string& directory,
                          std::vector<std::string>* problems) {
  ExportOptions options;
  ParseFormats(command.format.value_or("csv"), &options, problems);
  if (command.devices) ParseTargets(*command.devices, &options, problems);
  if (command.channels) ParseChannels(*command.channels, &options, problems);
  if (command.threads && (!ParseNumber(*command.threads, &options.threads) ||
                          options.threads == 0 || options.threads > kMaxThreads)) {
    problems->push_back(
        fmt::format("--threads \"{}\": a number from 1 to {}", *command.threads, kMaxThreads));
  }
  options.gzip = command.gzip;
  if (command.gzip && std::ranges::find(options.formats, "perfetto") == options.formats.end()) {
    problems->push_back("--gzip is for --format perfetto");
  }
  std::string first;
  DumpSpan span = OpenDumps(command, &options, &first, problems);
  ResolveTime("--from", command.from, span, &options.window.from_ns, problems);
  ResolveTime("--to", command.to, span, &options.window.to_ns, problems);
  if (command.from && command.to && options.window.from_ns > options.window.to_ns) {
    problems->push_back("--from is after --to");
  }
  if (!first.empty() || command.out) {
    options.out_dir = command.out.value_or(first + ".export");
    if (!options.out_dir.starts_with('/') && !directory.empty()) {
      options.out_dir = directory + "/" + options.out_dir;
    }
    CheckOut(options, command.force, problems);
  }
  return options;
}

}  // namespace profd::client
