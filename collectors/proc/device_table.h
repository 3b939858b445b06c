// Series that come and go with the things they describe: a network device, a disk, a process.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "collectors/series.h"

namespace profd {

// One interned series, released with its owner. Move-only; default-constructed it is kNoSeries.
class OwnedSeries {
 public:
  OwnedSeries() = default;
  OwnedSeries(SeriesRegistry& registry, MetricId metric,
              std::initializer_list<std::string_view> labels = {})
      : registry_(&registry), id_(registry.Intern(metric, kHostDevice, labels)) {}
  ~OwnedSeries() { Reset(); }
  OwnedSeries(OwnedSeries&& other) noexcept
      : registry_(other.registry_), id_(std::exchange(other.id_, kNoSeries)) {}
  OwnedSeries& operator=(OwnedSeries&& other) noexcept {
    if (this != &other) {
      Reset();
      registry_ = other.registry_;
      id_ = std::exchange(other.id_, kNoSeries);
    }
    return *this;
  }
  OwnedSeries(const OwnedSeries&) = delete;
  OwnedSeries& operator=(const OwnedSeries&) = delete;

  SeriesId id() const { return id_; }

 private:
  void Reset() {
    if (id_ != kNoSeries) registry_->Release(id_);
    id_ = kNoSeries;
  }
  SeriesRegistry* registry_ = nullptr;
  SeriesId id_ = kNoSeries;
};

// Rows by name, at most `limit`: BeginPass, Find for every name that is there, EndPass drops the
// rest with its series. Finding is cheap when names come in the same order each time, as they do in
// /proc; nothing is allocated unless a name is new.
template <class Row>
class DeviceTable {
 public:
  explicit DeviceTable(size_t limit) : limit_(limit) {}

  void BeginPass() {
    for (Entry& entry : rows_) entry.seen = false;
    next_ = 0;
    refused_ = 0;
  }
  // The row of `name`; `make(name)` gives a new one. Null when the table is full.
  template <class Make>
  Row* Find(std::string_view name, Make make) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      size_t at = (next_ + i) % rows_.size();
      if (rows_[at].name != name) continue;
      rows_[at].seen = true;
      next_ = at + 1;
      return rows_[at].row.get();
    }
    if (rows_.size() >= limit_) {
      ++refused_;
      return nullptr;
    }
    rows_.push_back({std::string(name), std::make_unique<Row>(make(name)), true});
    next_ = rows_.size();
    return rows_.back().row.get();
  }
  void EndPass() {
    std::erase_if(rows_, [](const Entry& entry) { return !entry.seen; });
  }
  template <class Visit>
  void ForEach(Visit visit) {
    for (Entry& entry : rows_) visit(*entry.row);
  }
  size_t size() const { return rows_.size(); }
  // Names of this pass for which there was no space; reported once. `things`: what the rows are.
  Status Refused(std::string_view things) {
    if (refused_ == 0 || std::exchange(refusal_reported_, true)) return {};
    return ResourceExhausted(fmt::format("{} {} beyond the first {} are not measured", refused_, things, limit_));
  }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Row> row;
    bool seen;
  };
  size_t limit_;
  size_t next_ = 0;
  size_t refused_ = 0;
  bool refusal_reported_ = false;
  std::vector<Entry> rows_;
};

}  // namespace profd
