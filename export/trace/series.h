// Which series a row belongs to: what is made once per combination of key cells is found again by
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "export/batch.h"
#include "export/number_text.h"
#include "export/trace/layout.h"

namespace profd::exporting {

inline constexpr size_t kMaxKeys = 3;

// Values of one arg, ready to be read: columns by number.
struct ArgSource {
  Show show = Show::kNone;
  size_t column = 0;
  int column2 = -1;
  bool real = false;
  double mul = 1;
  double div = 1;
};

struct ArgValue {
  bool is_int = false;
  int64_t integer = 0;
  double real = 0;
  double Number() const { return is_int ? static_cast<double>(integer) : real; }
};

inline ArgValue ValueOf(const ArgSource& source, const Batch& batch, size_t row) {
  double value = 0;
  switch (source.show) {
    case Show::kConstant:
      return {false, 0, source.mul};
    case Show::kInteger:
      value = batch.Number(source.column, row);
      return {true, value > -9e18 && value < 9e18 ? static_cast<int64_t>(value) : 0, 0};
    case Show::kCell:
    case Show::kKey:
      if (!source.real) return {true, batch.Ints(source.column)[row], 0};
      break;
    default:
      break;
  }
  value = batch.Number(source.column, row);
  if (source.column2 >= 0) value += batch.Number(static_cast<size_t>(source.column2), row);
  // As the vendor's analyser does it: one rounding for each step.
  if (source.mul != 1) value *= source.mul;
  if (source.div != 1) value /= source.div;
  return {false, 0, source.show == Show::kReal3 ? PyRound3(value) : value};
}

// A series' counter with its names filled in; args of kNone are left out.
struct NamedArg {
  std::string key;
  std::string_view unit;
  ArgSource source;
};
struct NamedCounter {
  std::string name;
  int tid = 0;
  std::vector<NamedArg> args;
};
// What a row with these keys is shown as.
std::vector<NamedCounter> CountersOf(const TableLayout& layout, const TableSpec& table,
                                     std::span<const int64_t> keys, const Strings* strings);

// Not thread-safe. Bounded: with more than kMaxSeries the older ones are forgotten, and made again
// when they come back. A pointer stays valid until the next Find.
template <typename Payload>
class SeriesCache {
 public:
  static constexpr size_t kMaxSeries = 1 << 16;
  using Keys = std::array<int64_t, kMaxKeys>;

  // `make(keys)` makes the payload of a new series; `keys` has one cell per key column.
  template <typename Make>
  Payload& Find(const Batch& batch, size_t row, size_t key_columns, const Make& make) {
    Keys keys = {};
    for (size_t k = 0; k < key_columns; ++k) keys[k] = batch.Ints(k)[row];
    // Rows come in turns: who followed last time mostly follows again.
    if (last_ < entries_.size()) {
      size_t guess = entries_[last_]->next;
      if (guess < entries_.size() && entries_[guess]->keys == keys) {
        last_ = guess;
        return entries_[guess]->payload;
      }
    }
    size_t found = Look(keys, key_columns, make);
    if (last_ < entries_.size()) entries_[last_]->next = found;
    last_ = found;
    return entries_[found]->payload;
  }

 private:
  struct Entry {
    Keys keys;
    size_t next = SIZE_MAX;
    Payload payload;
  };

  static size_t Hash(const Keys& keys) {
    uint64_t hash = 0x9E3779B97F4A7C15;
    for (int64_t key : keys) {
      hash = (hash ^ static_cast<uint64_t>(key)) * 0xFF51AFD7ED558CCD;
      hash ^= hash >> 32;
    }
    return static_cast<size_t>(hash);
  }

  template <typename Make>
  size_t Look(const Keys& keys, size_t key_columns, const Make& make) {
    if (entries_.size() >= kMaxSeries) {
      entries_.clear();
      slots_.clear();
      last_ = SIZE_MAX;
    }
    if (entries_.size() * 2 >= slots_.size()) Grow();
    size_t mask = slots_.size() - 1;
    size_t slot = Hash(keys) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
      if (entries_[slots_[slot] - 1]->keys == keys) return slots_[slot] - 1;
    }
    auto entry = std::make_unique<Entry>();
    entry->keys = keys;
    entry->payload = make(std::span<const int64_t>(keys).first(key_columns));
    entries_.push_back(std::move(entry));
    slots_[slot] = static_cast<uint32_t>(entries_.size());
    return entries_.size() - 1;
  }

  void Grow() {
    slots_.assign(std::max<size_t>(16, slots_.size() * 2), 0);
    size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < entries_.size(); ++i) {
      size_t slot = Hash(entries_[i]->keys) & mask;
      while (slots_[slot] != 0) slot = (slot + 1) & mask;
      slots_[slot] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<uint32_t> slots_;  // number of the entry + 1; a power of two of them
  size_t last_ = SIZE_MAX;
};

}  // namespace profd::exporting
