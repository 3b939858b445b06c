#include "export/durations.h"

#include <algorithm>
#include <bit>

#include "export/large.h"

namespace profd::exporting {
namespace {

constexpr int kBits = 11;

// The middle of the values that are the same in their first kBits bits.
int64_t Rounded(int64_t ns) {
  const auto value = static_cast<uint64_t>(ns);
  const auto width = static_cast<int>(std::bit_width(value));
  if (width <= kBits) return ns;
  const int shift = width - kBits;
  return static_cast<int64_t>((value >> shift << shift) + (uint64_t{1} << (shift - 1)));
}

}  // namespace

void Durations::Add(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  ++count_;
  sum_ += static_cast<double>(ns);
  max_ = std::max(max_, ns);
  if (!buckets_.empty()) {
    ++buckets_[Rounded(ns)];
    return;
  }
  values_.push_back(ns);
  if (values_.size() > kExact) Fold();
}

void Durations::Fold() {
  for (int64_t value : values_) ++buckets_[Rounded(value)];
  Release(&values_);
}

void Durations::Merge(const Durations& other) {
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  if (!buckets_.empty() || !other.buckets_.empty() || values_.size() > kExact) Fold();
  for (const auto& [value, count] : other.buckets_) buckets_[value] += count;
}

int64_t Durations::Percentile(unsigned percent) const {
  if (count_ == 0) return 0;
  const uint64_t place = std::max<uint64_t>((count_ * percent + 99) / 100, 1);
  if (buckets_.empty()) {
    std::vector<int64_t> values = values_;
    auto at = values.begin() + static_cast<std::ptrdiff_t>(place - 1);
    std::ranges::nth_element(values, at);
    return *at;
  }
  uint64_t seen = 0;
  for (const auto& [value, count] : buckets_) {
    seen += count;
    if (seen >= place) return std::min(value, max_);
  }
  return max_;
}

Durations* DurationStats::GroupOf(const Key& key) {
  auto it = groups_.find(key);
  if (it != groups_.end()) return &it->second;
  return groups_.size() < kMaxGroups ? &groups_[key] : nullptr;
}

void DurationStats::Add(const Event& event, std::optional<int> rank) {
  if (event.partial || event.kind == EventKind::kMark || event.kind == EventKind::kLoss ||
      event.kind == EventKind::kFrame) {
    return;
  }
  const bool range = event.kind == EventKind::kRange;
  if (range && event.dur_ns <= 0) return;
  Durations* group = GroupOf({event.rank ? event.rank : rank, event.device, event.kind,
                              range ? event.name : std::string()});
  if (group == nullptr) {
    ++left_out_;
  } else {
    group->Add(event.dur_ns);
  }
}

void DurationStats::Merge(const DurationStats& other) {
  left_out_ += other.left_out_;
  for (const auto& [key, durations] : other.groups_) {
    Durations* group = GroupOf(key);
    if (group == nullptr) {
      left_out_ += durations.count();
    } else {
      group->Merge(durations);
    }
  }
}

std::string_view DurationKind(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return "step";
    case EventKind::kDeviceStep:
      return "device_step";
    case EventKind::kIteration:
      return "iteration";
    default:
      return "range";
  }
}

}  // namespace profd::exporting
