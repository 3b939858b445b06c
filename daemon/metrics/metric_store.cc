#include "daemon/metrics/metric_store.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>

#include "base/clock.h"
#include "base/text.h"
#include "collectors/histogram.h"
#include "collectors/metric_table.h"

namespace profd {
namespace {

constexpr int64_t kMinStale = 10 * kNsPerSecond;
constexpr int64_t kMaxStale = 300 * kNsPerSecond;

std::string KeyOf(MetricId metric, int device, std::span<const std::string_view> labels) {
  std::string key = std::to_string(metric);
  key += '\x1f';
  key += std::to_string(device);
  for (std::string_view label : labels) {
    key += '\x1f';
    key += label;
  }
  return key;
}

// Fills in "name=value" pairs from the table's comma-separated names; returns how many.
size_t AppendLabels(std::string_view names, std::span<const std::string_view> values,
                    std::vector<std::pair<std::string, std::string>>* out) {
  size_t index = 0;
  for (std::string_view name; NextPart(&names, ',', &name);) {
    std::string_view value = index < values.size() ? values[index] : std::string_view();
    out->emplace_back(std::string(name), std::string(value));
    ++index;
  }
  return index;
}

std::vector<prometheus::ClientMetric::Label> Joined(
    std::span<const std::pair<std::string, std::string>> labels) {
  std::vector<prometheus::ClientMetric::Label> separate;
  std::string name;
  bool plain = true;
  for (size_t i = 0; i < labels.size(); ++i) {
    separate.push_back({labels[i].first, labels[i].second});
    name += labels[i].first;
    if (i + 1 == labels.size()) break;
    plain = plain && labels[i].second.find_first_of("\\\n\"") == std::string::npos;
    name.append("=\"").append(labels[i].second).append("\",");
  }
  if (!plain || separate.empty()) return separate;
  return {{std::move(name), labels.back().second}};
}

}  // namespace

std::string_view LabelOf(std::span<const std::pair<std::string, std::string>> labels, std::string_view name) {
  for (const auto& [label, value] : labels) {
    if (label == name) return value;
  }
  return {};
}

void MetricStore::SetDeviceLabels(int device, std::string npu, std::string uuid) {
  MutexLock lock(mutex_);
  device_labels_[device] = {std::move(npu), std::move(uuid)};
}

SeriesId MetricStore::NewId() {
  if (!free_ids_.empty()) {
    SeriesId id = free_ids_.back();
    free_ids_.pop_back();
    return id;
  }
  if (next_id_ >= kMaxSeries) return kNoSeries;
  if (next_id_ % kChunk == 0) {
    owned_chunks_.push_back(std::make_unique<Chunk>());
    chunks_[next_id_ / kChunk].store(owned_chunks_.back().get(), std::memory_order_release);
  }
  return next_id_++;
}

SeriesId MetricStore::Intern(MetricId metric, int device,
                             std::span<const std::string_view> labels) {
  if (metric >= kMetrics.size()) return kNoSeries;
  std::string key = KeyOf(metric, device, labels);
  MutexLock lock(mutex_);
  if (auto found = by_key_.find(key); found != by_key_.end()) {
    ++SlotOf(found->second)->references;
    return found->second;
  }
  SeriesId id = NewId();
  if (id == kNoSeries) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return kNoSeries;
  }
  Slot& slot = *SlotOf(id);
  slot.references = 1;
  slot.description.metric = metric;
  slot.description.device = device;
  slot.description.labels.clear();
  if (kMetrics[metric].scope == MetricScope::kDevice) {
    const DeviceLabels& common = device_labels_[device];
    slot.description.labels.emplace_back("npu",
                                         common.npu.empty() ? std::to_string(device) : common.npu);
    slot.description.labels.emplace_back("uuid", common.uuid);
  }
  const MetricSpec& spec = kMetrics[metric];
  const size_t own = AppendLabels(spec.labels, labels, &slot.description.labels);
  if (spec.type == MetricType::kHistogram && own < labels.size()) {
    slot.description.labels.emplace_back("le", std::string(labels[own]));
  }
  slot.joined = Joined(slot.description.labels);
  slot.description.generation = slot.generation.fetch_add(1, std::memory_order_release) + 1;
  slot.time_ns.store(0, std::memory_order_relaxed);
  slot.interval_ns.store(0, std::memory_order_relaxed);
  slot.is_counter.store(kMetrics[metric].type == MetricType::kCounter, std::memory_order_relaxed);
  slot.preferred_ns.store(0, std::memory_order_relaxed);
  slot.offset.store(0, std::memory_order_relaxed);
  auto last = last_totals_.find(key);
  slot.value.store(last == last_totals_.end() ? 0 : last->second, std::memory_order_relaxed);
  slot.window.store(NewWindow(metric), std::memory_order_release);
  slot.key = &by_key_.emplace(std::move(key), id).first->first;
  order_dirty_ = true;
  return id;
}

// Null also when there are too many: the series then has no windowed view.
SampleWindow* MetricStore::NewWindow(MetricId metric) {
  const MetricId view = kWindowMetricOf[metric];
  if (view == kNoMetric) return nullptr;
  if (free_windows_.empty()) {
    if (owned_windows_.size() >= kMaxWindows) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    owned_windows_.push_back(std::make_unique<SampleWindow>());
    free_windows_.push_back(owned_windows_.back().get());
  }
  SampleWindow* window = free_windows_.back();
  free_windows_.pop_back();
  window->Restart(kMetrics[view].window_mean);
  return window;
}

void MetricStore::Release(SeriesId series) {
  MutexLock lock(mutex_);
  Slot* slot = SlotOf(series);
  if (slot == nullptr || slot->references == 0) return;
  if (--slot->references > 0) return;
  const MetricSpec& spec = kMetrics[slot->description.metric];
  if (spec.type == MetricType::kCounter && spec.scope == MetricScope::kDevice &&
      (last_totals_.size() < kMaxLastTotals || last_totals_.contains(*slot->key))) {
    last_totals_[*slot->key] = slot->value.load(std::memory_order_relaxed);
  }
  if (SampleWindow* window = slot->window.exchange(nullptr, std::memory_order_relaxed)) {
    free_windows_.push_back(window);
  }
  by_key_.erase(by_key_.find(*slot->key));
  slot->key = nullptr;
  slot->time_ns.store(0, std::memory_order_release);
  slot->generation.fetch_add(1, std::memory_order_release);
  free_ids_.push_back(series);
  order_dirty_ = true;
}

double MetricStore::LastTotal(SeriesId series) const {
  const Slot* slot = SlotOf(series);
  return slot == nullptr ? 0 : slot->value.load(std::memory_order_relaxed);
}

void MetricStore::DeviceGone(int device, int64_t time_ns) {
  MutexLock lock(mutex_);
  gone_ns_[device] = time_ns;
}

bool MetricStore::IsGone(const Slot& slot, int64_t time_ns) const {
  if (gone_ns_.empty()) return false;
  auto gone = gone_ns_.find(slot.description.device);
  return gone != gone_ns_.end() && time_ns <= gone->second;
}

void MetricStore::NoteScrape(int64_t now_ns) const {
  const int64_t bucket = SampleWindow::BucketOf(now_ns);
  if (bucket > scrape_bucket_.load(std::memory_order_relaxed)) {
    scrape_bucket_.store(bucket, std::memory_order_relaxed);
  }
}

// Two sources may come here at once: what each of them stores is sound by itself, and of the other's
// it only needs to know whether it is there.
bool MetricStore::Admit(Slot& slot, int64_t time_ns, SampleSource source, double* value) {
  const bool counter = slot.is_counter.load(std::memory_order_relaxed);
  const int64_t before = slot.preferred_ns.load(std::memory_order_relaxed);
  if (counter != (source == SampleSource::kReading)) {
    return before == 0 || (!counter && time_ns - before >= kChannelHoldNs);
  }
  slot.preferred_ns.store(time_ns, std::memory_order_relaxed);
  if (!counter) return true;
  const double shown = slot.value.load(std::memory_order_relaxed);
  double offset = slot.offset.load(std::memory_order_relaxed);
  const bool channel_came_first = before == 0 && slot.time_ns.load(std::memory_order_relaxed) != 0;
  if (channel_came_first && *value < shown) {
    offset = shown - *value;
    slot.offset.store(offset, std::memory_order_relaxed);
  } else if (offset != 0 && *value + offset < shown) {
    offset = 0;  // the counter itself began again
    slot.offset.store(offset, std::memory_order_relaxed);
  }
  *value += offset;
  return true;
}

void MetricStore::Write(std::span<const Sample> samples, SampleSource source) {
  const int64_t scraped = scrape_bucket_.load(std::memory_order_relaxed);
  for (const Sample& sample : samples) {
    Slot* slot = SlotOf(sample.series);
    if (slot == nullptr) continue;
    double value = sample.value;
    if (!Admit(*slot, sample.time_ns, source, &value)) continue;
    int64_t before = slot->time_ns.load(std::memory_order_relaxed);
    if (before != 0 && sample.time_ns > before) {
      slot->interval_ns.store(sample.time_ns - before, std::memory_order_relaxed);
    }
    if (SampleWindow* window = slot->window.load(std::memory_order_acquire)) {
      window->Add(value, sample.time_ns, slot->value.load(std::memory_order_relaxed), before,
                  scraped);
    }
    slot->value.store(value, std::memory_order_relaxed);
    slot->time_ns.store(sample.time_ns, std::memory_order_release);
  }
}

int64_t MetricStore::StaleAfter(const Slot& slot) {
  int64_t interval = slot.interval_ns.load(std::memory_order_relaxed);
  if (interval == 0) return kMaxStale;
  return std::clamp(interval * 7 / 2, kMinStale, kMaxStale);
}

const std::vector<MetricStore::SortedSeries>& MetricStore::Ordered() const {
  if (order_dirty_) {
    order_.clear();
    for (const auto& [key, id] : by_key_) order_.push_back({SlotOf(id)->description.metric, id});
    std::ranges::sort(order_, [](const SortedSeries& a, const SortedSeries& b) {
      return a.metric != b.metric ? a.metric < b.metric : a.series < b.series;
    });
    OrderHistograms();
    order_dirty_ = false;
  }
  return order_;
}

// Ids are used again, so the parts of a histogram need not be neighbours by them.
void MetricStore::OrderHistograms() const {
  struct Position {
    size_t histogram;  // by its first part
    double bound;
    bool sum;
    SortedSeries entry;
  };
  const auto is_histogram = [](const SortedSeries& entry) {
    return kMetrics[entry.metric].type == MetricType::kHistogram;
  };
  for (auto begin = order_.begin(); begin != order_.end();) {
    begin = std::find_if(begin, order_.end(), is_histogram);
    const auto end = std::find_if(begin, order_.end(), [&](const SortedSeries& entry) {
      return entry.metric != begin->metric;
    });
    std::map<std::string_view, size_t> histograms;
    std::vector<Position> places;
    for (auto entry = begin; entry != end; ++entry) {
      const Slot& slot = *SlotOf(entry->series);
      const std::string_view key = *slot.key;
      const std::string_view le = key.substr(key.rfind('\x1f') + 1);
      double bound = std::numeric_limits<double>::infinity();
      std::from_chars(le.data(), le.data() + le.size(), bound);
      const auto [known, is_new] =
          histograms.try_emplace(key.substr(0, key.size() - le.size()), histograms.size());
      places.push_back({known->second, bound, le == kHistogramSum, *entry});
    }
    std::ranges::stable_sort(places, [](const Position& a, const Position& b) {
      return std::tie(a.histogram, a.sum, a.bound) < std::tie(b.histogram, b.sum, b.bound);
    });
    std::transform(places.begin(), places.end(), begin, [](const Position& p) { return p.entry; });
    begin = end;
  }
}

bool MetricStore::Describe(SeriesId series, SeriesDescription* out) const {
  MutexLock lock(mutex_);
  const Slot* slot = SlotOf(series);
  if (slot == nullptr || slot->references == 0) return false;
  *out = slot->description;
  return true;
}

uint32_t MetricStore::Generation(SeriesId series) const {
  const Slot* slot = SlotOf(series);
  return slot == nullptr ? 0 : slot->generation.load(std::memory_order_acquire);
}

size_t MetricStore::size() const {
  MutexLock lock(mutex_);
  return by_key_.size();
}

}  // namespace profd
