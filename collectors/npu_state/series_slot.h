// Series that are interned when their value is read for the first time and released when reading it
// fails, so that an unknown value is absent instead of old.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "collectors/collector.h"
#include "collectors/series.h"

namespace profd {

// "0" to "15": labels of links, lanes, levels.
inline constexpr std::array<std::string_view, 16> kNumberText = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"};

// One series of a fixed name. The label values are literals.
struct SeriesSlot {
  SeriesSlot() = default;
  explicit SeriesSlot(MetricId m) : metric(m) {}
  SeriesSlot(MetricId m, std::string_view a) : metric(m), labels{a}, label_count(1) {}
  SeriesSlot(MetricId m, std::string_view a, std::string_view b)
      : metric(m), labels{a, b}, label_count(2) {}
  SeriesSlot(MetricId m, std::string_view a, std::string_view b, std::string_view c)
      : metric(m), labels{a, b, c}, label_count(3) {}

  MetricId metric = 0;
  std::array<std::string_view, 3> labels{};
  size_t label_count = 0;
  SeriesId id = kNoSeries;
  uint32_t epoch = 0;  // of the SlotOwner; an older one: not interned
};

// Interns and releases the series of one device (or of the node). Releases all when destroyed.
class SlotOwner {
 public:
  SlotOwner(SeriesRegistry& registry, int device) : registry_(registry), device_(device) {}
  ~SlotOwner() { Clear(); }
  SlotOwner(const SlotOwner&) = delete;
  SlotOwner& operator=(const SlotOwner&) = delete;

  SeriesId Use(SeriesSlot& slot) {
    if (slot.epoch != epoch_) {
      slot.id = Intern(slot.metric, std::span(slot.labels.data(), slot.label_count));
      slot.epoch = epoch_;
    }
    return slot.id;
  }
  void Drop(SeriesSlot& slot) {
    if (slot.epoch != epoch_) return;
    Drop(slot.id);
    slot.epoch = 0;
  }
  SeriesId Intern(MetricId metric, std::span<const std::string_view> labels) {
    ids_.push_back(registry_.Intern(metric, device_, labels));
    return ids_.back();
  }
  void Drop(SeriesId series) {
    auto it = std::ranges::find(ids_, series);
    if (it == ids_.end()) return;
    *it = ids_.back();
    ids_.pop_back();
    registry_.Release(series);
  }
  // Releases everything; slots find out by themselves.
  void Clear() {
    for (SeriesId id : ids_) registry_.Release(id);
    ids_.clear();
    ++epoch_;
  }
  uint32_t epoch() const { return epoch_; }
  // Also for others who own series of the device: what was sampled until then is no longer shown.
  void DeviceGone(int64_t time_ns) { registry_.DeviceGone(device_, time_ns); }

 private:
  SeriesRegistry& registry_;
  int device_;
  uint32_t epoch_ = 1;
  std::vector<SeriesId> ids_;
};

// Series whose labels come and go (fault codes, processes): one for each key, released when a round
// does not mention it. Bounded by the caller.
template <class Key>
class ComingAndGoing {
 public:
  explicit ComingAndGoing(SlotOwner& owner) : owner_(&owner) {}

  void BeginRound() {
    if (epoch_ != owner_->epoch()) entries_.clear();  // already released
    epoch_ = owner_->epoch();
    for (auto& [key, entry] : entries_) entry.seen = false;
  }
  // Has a series, of this round or the one before.
  bool Knows(const Key& key) const { return entries_.contains(key); }
  // Was used in this round.
  bool Seen(const Key& key) const {
    auto it = entries_.find(key);
    return it != entries_.end() && it->second.seen;
  }
  // `labels` are looked at only for a new key.
  template <class MakeLabels>
  SeriesId Use(const Key& key, MetricId metric, MakeLabels make_labels) {
    auto [it, is_new] = entries_.try_emplace(key);
    if (is_new) {
      const auto texts = make_labels();
      std::array<std::string_view, std::tuple_size_v<decltype(texts)>> labels;
      for (size_t i = 0; i < labels.size(); ++i) labels[i] = texts[i];
      it->second.series = owner_->Intern(metric, labels);
    }
    it->second.seen = true;
    return it->second.series;
  }
  void EndRound() {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.seen) {
        ++it;
        continue;
      }
      owner_->Drop(it->second.series);
      it = entries_.erase(it);
    }
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    SeriesId series = kNoSeries;
    bool seen = false;
  };
  SlotOwner* owner_;
  uint32_t epoch_ = 0;
  std::map<Key, Entry> entries_;
};

}  // namespace profd
