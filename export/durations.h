// How long steps and ranges took: count, mean, percentiles, max per rank and name. What crosses the
// border of the session is left out.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/event.h"

namespace profd::exporting {

// Lengths of time. Percentiles are exact up to kExact values and within 0.1 % of the value beyond;
// memory is bounded.
class Durations {
 public:
  static constexpr size_t kExact = 65536;

  void Add(int64_t ns);
  void Merge(const Durations& other);
  uint64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  int64_t max() const { return max_; }
  // The value at rank ceil(count * percent / 100); 0 of none.
  int64_t Percentile(unsigned percent) const;

 private:
  void Fold();

  uint64_t count_ = 0;
  double sum_ = 0;
  int64_t max_ = 0;
  std::vector<int64_t> values_;           // until there are too many
  std::map<int64_t, uint64_t> buckets_;   // by the value, rounded to 11 bits
};

class DurationStats {
 public:
  static constexpr size_t kMaxGroups = 4096;
  struct Key {
    std::optional<int> rank;
    int device = -1;
    EventKind kind = EventKind::kStep;
    std::string name;  // of a range
    auto operator<=>(const Key&) const = default;
  };

  // Events without a length, and those of other kinds, are passed over. `rank`: of its place, where
  // the event has none.
  void Add(const Event& event, std::optional<int> rank);
  void Merge(const DurationStats& other);
  const std::map<Key, Durations>& groups() const { return groups_; }
  uint64_t left_out() const { return left_out_; }  // events of groups beyond kMaxGroups

 private:
  Durations* GroupOf(const Key& key);

  std::map<Key, Durations> groups_;
  uint64_t left_out_ = 0;
};

// "step", "device_step", "iteration", "range"
std::string_view DurationKind(EventKind kind);

}  // namespace profd::exporting
