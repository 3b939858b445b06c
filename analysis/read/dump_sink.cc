#include "analysis/read/dump_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "export/rows/series.h"

namespace profd::analysis {
namespace {

using exporting::Batch;
using exporting::Event;
using exporting::EventKind;
using exporting::TableId;

class AnalysisSink : public exporting::FormatSink {
 public:
  AnalysisSink(size_t dump, const exporting::Strings& strings, Gathered* out, Mutex* mutex, const SinkLimits& limits)
      : dump_(dump), strings_(strings), out_(*out), mutex_(*mutex), limits_(limits) {}

  void Take(const Batch& batch) override {
    OfDevice& device = devices_[batch.device];
    switch (batch.table->id) {
      case TableId::kKernel:
        return TakeRows(batch, {"type", "stream"}, &device.kernels);
      case TableId::kCommunication:
        return TakeRows(batch, {"communicator", "stream"}, &device.collectives);
      case TableId::kApi:
        return TakeRows(batch, {"level", "thread"}, &device.calls);
      default:
        return TakeSamples(batch, &device);
    }
  }

  void TakeEvent(const Event& event) override {
    const bool has_parts = event.kind == EventKind::kIteration || event.kind == EventKind::kDeviceStep;
    if (has_parts) Keep(event, limits_.steps, &parts_);
    const bool is_mark = event.kind == EventKind::kMark || event.kind == EventKind::kRange || event.kind == EventKind::kLoss;
    if (is_mark) Keep(event, limits_.marks, &marks_);
  }

  Status Finish() override {
    MutexLock lock(mutex_);
    for (auto& [number, device] : devices_) {
      OfDevice& to = out_.devices[{dump_, number}];
      for (const auto rows : {&OfDevice::kernels, &OfDevice::collectives, &OfDevice::calls}) {
        const size_t taken = std::min(kMaxRows - out_.rows, (device.*rows).size());
        out_.left_out += (device.*rows).size() - taken;
        out_.rows += taken;
        (to.*rows).insert((to.*rows).end(), (device.*rows).begin(), (device.*rows).begin() + static_cast<std::ptrdiff_t>(taken));
      }
      to.series.merge(device.series);
    }
    // A device may have nothing but steps: its operators are in another dump of the run.
    for (const Event& event : parts_) out_.devices.try_emplace({dump_, event.device});
    std::ranges::move(parts_, std::back_inserter(out_.parts[dump_]));
    std::ranges::move(marks_, std::back_inserter(out_.marks[dump_]));
    out_.left_out_events += left_out_events_;
    out_.left_out_samples += left_out_samples_;
    return {};
  }

 private:
  void Keep(const Event& event, size_t most, std::vector<Event>* events) {
    if (events->size() < most) {
      events->push_back(event);
    } else {
      ++left_out_events_;
    }
  }

  struct Columns {
    std::string_view other;
    std::string_view place;
  };
  static void TakeRows(const Batch& batch, const Columns& columns, std::vector<Recorded>* rows) {
    const auto ints = [&batch](std::string_view name) {
      return batch.Ints(static_cast<size_t>(ColumnIndex(*batch.table, name)));
    };
    const auto names = ints("name");
    const auto lengths = ints("duration");
    const auto others = ints(columns.other);
    const auto places = ints(columns.place);
    const auto correlations = ints("correlation");
    const auto ranks = ints("rank");
    for (size_t row = 0; row < batch.rows(); ++row) {
      Recorded made{batch.t_ns[row], 0, names[row], others[row], places[row], correlations[row], static_cast<int>(ranks[row])};
      if (lengths[row] < 0 || __builtin_add_overflow(made.start_ns, lengths[row], &made.end_ns)) continue;
      rows->push_back(made);
    }
  }

  // A column that is a metric, in one series.
  struct MetricColumn {
    size_t column = 0;
    double scale = 1;
    Counter counter;
  };

  void TakeSamples(const Batch& batch, OfDevice* device) {
    auto& map = maps_.try_emplace({batch.table->id, batch.device}, *batch.table).first->second;
    for (size_t row = 0; row < batch.rows(); ++row) {
      std::vector<MetricColumn>* metric_columns = map.Find(batch, row);
      if (metric_columns == nullptr) {
        if (series_ >= limits_.series) {
          ++left_out_samples_;
          continue;
        }
        metric_columns = map.Add(Make(batch, map.keys(), device));
      }
      for (MetricColumn& metric_column : *metric_columns) Read(batch, row, &metric_column);
    }
  }

  std::vector<MetricColumn> Make(const Batch& batch, std::span<const uint64_t> keys, OfDevice* device) {
    std::vector<MetricColumn> metric_columns;
    for (const exporting::MetricColumn& metric : MetricsOf(*batch.table, keys, strings_)) {
      const std::string name = SeriesNameOf(metric.metric, metric.labels);
      std::shared_ptr<Series>& series = device->series[name];
      if (series == nullptr) {
        series = std::make_shared<Series>();
        series->name = name;
        series->unit = SeriesUnitOf(metric.metric);
        series->device = batch.device;
        ++series_;
      }
      metric_columns.push_back({metric.column, metric.scale, {series.get(), Grows(metric.metric)}});
    }
    return metric_columns;
  }

  static void Read(const Batch& batch, size_t row, MetricColumn* metric_column) {
    const double value = batch.Number(metric_column->column, row) * metric_column->scale;
    if (std::isfinite(value)) metric_column->counter.Add(batch.t_ns[row], value);
  }

  size_t dump_;
  const exporting::Strings& strings_;
  Gathered& out_ GUARDED_BY(mutex_);
  Mutex& mutex_;
  const SinkLimits limits_;
  uint64_t left_out_events_ = 0;
  uint64_t left_out_samples_ = 0;
  std::map<int, OfDevice> devices_;
  std::map<std::pair<TableId, int>, exporting::SeriesMap<std::vector<MetricColumn>>> maps_;
  size_t series_ = 0;
  std::vector<Event> parts_;
  std::vector<Event> marks_;
};

}  // namespace

std::string SeriesNameOf(std::string_view metric, std::span<const exporting::Label> labels) {
  constexpr std::string_view kPrefix = "atlas_npu_";
  std::string text(metric.starts_with(kPrefix) ? metric.substr(kPrefix.size()) : metric);
  for (const exporting::Label& label : labels) text += fmt::format(" {}={}", label.key, label.value);
  return text;
}

std::string SeriesUnitOf(std::string_view metric) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_bytes_per_second", "B/s"}, {"_bytes", "B"},        {"_hertz", "Hz"},     {"_celsius", "°C"}, {"_watts", "W"},
      {"_volts", "V"},              {"_seconds", "s"},      {"_ratio", "ratio"},  {"_per_second", "1/s"},
      {"_bytes_total", "B/s"},      {"_seconds_total", "s/s"}, {"_total", "1/s"},
  };
  for (const auto& [ending, unit] : kUnits) {
    if (metric.ends_with(ending)) return std::string(unit);
  }
  return {};
}

std::optional<double> GrowthRate::At(int64_t t_ns, double value) {
  const std::optional<double> before = std::exchange(last_, value);
  const int64_t before_ns = std::exchange(last_ns_, t_ns);
  if (!before || value < *before || t_ns <= before_ns) return std::nullopt;
  return (value - *before) * 1e9 / static_cast<double>(t_ns - before_ns);
}

std::unique_ptr<exporting::FormatSink> MakeDumpSink(size_t dump, const exporting::Strings& strings, Gathered* out, Mutex* mutex,
                                                   const SinkLimits& limits) {
  return std::make_unique<AnalysisSink>(dump, strings, out, mutex, limits);
}

}  // namespace profd::analysis
