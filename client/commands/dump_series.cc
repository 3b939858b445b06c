// Of `profctl show DUMP`: which series stand for a channel, and their lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "client/commands/show_dump.h"
#include "client/render.h"
#include "client/sparkline.h"
#include "export/rows/metric_families.h"

namespace profd::client {
namespace {

using exporting::DumpSummary;
using exporting::Label;
using exporting::SeriesSummary;

// The four HBMs of a device, read and written.
constexpr size_t kSeriesPerDevice = 8;
constexpr size_t kMaxName = 34;
constexpr size_t kJsonCourse = 60;

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

}  // namespace

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
      std::string place = PlaceName(key.second);
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
    course.push_back(NumberJson(mean));
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

}  // namespace profd::client
