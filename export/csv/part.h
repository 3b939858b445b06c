// What a CSV keeps of one data file's rows, until all files are read and the CSV can be written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "export/batch.h"
#include "export/csv/csv_row.h"
#include "export/dump_info.h"
#include "export/spool.h"
#include "export/strings.h"

namespace profd::exporting::csv {

// Where rows come from. All outlive the parts.
struct PartContext {
  const DumpInfo* dump = nullptr;
  const Place* place = nullptr;
  const DataFile* file = nullptr;
  const Strings* strings = nullptr;
  Spool* spool = nullptr;
  bool compat_msprof = false;
};

class Part {
 public:
  explicit Part(const PartContext& context) : context_(context) {}
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  virtual void Take(const Batch& batch) = 0;
  // After the last row, on the thread that took them.
  virtual Status Finish() { return Status::Ok(); }

  const PartContext& context() const { return context_; }

 protected:
  PartContext context_;
};

// A small CSV on its way into its file.
struct CsvText {
  std::string columns;  // the header after Device_id
  std::string rows;
  uint64_t row_count = 0;
};

// A part of only a few rows.
class Summary : public Part {
 public:
  using Part::Part;
  // Rows of another file of the same place and table, which follows this one.
  virtual void Merge(Summary& later) = 0;
  // The rows of the CSV `name`; `columns` may be changed while there are no rows.
  virtual Status Write(std::string_view name, CsvText* out) = 0;

 protected:
  // The next row, of this place; the caller ends it.
  CsvRow NextRow(CsvText* out) const {
    ++out->row_count;
    return {out->rows, *context_.place};
  }
};

// Adds values that are untrusted: the sum wraps rather than overflows.
inline void AddTo(int64_t* sum, int64_t value) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(*sum) + static_cast<uint64_t>(value));
}

// Some numbers per key of a column. Keys are untrusted: of too many, the later ones are left out.
template <class T, size_t kMaxSeries = 16384>
class SeriesMap {
 public:
  static constexpr size_t kMax = kMaxSeries;

  // Null: too many.
  T* Get(int64_t key) {
    if (key >= 0 && static_cast<size_t>(key) < small_.size()) {
      T*& slot = small_[static_cast<size_t>(key)];
      if (slot == nullptr) slot = Make(key);
      return slot;
    }
    auto it = large_.find(key);
    if (it != large_.end()) return it->second;
    if (large_.size() >= kMax) return nullptr;
    return large_[key] = Make(key);
  }
  // Each into that of the same key: T::Merge.
  void Merge(SeriesMap& later) {
    for (auto& [key, other] : later.Sorted()) {
      if (T* mine = Get(key)) mine->Merge(*other);
    }
  }
  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  std::vector<std::pair<int64_t, T*>> Sorted() {
    std::vector<std::pair<int64_t, T*>> all;
    for (auto& [key, value] : values_) all.emplace_back(key, &value);
    std::ranges::sort(all, {}, [](const auto& entry) { return entry.first; });
    return all;
  }

 private:
  T* Make(int64_t key) { return &values_.emplace_back(key, T{}).second; }

  std::deque<std::pair<int64_t, T>> values_;
  std::vector<T*> small_ = std::vector<T*>(128);
  std::map<int64_t, T*> large_;
};

}  // namespace profd::exporting::csv
