// The renderer of `profctl show DUMP`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "client/commands/export.h"
#include "client/commands/show_dump.h"
#include "client/render.h"
#include "client/sparkline.h"
#include "export/rows/metric_families.h"

namespace profd::client {
namespace {

using exporting::ChannelReport;
using exporting::DumpSummary;
using exporting::Label;
using exporting::SeriesSummary;

// The four HBMs of a device, read and written.
constexpr size_t kSeriesPerDevice = 8;
constexpr size_t kMaxName = 34;
constexpr size_t kJsonCourse = 60;
constexpr size_t kMaxLossLines = 20;
constexpr size_t kMaxDurationLines = 24;

// Files of processes together: "*-CpuUsage.data".
std::string FileKind(const std::string& file) {
  size_t digits = std::min(file.find_first_not_of("0123456789"), file.size());
  return digits > 0 && digits < file.size() && file[digits] == '-' ? "*" + file.substr(digits) : file;
}

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
    std::string segment =
        manifest.segment > 1 || !manifest.continues.empty()
            ? fmt::format("  segment {}, continues {}", manifest.segment, manifest.continues)
            : "";
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
                  states.empty() ? "-" : states});
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
      std::string place = channel.device < 0 ? "host" : fmt::format("npu{}", channel.device);
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

std::string SeriesName(const SeriesSummary& series) {
  std::string_view name = series.metric;
  for (std::string_view prefix : {"atlas_npu_", "atlas_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  if (series.rate) name.remove_suffix(std::string_view("_total").size());
  // A value has its unit.
  std::string_view unit = exporting::UnitOf(name);
  if (unit == "packets_per_second") unit = "per_second";
  if (!unit.empty() && unit != "packets" && !(series.rate && unit == "bytes")) {
    name.remove_suffix(unit.size() + 1);
  }
  // The heading has it.
  std::string_view table = exporting::TableOf(series.table).name;
  if (name.size() > table.size() && name.starts_with(table) && name[table.size()] == '_') {
    name.remove_prefix(table.size() + 1);
  }
  if (name.starts_with("network_port_")) name.remove_prefix(13);
  std::string text(name);
  for (const Label& label : series.labels) {
    bool number = label.value.empty() || label.value.find_first_not_of("-0123456789") == std::string::npos;
    if (label.value == table) continue;
    text += ' ' + (number ? label.key + '=' + label.value : label.value);
  }
  if (text.size() > kMaxName) text = text.substr(0, kMaxName - 2) + "..";
  return Printable(text);
}

// Of PCIe only the averages: its minima and maxima say the same thrice.
bool ByDefault(const SeriesSummary& series) {
  return std::ranges::none_of(series.labels, [](const Label& label) {
    return label.key == "stat" && label.value != "avg";
  });
}

struct Shown {
  std::vector<const SeriesSummary*> series;
  size_t left_out = 0;
};

// How many series of one channel and device: the picture of a complete node is as long as that of one
// device.
size_t SeriesPerDevice(const DumpSummary& summary) {
  std::set<int> devices;
  for (const SeriesSummary& series : summary.series) {
    if (series.device >= 0) devices.insert(series.device);
  }
  if (devices.size() <= 2) return kSeriesPerDevice;
  return devices.size() <= 4 ? 2 : 1;
}


// The busiest of one metric stand for the channel: traffic where it has any, else the first.
void Shorten(Shown* shown, size_t most) {
  if (shown->series.size() <= most) return;
  auto traffic = std::ranges::find_if(shown->series, [](const SeriesSummary* series) {
    return series->metric.find("_bandwidth_bytes_per_second") != std::string::npos;
  });
  const std::string metric =
      (traffic == shown->series.end() ? shown->series.front() : *traffic)->metric;
  std::ranges::stable_sort(shown->series, [&](const SeriesSummary* a, const SeriesSummary* b) {
    if ((a->metric == metric) != (b->metric == metric)) return a->metric == metric;
    const auto mean = [](const SeriesSummary* s) { return s->sum / static_cast<double>(std::max<uint64_t>(s->count, 1)); };
    return a->metric == metric && mean(a) > mean(b);
  });
  shown->left_out += shown->series.size() - most;
  shown->series.resize(most);
}

// By table and device.
std::map<std::pair<exporting::TableId, int>, Shown> Choose(const DumpSummary& summary, bool all) {
  std::map<std::pair<exporting::TableId, int>, Shown> chosen;
  // Counters say what rates beside them say.
  std::set<exporting::TableId> has_gauges;
  for (const SeriesSummary& series : summary.series) {
    if (!series.rate) has_gauges.insert(series.table);
  }
  for (const SeriesSummary& series : summary.series) {
    Shown& shown = chosen[{series.table, series.device}];
    bool twice = series.rate && has_gauges.contains(series.table);
    if (all || (ByDefault(series) && !twice)) {
      shown.series.push_back(&series);
    } else {
      ++shown.left_out;
    }
  }
  const size_t most = SeriesPerDevice(summary);
  for (auto& [key, shown] : chosen) {
    if (!all && most < kSeriesPerDevice) Shorten(&shown, most);
    if (!all && shown.series.size() > kSeriesPerDevice) {
      shown.left_out += shown.series.size() - kSeriesPerDevice;
      shown.series.resize(kSeriesPerDevice);
    }
  }
  return chosen;
}

// Values that come when they change, and stay what they are until then.
bool IsHeld(exporting::TableId table) {
  return table == exporting::TableId::kAicoreFreq || table == exporting::TableId::kVoltage;
}

void Hold(std::vector<double>* means) {
  double last = std::nan("");
  for (double& mean : *means) {
    if (std::isfinite(mean)) {
      last = mean;
    } else {
      mean = last;
    }
  }
}

std::string Quantity(const SeriesSummary& series, double value) {
  std::string_view name = series.metric;
  if (series.rate) name.remove_suffix(std::string_view("_total").size());
  return FormatQuantity(value, exporting::UnitOf(name), series.rate);
}

// The clock the device is rated for belongs to the scale of clocks.
double RatedHz(const exporting::DumpInfo& info, int device) {
  const exporting::Place* place = info.Find(exporting::Place::Kind::kDevice, device);
  return place == nullptr ? 0 : static_cast<double>(place->aicore_mhz) * 1e6;
}

// What is drawn of each series.
struct Lines {
  std::map<const SeriesSummary*, std::vector<double>> courses;
  // One for all series of a metric, so that devices and directions compare.
  std::map<std::pair<exporting::TableId, std::string>, Scale> scales;
};

Lines LinesOf(const DumpPicture& picture,
              const std::map<std::pair<exporting::TableId, int>, Shown>& chosen,
              const std::function<size_t(exporting::TableId)>& columns_of) {
  const DumpSummary& summary = picture.summary;
  Lines lines;
  for (const auto& [key, shown] : chosen) {
    for (const SeriesSummary* series : shown.series) {
      auto means =
          series->course.Resample(summary.first_ns, summary.last_ns, columns_of(key.first));
      if (IsHeld(key.first)) Hold(&means);
      Scale& scale = lines.scales[{key.first, series->metric}];
      scale.Widen(means);
      if (key.first == exporting::TableId::kAicoreFreq) {
        scale.high = std::max(scale.high, RatedHz(picture.info, key.second));
      }
      lines.courses[series] = std::move(means);
    }
  }
  return lines;
}

void PrintSeries(std::ostream& out, const DumpPicture& picture, const PictureStyle& style) {
  const DumpSummary& summary = picture.summary;
  auto chosen = Choose(summary, style.all);
  std::map<exporting::TableId, size_t> name_widths;
  for (const auto& [key, shown] : chosen) {
    size_t& width = name_widths[key.first];
    for (const SeriesSummary* series : shown.series) {
      width = std::max(width, DisplayWidth(SeriesName(*series)));
    }
  }
  // "  npu12  name  line  min  mean  max"
  constexpr size_t kNumber = 11;
  auto columns_of = [&](exporting::TableId id) {
    const size_t fixed = 2 + 7 + name_widths[id] + 2 + 3 * (kNumber + 1);
    return style.width > fixed + 10 ? style.width - fixed : 10;
  };
  Lines lines = LinesOf(picture, chosen, columns_of);
  const exporting::TableSpec* table = nullptr;
  size_t left_out = summary.left_out_series;
  for (const auto& [key, shown] : chosen) {
    left_out += shown.left_out;
    if (shown.series.empty()) continue;
    size_t name_width = name_widths[key.first];
    size_t fixed = 2 + 7 + name_width + 2 + 3 * (kNumber + 1);
    size_t columns = columns_of(key.first);
    if (table == nullptr || table->id != key.first) {
      table = &exporting::TableOf(key.first);
      std::string head = fmt::format("{:<{}}{:>{}} {:>{}} {:>{}}", table->name,
                                     fixed - 3 * (kNumber + 1) + columns, "min", kNumber, "mean",
                                     kNumber, "max", kNumber);
      out << '\n' << Paint(head, Tone::kFaint, style.color) << '\n';
    }
    for (const SeriesSummary* series : shown.series) {
      std::string name = SeriesName(*series);
      std::string place = key.second < 0 ? "host" : fmt::format("npu{}", key.second);
      std::string padding(name_width - DisplayWidth(name) + 2, ' ');
      out << fmt::format("  {:<7}{}{}", place, name, padding)
          << Paint(Sparkline(lines.courses[series], lines.scales[{key.first, series->metric}],
                             style.ascii),
                   Tone::kGood, style.color)
          << fmt::format("{:>{}} {:>{}} {:>{}}\n", Quantity(*series, series->min), kNumber + 1,
                         Quantity(*series, series->sum / static_cast<double>(series->count)),
                         kNumber, Quantity(*series, series->max), kNumber);
    }
  }
  if (left_out > 0) {
    out << fmt::format("\n{} more series{}\n", left_out,
                       style.all ? " are too many to keep" : " (--all, --json, profctl export)");
  }
}

Json SeriesJson(const SeriesSummary& series, const DumpSummary& summary) {
  Json labels = Json::object();
  for (const Label& label : series.labels) labels[label.key] = label.value;
  Json course = Json::array();
  for (double mean : series.course.Resample(summary.first_ns, summary.last_ns, kJsonCourse)) {
    course.push_back(std::isfinite(mean) ? Json(mean) : Json(nullptr));
  }
  return {{"channel", exporting::TableOf(series.table).name},
          {"device", series.device},
          {"metric", series.metric},
          {"labels", std::move(labels)},
          {"per_second", series.rate},
          {"count", series.count},
          {"min", series.min},
          {"mean", series.sum / static_cast<double>(series.count)},
          {"max", series.max},
          {"first_ns", series.first_ns},
          {"last_ns", series.last_ns},
          {"course", std::move(course)}};
}

}  // namespace

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
