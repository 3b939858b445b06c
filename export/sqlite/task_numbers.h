// One number for each distinct task, whatever how often it ran, from 0 by first start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "export/operators/model.h"

namespace profd::exporting {

class TaskNumbers {
 public:
  // `rows` outlive this.
  explicit TaskNumbers(std::span<const operators::TaskRow> rows);

  size_t size() const { return order_.size(); }
  size_t RowAt(size_t place) const { return order_[place]; }        // rows by start
  uint32_t NumberAt(size_t place) const { return numbers_[place]; }
  int64_t distinct() const { return distinct_; }
  // Of a task whatever its type; -1: it did not run.
  int64_t Find(int16_t device, uint16_t stream, uint16_t batch, uint16_t task, uint32_t context) const;

 private:
  std::span<const operators::TaskRow> rows_;
  Large<uint32_t> order_;
  Large<uint32_t> numbers_;
  Large<uint32_t> by_key_;  // places
  int64_t distinct_ = 0;
};

}  // namespace profd::exporting
