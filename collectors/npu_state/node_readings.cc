#include "collectors/npu_state/node_readings.h"

namespace profd {

NodeReadings::NodeReadings(DcmiService& dcmi, const NpuStateOptions& options,
                           SeriesRegistry& registry)
    : dcmi_(dcmi),
      registry_(registry),
      call_buckets_(options.call_buckets),
      owner_(registry, kHostDevice),
      refused_(owner_) {
  constexpr std::array<std::string_view, 4> kStates = {"present", "healthy", "unhealthy",
                                                       "unknown"};
  for (size_t i = 0; i < npus_.size(); ++i) {
    npus_[i] = SeriesSlot(MetricByName("atlas_npus"), kStates[i]);
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    calls_[i] = SeriesSlot(MetricByName("profd_dcmi_calls_total"), kDcmiCallNames[i]);
  }
}

void NodeReadings::Fast(SampleBatch& out, int64_t now_ns, const NpuCounts& counts) {
  const std::array<size_t, 4> values = {counts.present, counts.healthy, counts.unhealthy,
                                        counts.unknown};
  for (size_t i = 0; i < npus_.size(); ++i) {
    out.Emit(owner_.Use(npus_[i]), now_ns, static_cast<double>(values[i]));
  }
}

bool NodeReadings::Medium(SampleBatch& out, int64_t now_ns) {
  if (dcmi_.IsPending()) {
    PutStatistics(out, now_ns);
    return true;
  }
  auto health = dcmi_.DriverHealth();
  if (health.code == kDcmiAbandoned) return false;
  // Above 3 it is 0xFFFFFFFF: not known.
  if (health.ok() && health.value <= 3) {
    out.Emit(owner_.Use(driver_health_), now_ns, health.value);
  } else {
    owner_.Drop(driver_health_);
  }
  if (driver_info_ == kNoSeries) {
    const std::string driver_version = dcmi_.driver_version();
    const std::string dcmi_version = dcmi_.dcmi_version();
    const std::array<std::string_view, 3> labels = {driver_version, dcmi_version, dcmi_.api_name()};
    driver_info_ = owner_.Intern(MetricByName("atlas_driver_info"), labels);
  }
  out.Emit(driver_info_, now_ns, 1);
  PutStatistics(out, now_ns);
  PutRefused(out, now_ns);
  return true;
}

void NodeReadings::PutStatistics(SampleBatch& out, int64_t now_ns) {
  constexpr MetricId kErrors = MetricByName("profd_dcmi_call_errors_total");
  const std::vector<DcmiCallStatistics> statistics = dcmi_.Statistics();
  const std::span<const DcmiErrorInfo> errors = DcmiErrors();
  for (size_t call = 0; call < statistics.size(); ++call) {
    if (statistics[call].calls == 0) continue;
    out.Emit(owner_.Use(calls_[call]), now_ns, static_cast<double>(statistics[call].calls));
    for (size_t error = 0; error < errors.size(); ++error) {
      const uint64_t count = statistics[call].errors[error];
      if (count == 0) continue;
      auto [it, is_new] = errors_.try_emplace({call, error});
      if (is_new) it->second = SeriesSlot(kErrors, kDcmiCallNames[call], errors[error].label);
      out.Emit(owner_.Use(it->second), now_ns, static_cast<double>(count));
    }
  }
  PutDurations(out, now_ns, statistics);
}

// One histogram for each function, all its selectors together.
void NodeReadings::PutDurations(SampleBatch& out, int64_t now_ns,
                                const std::vector<DcmiCallStatistics>& statistics) {
  constexpr MetricId kDuration = MetricByName("profd_dcmi_call_duration_seconds");
  std::map<std::string_view, DurationCounts> sums;
  for (size_t call = 0; call < statistics.size(); ++call) {
    const DurationCounts& one = statistics[call].durations;
    const std::string_view name = kDcmiCallNames[call].substr(0, kDcmiCallNames[call].find('/'));
    uint64_t calls = 0;
    for (uint64_t count : one.counts) calls += count;
    if (calls == 0) continue;
    DurationCounts& sum = sums[name];
    for (size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += one.counts[i];
    sum.sum_ns += one.sum_ns;
  }
  for (const auto& [name, sum] : sums) {
    auto it = durations_.find(name);
    if (it == durations_.end()) {
      it = durations_
               .emplace(name, HistogramSeries(registry_, kDuration, kHostDevice, {name},
                                              call_buckets_
                                                  ? std::span<const double>(DurationCounts::kBoundsSeconds)
                                                  : std::span<const double>()))
               .first;
    }
    it->second.Emit(sum.counts, sum.sum_seconds(), now_ns, out);
  }
}

void NodeReadings::PutRefused(SampleBatch& out, int64_t now_ns) {
  constexpr MetricId kUnsupported = MetricByName("profd_dcmi_unsupported");
  refused_.BeginRound();
  dcmi_.VisitRefused([&](const DcmiDevice& device, DcmiCall call, int) {
    const SeriesId series = refused_.Use({device.index, call}, kUnsupported, [&] {
      return std::array<std::string, 2>{std::to_string(device.physical_id),
                                        std::string(NameOf(call))};
    });
    out.Emit(series, now_ns, 1);
  });
  refused_.EndRound();
}

}  // namespace profd
