// Rows on their way from a decoder to the formats: columns of 64-bit cells, a few thousand rows at a
// time, so that one virtual call is paid per batch and memory does not depend on the dump's size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>

#include "export/table.h"

namespace profd::exporting {

// Rows of one table and one device (or the host). Valid during the call it is passed to.
struct Batch {
  const TableSpec* table = nullptr;
  int device = -1;                  // logical id; -1 = host
  std::span<const int64_t> t_ns;    // wall clock, ns since the epoch, as the vendor's analyser has it
  const uint64_t* cells = nullptr;  // column after column, `stride` cells each
  size_t stride = 0;

  size_t rows() const { return t_ns.size(); }
  // kKey, kName and kInt columns.
  std::span<const int64_t> Ints(size_t column) const {
    return {reinterpret_cast<const int64_t*>(cells + column * stride), rows()};
  }
  // kReal columns.
  std::span<const double> Reals(size_t column) const {
    return {reinterpret_cast<const double*>(cells + column * stride), rows()};
  }
  // Any column as a number.
  double Number(size_t column, size_t row) const {
    uint64_t cell = cells[column * stride + row];
    return IsReal(table->columns[column].type) ? std::bit_cast<double>(cell)
                                               : static_cast<double>(static_cast<int64_t>(cell));
  }
};

// A caller that takes rows. Called by one thread at a time. What goes wrong is kept and read with
// status(); after an error rows are ignored.
class BatchSink {
 public:
  virtual ~BatchSink() = default;
  virtual void Take(const Batch& batch) = 0;
};

// Rows outside are left out, after they have served as the predecessor of a difference. Both ends
// belong to the window.
struct TimeWindow {
  int64_t from_ns = std::numeric_limits<int64_t>::min();
  int64_t to_ns = std::numeric_limits<int64_t>::max();
  bool Has(int64_t t_ns) const { return t_ns >= from_ns && t_ns <= to_ns; }
  bool HasAll() const { return Has(std::numeric_limits<int64_t>::min()) && Has(std::numeric_limits<int64_t>::max()); }
};

// Gathers the rows of one table and hands them on in batches. One thread. Allocates once.
class BatchBuilder {
 public:
  static constexpr size_t kRows = 1024;

  // `table` and `sink` outlive the builder.
  BatchBuilder(const TableSpec& table, int device, const TimeWindow& window, BatchSink& sink)
      : table_(table), device_(device), window_(window), sink_(sink) {}
  BatchBuilder(const BatchBuilder&) = delete;
  BatchBuilder& operator=(const BatchBuilder&) = delete;

  // One row, its cells in the order of the table's columns: integers for kKey, kName and kInt,
  // doubles for kReal. False when the row is outside of the window.
  template <typename... Cells>
  bool Add(int64_t t_ns, Cells... cells) {
    uint64_t* out = Begin(t_ns);
    if (out == nullptr) return false;
    ((*out = ToCell(cells), out += kRows), ...);
    return true;
  }
  // The same for many cells at once (already as ToCell makes them).
  bool AddCells(int64_t t_ns, std::span<const uint64_t> cells) {
    uint64_t* out = Begin(t_ns);
    if (out == nullptr) return false;
    for (uint64_t cell : cells) {
      *out = cell;
      out += kRows;
    }
    return true;
  }
  // Hands on what is there. Call at the end.
  void Flush();
  uint64_t rows() const { return total_ + size_; }

  template <typename T>
  static uint64_t ToCell(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    } else {
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    }
  }

 private:
  // Space for one more row: its first cell, the next ones kRows further on each.
  uint64_t* Begin(int64_t t_ns) {
    if (!window_.Has(t_ns)) return nullptr;
    if (size_ == kRows) Flush();
    if (cells_ == nullptr) cells_ = std::make_unique<uint64_t[]>(kRows * table_.columns.size());
    timestamps_[size_] = t_ns;
    return cells_.get() + size_++;
  }

  const TableSpec& table_;
  int device_;
  TimeWindow window_;
  BatchSink& sink_;
  size_t size_ = 0;
  uint64_t total_ = 0;
  std::array<int64_t, kRows> timestamps_;
  std::unique_ptr<uint64_t[]> cells_;
};

}  // namespace profd::exporting
