// The renderer of `profctl show DUMP`.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "client/commands/export.h"
#include "client/commands/show_dump.h"
#include "client/render.h"
#include "client/sparkline.h"

namespace profd::client {
namespace {

using exporting::ChannelReport;
using exporting::DumpSummary;
using exporting::SeriesSummary;

constexpr size_t kMaxLossLines = 20;
constexpr size_t kMaxDurationLines = 24;

struct ChannelRow {
  std::vector<int32_t> devices;
  double hz = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint64_t bad = 0;
  uint64_t lost = 0;
  std::set<std::string> states;
};

std::map<std::string, ChannelRow> ChannelRows(const DumpPicture& picture) {
  std::map<std::string, ChannelRow> rows;
  for (const ChannelReport& channel : picture.report.channels) {
    ChannelRow& row = rows[FileKind(channel.file)];
    row.devices.push_back(channel.device);
    row.records += channel.records;
    row.bytes += channel.bytes;
    row.bad += channel.bad_records;
  }
  if (!picture.info.manifest) return rows;
  const std::map<std::string, ChannelRow> read = rows;
  for (const ManifestChannel& channel : picture.info.manifest->channels) {
    // Collectors of the host may write several files, which the manifest does not name.
    std::string file = channel.file.empty() ? channel.collector : FileKind(channel.file);
    if (channel.file.empty() && rows.contains(file + ".data")) file += ".data";
    ChannelRow& row = rows[file];
    row.devices.push_back(channel.device);
    row.hz = std::max(row.hz, channel.hz_effective);
    row.states.insert(channel.state);
    if (!read.contains(file)) {  // operators, and what shares a file: as profd counted them
      row.records += channel.records;
      row.bytes += channel.bytes;
    }
    for (const ManifestLoss& loss : channel.dropped) row.lost += loss.records;
  }
  return rows;
}

void PrintHead(std::ostream& out, const DumpPicture& picture, const PictureStyle& style) {
  const exporting::DumpInfo& info = picture.info;
  auto line = [&](std::string_view name, const std::string& text) {
    out << Paint(fmt::format("{:<9}", name), Tone::kFaint, style.color) << text << '\n';
  };
  out << Printable(info.name) << '\n';
  std::string who;
  if (!info.job_id.empty()) who += "job " + info.job_id + "  ";
  if (info.rank) who += fmt::format("rank {}  ", *info.rank);
  if (!info.hostname.empty()) who += "node " + info.hostname + "  ";
  if (info.pid > 0) who += fmt::format("pid {}", info.pid);
  line("of", Printable(who));
  if (info.manifest) {
    const Manifest& manifest = *info.manifest;
    std::string state(ToString(manifest.state));
    if (!manifest.reason.empty()) state += ": " + manifest.reason;
    Tone tone = manifest.state == DumpState::kDone ? Tone::kGood : Tone::kWarning;
    line("state", Paint(Printable(state), tone, style.color));
    std::string segment;
    if (manifest.segment > 1 || !manifest.continues.empty()) segment = fmt::format("  segment {}", manifest.segment);
    if (!manifest.continues.empty()) segment += ", continues " + manifest.continues;
    line("session", Printable(manifest.session_id + segment));
  } else {
    const bool ours = std::ranges::any_of(info.places, [](const auto& place) { return place.kind == exporting::Place::Kind::kOwn; });
    line("state", ours ? "its manifest is missing or unreadable: run `profctl verify` for details"
                       : "written by the vendor's collector");
  }
  DumpSpan span = SpanOf(info);
  if (span.start_ns == 0) span.start_ns = picture.summary.first_ns;
  if (span.end_ns == 0) span.end_ns = picture.summary.last_ns;
  if (span.end_ns >= span.start_ns) {
    line("time", fmt::format("{} to {}  {}", FormatTime(span.start_ns), FormatTime(span.end_ns), FormatSpan(span.end_ns - span.start_ns)));
  }
  std::vector<int32_t> devices;
  for (const exporting::Place& place : info.places) {
    if (place.kind == exporting::Place::Kind::kDevice) devices.push_back(place.device);
  }
  line("devices", devices.empty() ? "none" : fmt::format("{}  chip {}", FormatDevices(devices), info.chip));
  line("size", FormatBytes(info.bytes));
}

void PrintChannels(std::ostream& out, const DumpPicture& picture, const PictureStyle& style) {
  Table table({"CHANNEL", "DEVICES", ">RATE", ">RECORDS", ">SIZE", ">LOST", ">BAD", "STATE"});
  for (const auto& [file, row] : ChannelRows(picture)) {
    std::string states;
    for (const std::string& state : row.states) states += (states.empty() ? "" : ", ") + state;
    table.AddRow({file,
                  FormatDevices(row.devices),
                  row.hz > 0 ? FormatHz(row.hz) : "-",
                  std::to_string(row.records),
                  FormatBytes(row.bytes),
                  {std::to_string(row.lost), row.lost > 0 ? Tone::kWarning : Tone::kPlain},
                  {std::to_string(row.bad), row.bad > 0 ? Tone::kBad : Tone::kPlain},
                  OrDash(states)});
  }
  out << '\n';
  if (table.empty()) {
    out << "no data\n";
  } else {
    table.Print(out, style.color);
  }
}

void PrintLosses(std::ostream& out, const DumpPicture& picture, const PictureStyle& style) {
  if (!picture.info.manifest) return;
  size_t lines = 0;
  size_t more = 0;
  for (const ManifestChannel& channel : picture.info.manifest->channels) {
    for (const ManifestLoss& loss : channel.dropped) {
      if (lines == kMaxLossLines) {
        ++more;
        continue;
      }
      if (lines++ == 0) out << '\n';
      std::string place = PlaceName(channel.device);
      out << Paint("lost", Tone::kWarning, style.color) << ' '
          << Printable(IsNotRead(loss.reason)
                           ? fmt::format("{} {}: {} {}", place, channel.collector, CountText(loss.records, "sample"),
                                         loss.reason == LossReason::kLate ? "missed (collector late)" : "left out (profd over its budget)")
                           : fmt::format("{} {}: {}, {} ({})", place, channel.collector,
                                         CountText(loss.records, "record"), FormatBytes(loss.bytes), ToString(loss.reason)))
          << '\n';
    }
  }
  if (more > 0) out << fmt::format("     and {} more\n", more);
}

// Steps first, then the ranges that took the longest in all.
void PrintDurations(std::ostream& out, const DumpSummary& summary, const PictureStyle& style) {
  const auto& groups = summary.durations.groups();
  // A map's key and value.
  using Group = std::pair<const exporting::DurationStats::Key*, const exporting::Durations*>;
  std::vector<Group> shown;
  const bool host_steps = summary.events[static_cast<size_t>(exporting::EventKind::kStep)] > 0;
  for (const auto& [key, durations] : groups) {
    if (host_steps && key.kind == exporting::EventKind::kDeviceStep && !style.all) continue;
    shown.emplace_back(&key, &durations);
  }
  if (shown.empty()) return;
  auto total = [](const Group& group) {
    const bool range = group.first->kind == exporting::EventKind::kRange;
    return range ? group.second->mean() * static_cast<double>(group.second->count()) : 1e300;
  };
  std::ranges::stable_sort(shown, std::greater(), total);
  const size_t lines = style.all ? shown.size() : std::min(shown.size(), kMaxDurationLines);
  auto length = [](double ns) { return FormatQuantity(ns / 1e9, "seconds"); };
  Table table({"RANK", "STEP OR RANGE", ">COUNT", ">MEAN", ">P50", ">P99", ">MAX"});
  for (const auto& [key, durations] : std::span(shown).first(lines)) {
    std::string name = key->kind == exporting::EventKind::kRange
                           ? key->name
                           : fmt::format("{}s", exporting::DurationKind(key->kind));
    if (key->device >= 0) name += fmt::format(" of npu{}", key->device);
    table.AddRow({key->rank ? std::to_string(*key->rank) : "-", Printable(name),
                  std::to_string(durations->count()), length(durations->mean()),
                  length(static_cast<double>(durations->Percentile(50))),
                  length(static_cast<double>(durations->Percentile(99))),
                  length(static_cast<double>(durations->max()))});
  }
  out << '\n';
  table.Print(out, style.color);
  if (lines < shown.size()) {
    out << fmt::format("and {} more (--all, --json, profctl export)\n", shown.size() - lines);
  }
}

}  // namespace

std::string FileKind(const std::string& file) {
  size_t digits = std::min(file.find_first_not_of("0123456789"), file.size());
  return digits > 0 && digits < file.size() && file[digits] == '-' ? "*" + file.substr(digits) : file;
}

void PrintPicture(std::ostream& out, const DumpPicture& picture, const PictureStyle& style) {
  PrintHead(out, picture, style);
  const auto& events = picture.summary.events;
  auto count = [&](exporting::EventKind kind) { return events[static_cast<size_t>(kind)]; };
  using enum exporting::EventKind;
  // Steps of devices are those of their processes once more.
  const uint64_t steps = count(kStep) > 0 ? count(kStep) : count(kDeviceStep);
  uint64_t marks = count(kMark);
  if (marks + count(kRange) + steps + count(kIteration) > 0) {
    out << Paint("events   ", Tone::kFaint, style.color)
        << fmt::format("{}, {}, {}, {}\n", CountText(marks, "mark"), CountText(count(kRange), "range"), CountText(steps, "step"),
                       CountText(count(kIteration), "iteration"));
  }
  PrintChannels(out, picture, style);
  PrintLosses(out, picture, style);
  PrintDurations(out, picture.summary, style);
  PrintSteps(out, picture.summary.steps, style);
  PrintOperators(out, picture.summary, style);
  PrintSeries(out, picture, style);
}

Json ToJson(const DumpPicture& picture) {
  const exporting::DumpInfo& info = picture.info;
  DumpSpan span = SpanOf(info);
  Json json = {{"dump", info.name},     {"path", info.path},
               {"job_id", info.job_id}, {"rank", info.rank ? Json(*info.rank) : Json(nullptr)},
               {"node", info.hostname}, {"pid", info.pid},
               {"chip", info.chip},     {"start_ns", span.start_ns},
               {"end_ns", span.end_ns}, {"bytes", info.bytes}};
  json["session_id"] = info.manifest ? Json(info.manifest->session_id) : Json(nullptr);
  json["state"] = info.manifest ? Json(ToString(info.manifest->state)) : Json(nullptr);
  json["segment"] = info.manifest ? Json(info.manifest->segment) : Json(nullptr);
  json["devices"] = Json::array();
  for (const exporting::Place& place : info.places) {
    if (place.kind == exporting::Place::Kind::kDevice) json["devices"].push_back(place.device);
  }
  json["files"] = Json::array();
  for (const auto& [file, row] : ChannelRows(picture)) {
    json["files"].push_back({{"file", file},
                             {"devices", row.devices.size()},
                             {"hz", row.hz},
                             {"records", row.records},
                             {"bytes", row.bytes},
                             {"lost_records", row.lost},
                             {"bad_records", row.bad}});
  }
  json["series"] = Json::array();
  for (const SeriesSummary& series : picture.summary.series) {
    json["series"].push_back(SeriesJson(series, picture.summary));
  }
  json["durations"] = Json::array();
  for (const auto& [key, durations] : picture.summary.durations.groups()) {
    json["durations"].push_back({{"rank", key.rank ? Json(*key.rank) : Json(nullptr)},
                                 {"device", key.device},
                                 {"kind", exporting::DurationKind(key.kind)},
                                 {"name", key.name},
                                 {"count", durations.count()},
                                 {"mean_ns", durations.mean()},
                                 {"p50_ns", durations.Percentile(50)},
                                 {"p99_ns", durations.Percentile(99)},
                                 {"max_ns", durations.max()}});
  }
  json.update(OperatorsJson(picture.summary));
  json["steps"] = StepsJson(picture.summary.steps);
  json["left_out_series"] = picture.summary.left_out_series;
  json["problems"] = ToJson(picture.report)["problems"];
  return json;
}

}  // namespace profd::client
