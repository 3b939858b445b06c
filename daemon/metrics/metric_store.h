// The latest value of every series, and for metrics with a windowed view what the series did over
// the last minute. Writing is a few relaxed stores per sample, takes no lock and allocates nothing;
// interning and reading a snapshot share one mutex that no sampling path ever touches.
//
// Memory is bounded: kMaxSeries slots of 128 bytes, their labels (twice), and kMaxWindows windows of 2.5 KiB
// (10 MiB; eight NPUs with every channel running use 1 MiB).
#pragma once

#include <prometheus/client_metric.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "collectors/series.h"
#include "daemon/metrics/sample_window.h"

namespace profd {

// Some series have two sources: a channel of the driver while a session wants it, and a sample of
// libdcmi at all times. One of them feeds a series at a time.
enum class SampleSource : uint8_t { kReading, kChannel };

// What a series is called. `generation` changes when an id is given to another series.
struct SeriesDescription {
  MetricId metric = 0;
  int device = kHostDevice;
  std::vector<std::pair<std::string, std::string>> labels = {};  // npu and uuid first where they apply
  uint32_t generation = 0;
};

struct SeriesValue {
  MetricId metric;
  int device;  // kHostDevice of the node's
  const std::vector<std::pair<std::string, std::string>>* labels;
  double value;
  int64_t time_ns;
  const SampleWindow* window_or_null;  // of metrics with a windowed view
  // The labels with all but the last value in one name, {{`npu="0",uuid="x",link`, "all"}}, unless one of these
  // values needs escaping. The visitor may take them while it visits, and puts them back.
  std::vector<prometheus::ClientMetric::Label>* joined;
};

// Lives as long as the labels. Empty: there is no such label.
std::string_view LabelOf(std::span<const std::pair<std::string, std::string>> labels, std::string_view name);
inline std::string_view LabelOf(const SeriesValue& series, std::string_view name) { return LabelOf(*series.labels, name); }

class MetricStore final : public SeriesRegistry {
 public:
  static constexpr size_t kChunk = 1024;
  static constexpr size_t kMaxSeries = 64 * kChunk;
  static constexpr size_t kMaxWindows = 4096;
  static constexpr size_t kMaxLastTotals = 4096;

  MetricStore() = default;

  // The `npu` and `uuid` labels of a device; before its first series.
  void SetDeviceLabels(int device, std::string npu, std::string uuid);

  using SeriesRegistry::Intern;
  SeriesId Intern(MetricId metric, int device, std::span<const std::string_view> labels) override;
  void Release(SeriesId series) override;
  double LastTotal(SeriesId series) const override;
  void DeviceGone(int device, int64_t time_ns) override;

  // Lock-free, any thread; samples of released or refused series are harmless. Of a gauge with two
  // sources the samples of DCMI are ignored while the channel, which sees more, feeds it, and kChannelHoldNs
  // longer. A counter is DCMI's for good once it has fed it: the channel's total is another
  // counter, with a beginning of its own; where the channel was first, DCMI's samples continue from what
  // it had come to.
  void Write(std::span<const Sample> samples, SampleSource source = SampleSource::kReading);
  static constexpr int64_t kChannelHoldNs = 3 * kNsPerSecond;

  // A scraper is answered now. Samples that arrive from here on and are timestamped earlier count for
  // the second of `now_ns` in windows, so that each one is in the next window of every scraper.
  void NoteScrape(int64_t now_ns) const;

  // Calls `visit` for every live series whose last sample is fresh at `now_ns` (MONOTONIC_RAW),
  // ordered by metric, the series of a histogram together in the order of their bounds, its sum last.
  // A series is stale after 3.5 of its own intervals (at least 10 s, at most 5 min), so that a sample
  // that keeps failing disappears instead of freezing; what was sampled before its device was gone is
  // stale at once. `end` is called after the last one, while no series can come or go.
  template <class Visitor, class End = void (*)()>
  void VisitFresh(int64_t now_ns, Visitor&& visit, End&& end = [] {}) const {
    MutexLock lock(mutex_);
    for (const SortedSeries& entry : Ordered()) VisitIfFresh(entry, now_ns, visit);
    end();
  }
  // The same, of these metrics only.
  template <class Visitor>
  void VisitFreshOf(std::span<const MetricId> metrics, int64_t now_ns, Visitor&& visit) const {
    MutexLock lock(mutex_);
    const std::vector<SortedSeries>& order = Ordered();
    for (MetricId metric : metrics) {
      auto entry = std::ranges::lower_bound(order, metric, {}, &SortedSeries::metric);
      for (; entry != order.end() && entry->metric == metric; ++entry) {
        VisitIfFresh(*entry, now_ns, visit);
      }
    }
  }

  // A copy of the series' name, for streams; false if it is not live.
  bool Describe(SeriesId series, SeriesDescription* out) const;
  // Changes when the id is given to another series; lock-free.
  uint32_t Generation(SeriesId series) const;

  size_t size() const;
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  // On a cache line of its own: what a sample writes is together, and no other series' writer is
  // near.
  struct alignas(64) Slot {
    std::atomic<double> value{0};
    std::atomic<int64_t> time_ns{0};
    std::atomic<int64_t> interval_ns{0};
    std::atomic<SampleWindow*> window{nullptr};
    std::atomic<uint32_t> generation{0};
    std::atomic<bool> is_counter{false};
    std::atomic<int64_t> preferred_ns{0};  // last sample of the source that goes first; 0 = none yet
    std::atomic<double> offset{0};  // of a counter's DCMI samples behind a channel's
    uint32_t references = 0;  // guarded by mutex_, like all below
    const std::string* key = nullptr;  // in by_key_
    std::vector<prometheus::ClientMetric::Label> joined;
    SeriesDescription description;
  };
  struct SortedSeries {
    MetricId metric;
    SeriesId series;
  };

  Slot* SlotOf(SeriesId series) const {
    if (series >= kMaxSeries) return nullptr;
    auto* chunk = chunks_[series / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[series % kChunk];
  }
  template <class Visitor>
  void VisitIfFresh(const SortedSeries& entry, int64_t now_ns, Visitor& visit) const REQUIRES(mutex_) {
    Slot& slot = *SlotOf(entry.series);
    int64_t time = slot.time_ns.load(std::memory_order_acquire);
    if (time == 0 || now_ns - time > StaleAfter(slot) || IsGone(slot, time)) return;
    visit(SeriesValue{slot.description.metric, slot.description.device, &slot.description.labels,
                      slot.value.load(std::memory_order_relaxed), time,
                      slot.window.load(std::memory_order_relaxed), &slot.joined});
  }
  static int64_t StaleAfter(const Slot& slot);
  static bool Admit(Slot& slot, int64_t time_ns, SampleSource source, double* value);
  bool IsGone(const Slot& slot, int64_t time_ns) const REQUIRES(mutex_);
  SampleWindow* NewWindow(MetricId metric) REQUIRES(mutex_);
  const std::vector<SortedSeries>& Ordered() const REQUIRES(mutex_);
  void OrderHistograms() const REQUIRES(mutex_);
  SeriesId NewId() REQUIRES(mutex_);

  using Chunk = std::array<Slot, kChunk>;
  mutable Mutex mutex_;
  std::array<std::atomic<Chunk*>, kMaxSeries / kChunk> chunks_{};
  std::vector<std::unique_ptr<Chunk>> owned_chunks_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, SeriesId> by_key_ GUARDED_BY(mutex_);
  std::vector<SeriesId> free_ids_ GUARDED_BY(mutex_);
  SeriesId next_id_ GUARDED_BY(mutex_) = 0;
  mutable std::vector<SortedSeries> order_ GUARDED_BY(mutex_);
  mutable bool order_dirty_ GUARDED_BY(mutex_) = false;
  struct DeviceLabels {
    std::string npu;
    std::string uuid;
  };
  std::unordered_map<int, DeviceLabels> device_labels_ GUARDED_BY(mutex_);
  // By device, when it last stopped answering.
  std::unordered_map<int, int64_t> gone_ns_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, double> last_totals_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<SampleWindow>> owned_windows_ GUARDED_BY(mutex_);
  std::vector<SampleWindow*> free_windows_ GUARDED_BY(mutex_);
  mutable std::atomic<int64_t> scrape_bucket_{0};  // the second of the latest scrape
  std::atomic<uint64_t> refused_{0};
};

}  // namespace profd
