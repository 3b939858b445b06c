#include "daemon/metrics/self_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

constexpr MetricId kAvailable = MetricByName("profd_collector_available");
constexpr MetricId kSuccess = MetricByName("profd_collector_success");
constexpr MetricId kDuration = MetricByName("profd_collector_duration_seconds");
constexpr MetricId kLateness = MetricByName("profd_collector_lateness_seconds");
constexpr MetricId kLeftOut = MetricByName("profd_collector_left_out_ticks_total");
constexpr MetricId kMissed = MetricByName("profd_collector_missed_ticks_total");
constexpr MetricId kReadings = MetricByName("profd_collector_readings_total");
constexpr MetricId kErrors = MetricByName("profd_collector_errors_total");
constexpr MetricId kRecords = MetricByName("profd_collector_records_total");
constexpr MetricId kBad = MetricByName("profd_collector_bad_records_total");
constexpr MetricId kStale = MetricByName("profd_collector_stale_records_total");

// Probing opens files: once in so many rounds is enough for something that hardly ever changes.
constexpr int kProbeEvery = 60;

double Value(const std::atomic<uint64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}
double Seconds(const std::atomic<int64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) / 1e9;
}

bool Available(const CollectorEntry& entry, const Host& host) {
  if (entry.probe_device == nullptr) return entry.probe_host(host).ok();
  return std::ranges::any_of(host.devices, [&](const DeviceInfo& device) {
    return ProbeDevice(entry, host, device).ok();
  });
}

// Registered with the first series.
template <class Builder>
auto& FamilyOf(Builder builder, MetricId metric, prometheus::Registry* registry) {
  const MetricSpec& spec = kMetrics[metric];
  return builder.Name(std::string(spec.name)).Help(std::string(spec.help)).Register(*registry);
}

prometheus::Labels LabelsOf(std::string_view names, std::span<const std::string> values) {
  prometheus::Labels labels;
  std::string_view name;
  for (size_t i = 0; i < values.size() && NextPart(&names, ',', &name); ++i) labels.emplace(name, values[i]);
  return labels;
}

}  // namespace

SelfMetrics::SelfMetrics(const Host& host) : host_(host) { available_.resize(Collectors().size()); }

void SelfMetrics::Add(const Name& name, Series* series) {
  const prometheus::Labels labels = LabelsOf(kMetrics[name.metric].labels, name.labels);
  if (kMetrics[name.metric].type == MetricType::kCounter) {
    series->counter = &FamilyOf(prometheus::BuildCounter(), name.metric, &registry_).Add(labels);
  } else {
    series->gauge = &FamilyOf(prometheus::BuildGauge(), name.metric, &registry_).Add(labels);
  }
}

void SelfMetrics::Remove(const Name& name, const Series& series) {
  if (series.counter != nullptr) {
    FamilyOf(prometheus::BuildCounter(), name.metric, &registry_).Remove(series.counter);
  } else {
    FamilyOf(prometheus::BuildGauge(), name.metric, &registry_).Remove(series.gauge);
  }
}

void SelfMetrics::SetValue(MetricId metric, double value, const std::array<std::string_view, kMostLabels>& labels) {
  Name name{metric, {}};
  std::copy(labels.begin(), labels.end(), name.labels.begin());
  const auto [found, added] = series_.try_emplace(std::move(name));
  Series& series = found->second;
  if (added) Add(found->first, &series);
  series.round = round_;
  if (series.gauge != nullptr) {
    series.gauge->Set(value);
    return;
  }
  // What is counted elsewhere may begin again; less than one event is rounding.
  if (value <= series.counter->Value() - 1) {
    Remove(found->first, series);
    Add(found->first, &series);
  }
  series.counter->Increment(value - series.counter->Value());
}

void SelfMetrics::SetCount(MetricId metric, double value, std::string_view a, std::string_view b) {
  if (value > 0 || series_.contains({metric, {std::string(a), std::string(b), {}, {}}})) {
    Set(metric, value, a, b);
  }
}

void SelfMetrics::Commit() {
  std::erase_if(series_, [this](const auto& entry) {
    const auto& [name, series] = entry;
    if (series.round == round_) return false;
    Remove(name, series);
    return true;
  });
  ++round_;
}

void SelfMetrics::SetCollectors(const CollectorStatsTable& stats) {
  std::span<const CollectorEntry> collectors = Collectors();
  bool probe = probe_countdown_ == 0;
  probe_countdown_ = probe ? kProbeEvery : probe_countdown_ - 1;
  for (size_t i = 0; i < collectors.size(); ++i) {
    const CollectorStats& one = stats[i];
    std::string_view name = collectors[i].spec->name;
    if (probe) available_[i] = Available(collectors[i], host_);
    Set(kAvailable, available_[i] ? 1 : 0, name);
    SetCount(kErrors, Value(one.errors), name);
    SetCount(kRecords, Value(one.records), name);
    SetCount(kBad, Value(one.bad_records), name);
    SetCount(kStale, Value(one.stale_records), name);
    if (one.readings.load(std::memory_order_relaxed) == 0) continue;
    Set(kReadings, Value(one.readings), name);
    Set(kMissed, Value(one.missed_ticks), name);
    Set(kLeftOut, Value(one.left_out_ticks), name);
    // How the last read of a session that is over went is no state of the node.
    if (one.running.load(std::memory_order_relaxed) == 0) continue;
    Set(kSuccess, one.last_ok.load(std::memory_order_relaxed) ? 1 : 0, name);
    Set(kDuration, Seconds(one.last_duration_ns), name);
    Set(kLateness, Seconds(one.last_lateness_ns), name);
  }
}

void SelfMetrics::SetMemory() {
  if (!statm_.valid()) {
    Result<KeptFile> kept = host_.proc.Keep("self/statm");
    if (!kept.ok()) return;
    statm_ = std::move(kept).value();
  }
  std::array<char, 256> buffer;
  Result<std::string_view> statm = statm_.Read(buffer);
  if (!statm.ok()) return;
  std::string_view rest = *statm;
  uint64_t total = 0;
  uint64_t resident = 0;
  auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (ParseNumber(NextToken(&rest), &total) && ParseNumber(NextToken(&rest), &resident)) {
    Set(MetricByName("process_virtual_memory_bytes"), static_cast<double>(total) * page);
    Set(MetricByName("process_resident_memory_bytes"), static_cast<double>(resident) * page);
  }
}

// Linux 6.2 and later report with stat how many there are; before, it reports 0 and they are listed.
void SelfMetrics::SetFiles() {
  if (!files_.valid()) {
    Result<UniqueFd> opened = host_.proc.Open("self/fd");
    if (!opened.ok()) return;
    files_ = std::move(opened).value();
  }
  struct stat info {};
  if (::fstat(files_.get(), &info) != 0) return;
  auto count = static_cast<double>(info.st_size);
  if (info.st_size == 0) {
    Result<std::vector<std::string>> files = host_.proc.List("self/fd");
    if (!files.ok()) return;
    count = static_cast<double>(files->size());
  }
  Set(MetricByName("process_open_fds"), count);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    Set(MetricByName("process_max_fds"), static_cast<double>(limit.rlim_cur));
  }
}

void SelfMetrics::SetProcess() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    Set(MetricByName("process_cpu_seconds_total"),
        seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  SetMemory();
  SetFiles();
  if (start_time_s_ == 0) start_time_s_ = static_cast<double>(host_.clock.WallNs()) / 1e9;
  Set(MetricByName("process_start_time_seconds"), start_time_s_);
  Set(MetricByName("profd_start_time_seconds"), start_time_s_);
}

}  // namespace profd
