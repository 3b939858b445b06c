#include "daemon/advice/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "collectors/metric_table.h"

namespace profd {
namespace {

constexpr MetricId kClock = MetricByName("atlas_npu_frequency_hertz");
constexpr MetricId kRated = MetricByName("atlas_npu_frequency_rated_hertz");
constexpr MetricId kTemperature = MetricByName("atlas_npu_temperature_celsius");
constexpr MetricId kPower = MetricByName("atlas_npu_power_watts");
constexpr MetricId kThrottle = MetricByName("atlas_npu_throttle_reason");
constexpr MetricId kMemorySize = MetricByName("atlas_npu_hbm_size_bytes");
constexpr MetricId kMemoryUsed = MetricByName("atlas_npu_hbm_used_bytes");
constexpr MetricId kDdrSize = MetricByName("atlas_npu_ddr_size_bytes");
constexpr MetricId kDdrUsed = MetricByName("atlas_npu_ddr_used_bytes");
// In this order they are visited.
constexpr std::array kGauges = {kClock, kRated, kTemperature, kPower, kThrottle, kMemorySize, kMemoryUsed, kDdrSize, kDdrUsed};

std::string PriorityOf(const SeriesValue& series) {
  return fmt::format("{} {}", LabelOf(series, "direction"), LabelOf(series, "priority"));
}

// Counters; all series of a metric and device, or of a link, together. The host's are shares of time.
struct Counter {
  MetricId metric;
  double NpuFacts::*of_device = nullptr;
  std::optional<double> HostFacts::*of_host = nullptr;
  std::string_view label = {};  // one that a series has; empty: any
  std::string_view value = {};
  double LinkFacts::*of_link = nullptr;
  std::string (*most_of)(const SeriesValue&) = nullptr;  // of the parts that it distinguishes the one with most
};
constexpr MetricId kPressure = MetricByName("atlas_host_pressure_waiting_seconds_total");
constexpr auto kCounters = std::to_array<Counter>({
    {MetricByName("atlas_npu_ecc_errors_total"), &NpuFacts::memory_errors},
    {.metric = MetricByName("atlas_npu_hccs_retries_total"), .of_link = &LinkFacts::retries},
    {.metric = MetricByName("atlas_npu_hccs_crc_errors_total"), .of_link = &LinkFacts::crc_errors},
    {.metric = MetricByName("atlas_npu_ub_retries_total"), .of_link = &LinkFacts::retries},
    {.metric = MetricByName("atlas_npu_ub_crc_errors_total"), .of_link = &LinkFacts::crc_errors},
    {MetricByName("atlas_npu_roce_retransmits_total"), &NpuFacts::roce_retransmits},
    {.metric = MetricByName("atlas_npu_network_pfc_frames_total"), .of_device = &NpuFacts::pfc_frames, .most_of = PriorityOf},
    {MetricByName("atlas_npu_network_fcs_errors_total"), &NpuFacts::port_errors},
    {kPressure, nullptr, &HostFacts::cpu_waiting, "resource", "cpu"},
    {kPressure, nullptr, &HostFacts::memory_waiting, "resource", "memory"},
    {kPressure, nullptr, &HostFacts::io_waiting, "resource", "io"},
});

void TakeValue(const SeriesValue& series, NpuFacts* device) {
  const auto largest = [&series](std::optional<double>* value) { *value = std::max(value->value_or(series.value), series.value); };
  if (series.metric == kClock || series.metric == kRated) {
    if (LabelOf(series, "domain") != "aicore") return;
    (series.metric == kClock ? device->clock_hz : device->rated_hz) = series.value;
  } else if (series.metric == kTemperature) {
    largest(&device->temperature_c);
  } else if (series.metric == kPower) {
    largest(&device->power_w);
  } else if (series.metric == kThrottle) {
    if (series.value > 0) device->throttle_reasons.emplace_back(LabelOf(series, "reason"));
  } else if (series.metric == kMemorySize) {
    device->memory_bytes = series.value;
  } else if (series.metric == kMemoryUsed) {
    device->memory_used_bytes = series.value;
  } else if (!device->memory_used_bytes) {
    // DDR is a chip's memory where it has no HBM.
    (series.metric == kDdrSize ? device->memory_bytes : device->memory_used_bytes) = series.value;
  }
}

std::string PartOf(const SeriesValue& series, const Counter& counter) {
  if (counter.most_of != nullptr) return counter.most_of(series);
  if (counter.of_link == nullptr) return "";
  const std::string_view link = LabelOf(series, "link");
  return link.empty() ? fmt::format("Unified Bus port {} of die {}", LabelOf(series, "port"), LabelOf(series, "udie"))
                      : fmt::format("HCCS link {}", link);
}

}  // namespace

void CounterRate::Add(int64_t time_ns, double total) {
  const Value* last = count_ == 0 ? nullptr : &values_[(count_ - 1) % kKept];
  if (last != nullptr && time_ns <= last->time_ns) return;
  if (last != nullptr && total < last->total) count_ = 0;
  values_[count_++ % kKept] = {time_ns, total};
}

std::optional<double> CounterRate::PerSecond() const {
  if (count_ < 2) return std::nullopt;
  const Value& last = values_[(count_ - 1) % kKept];
  // The oldest within the window, and one before at least.
  size_t first = count_ - 2;
  while (first > 0 && count_ - first < kKept && last.time_ns - values_[(first - 1) % kKept].time_ns <= kWindowNs) --first;
  const Value& begin = values_[first % kKept];
  return (last.total - begin.total) * 1e9 / static_cast<double>(last.time_ns - begin.time_ns);
}

void HardwareWatch::Update(const MetricStore& store, int64_t now_ns) {
  devices_.clear();
  host_ = {};
  store.VisitFreshOf(kGauges, now_ns, [&](const SeriesValue& series) {
    NpuFacts& device = devices_[series.device];
    if (device.npu.empty()) device.npu = LabelOf(series, "npu");
    TakeValue(series, &device);
  });
  struct Total {
    double value = 0;
    int64_t time_ns = 0;
  };
  std::map<CounterKey, Total> totals;
  std::array<MetricId, kCounters.size()> metrics{};
  std::transform(kCounters.begin(), kCounters.end(), metrics.begin(), [](const Counter& counter) { return counter.metric; });
  const auto end = std::unique(metrics.begin(), metrics.end());
  store.VisitFreshOf(std::span(metrics.begin(), end), now_ns, [&](const SeriesValue& series) {
    for (size_t i = 0; i < kCounters.size(); ++i) {
      const Counter& counter = kCounters[i];
      if (counter.metric != series.metric) continue;
      if (!counter.label.empty() && LabelOf(series, counter.label) != counter.value) continue;
      Total& total = totals[{series.device, i, PartOf(series, counter)}];
      total.value += series.value;
      total.time_ns = std::max(total.time_ns, series.time_ns);
    }
  });
  std::erase_if(rates_, [&](const auto& entry) { return !totals.contains(entry.first); });
  for (const auto& [key, total] : totals) {
    CounterRate& rate = rates_[key];
    rate.Add(total.time_ns, total.value);
    const std::optional<double> value = rate.PerSecond();
    const auto& [device, row, part] = key;
    const Counter& counter = kCounters[row];
    if (counter.of_host != nullptr) host_.*counter.of_host = value;
    if (counter.of_device != nullptr) {
      double& most = devices_[device].*counter.of_device;
      most = std::max(most, value.value_or(0));
    }
    if (counter.of_link != nullptr) devices_[device].links[part].*counter.of_link = value.value_or(0);
  }
}

}  // namespace profd
