#include "daemon/metrics/self_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

constexpr MetricId kAvailable = MetricByName("profd_collector_available");
constexpr MetricId kSuccess = MetricByName("profd_collector_success");
constexpr MetricId kDuration = MetricByName("profd_collector_duration_seconds");
constexpr MetricId kLateness = MetricByName("profd_collector_lateness_seconds");
constexpr MetricId kMissed = MetricByName("profd_collector_missed_ticks_total");
constexpr MetricId kReadings = MetricByName("profd_collector_readings_total");
constexpr MetricId kErrors = MetricByName("profd_collector_errors_total");
constexpr MetricId kRecords = MetricByName("profd_collector_records_total");
constexpr MetricId kBad = MetricByName("profd_collector_bad_records_total");

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
  return std::any_of(host.devices.begin(), host.devices.end(), [&](const DeviceInfo& device) {
    return entry.probe_device(host, device).ok();
  });
}

}  // namespace

SelfMetrics::SelfMetrics(MetricStore& store, const Host& host) : store_(store), host_(host) {
  available_.resize(Collectors().size());
}

SelfMetrics::~SelfMetrics() {
  for (const auto& [key, id] : ids_) store_.Release(id);
}

void SelfMetrics::Set(MetricId metric, double value, std::string_view a, std::string_view b,
                      std::string_view c) {
  auto key = std::make_tuple(metric, std::string(a), std::string(b), std::string(c));
  auto found = ids_.find(key);
  if (found == ids_.end()) {
    found = ids_.emplace(std::move(key), store_.Intern(metric, kHostDevice, {a, b, c})).first;
  }
  batch_.push_back({found->second, 0, value});
}

void SelfMetrics::Commit() {
  int64_t now = host_.clock.MonotonicRawNs();
  for (Sample& sample : batch_) sample.time_ns = now;
  store_.Write(batch_);
  batch_.clear();
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
    Set(kReadings, Value(one.readings), name);
    Set(kErrors, Value(one.errors), name);
    Set(kMissed, Value(one.missed_ticks), name);
    Set(kRecords, Value(one.records), name);
    Set(kBad, Value(one.bad_records), name);
    if (one.readings.load(std::memory_order_relaxed) == 0) continue;
    Set(kSuccess, one.last_ok.load(std::memory_order_relaxed) ? 1 : 0, name);
    Set(kDuration, Seconds(one.last_duration_ns), name);
    Set(kLateness, Seconds(one.last_lateness_ns), name);
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
  Result<std::string> statm = host_.proc.ReadFile("self/statm", 256);
  if (statm.ok()) {
    std::string_view rest = *statm;
    uint64_t total = 0;
    uint64_t resident = 0;
    auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    if (ParseNumber(NextToken(&rest), &total) && ParseNumber(NextToken(&rest), &resident)) {
      Set(MetricByName("process_virtual_memory_bytes"), static_cast<double>(total) * page);
      Set(MetricByName("process_resident_memory_bytes"), static_cast<double>(resident) * page);
    }
  }
  Result<std::vector<std::string>> fds = host_.proc.List("self/fd");
  if (fds.ok()) Set(MetricByName("process_open_fds"), static_cast<double>(fds->size()));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    Set(MetricByName("process_max_fds"), static_cast<double>(limit.rlim_cur));
  }
  if (start_time_s_ == 0) start_time_s_ = static_cast<double>(host_.clock.WallNs()) / 1e9;
  Set(MetricByName("process_start_time_seconds"), start_time_s_);
  Set(MetricByName("profd_start_time_seconds"), start_time_s_);
}

}  // namespace profd
