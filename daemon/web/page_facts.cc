#include "daemon/web/page_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

constexpr MetricId kUtilization = MetricByName("atlas_npu_utilization_ratio");
constexpr MetricId kHbmUsed = MetricByName("atlas_npu_hbm_used_bytes");
constexpr MetricId kHbmSize = MetricByName("atlas_npu_hbm_size_bytes");
constexpr MetricId kPower = MetricByName("atlas_npu_power_watts");
constexpr MetricId kTemperature = MetricByName("atlas_npu_temperature_celsius");
constexpr MetricId kFrequency = MetricByName("atlas_npu_frequency_hertz");
constexpr MetricId kJob = MetricByName("atlas_npu_job_info");
constexpr MetricId kStep = MetricByName("atlas_npu_step");

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

void AddJob(const SeriesValue& series, std::vector<PageFacts::Job>* jobs) {
  const std::string name(LabelOf(series, "job_id"));
  const std::string user(LabelOf(series, "user"));
  auto job = std::ranges::find_if(*jobs, [&](const PageFacts::Job& one) {
    return one.name == name && one.user == user;
  });
  if (job == jobs->end()) job = jobs->insert(job, {name, user, {}, std::nullopt});
  job->npus.emplace_back(LabelOf(series, "npu"));
}

}  // namespace

PageFacts ReadPageFacts(const MetricStore& store, int64_t now_ns) {
  constexpr std::array kWanted = {kUtilization, kHbmSize,   kHbmUsed, kPower,
                                  kTemperature, kFrequency, kJob,     kStep};
  PageFacts facts;
  std::map<std::string, double> sizes;
  store.VisitFreshOf(kWanted, now_ns, [&](const SeriesValue& series) {
    if (series.metric == kJob) return AddJob(series, &facts.jobs);
    if (series.metric == kStep) {
      for (PageFacts::Job& job : facts.jobs) {
        if (job.name != LabelOf(series, "job_id")) continue;
        job.step = std::max(job.step.value_or(series.value), series.value);
      }
      return;
    }
    const std::string npu(LabelOf(series, "npu"));
    if (series.metric == kHbmSize) {
      sizes[npu] = series.value;
      return;
    }
    PageFacts::Figures& figures = facts.figures[npu];
    if (series.metric == kUtilization && LabelOf(series, "unit") == "aicore") {
      figures[0] = fmt::format("{:.0f} %", series.value * 100);
    } else if (series.metric == kHbmUsed) {
      auto size = sizes.find(npu);
      figures[1] = size == sizes.end()
                       ? fmt::format("{:.1f} GiB", series.value / kGib)
                       : fmt::format("{:.1f} of {:.1f} GiB", series.value / kGib,
                                     size->second / kGib);
    } else if (series.metric == kPower && LabelOf(series, "scope") == "chip") {
      figures[2] = fmt::format("{:.0f} W", series.value);
    } else if (series.metric == kTemperature && LabelOf(series, "sensor") == "chip") {
      figures[3] = fmt::format("{:.0f} °C", series.value);
    } else if (series.metric == kFrequency && LabelOf(series, "domain") == "aicore") {
      figures[4] = fmt::format("{:.0f} MHz", series.value / 1e6);
    }
  });
  return facts;
}

}  // namespace profd
