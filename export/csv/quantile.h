// The k-th smallest of any number of values, exactly and in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "export/spool.h"

namespace profd::exporting::csv {

// One thread.
class ExactQuantile {
 public:
  static constexpr size_t kInMemory = 128 * 1024;  // values; what is more goes to the spool

  explicit ExactQuantile(Spool& spool, size_t in_memory = kInMemory)
      : spool_(&spool), in_memory_(in_memory) {}

  // Values above 0; others do not count, as in the vendor's recommendations.
  void Add(double value);
  // After the last value: gives up memory. There may be many of these.
  void Finish();
  void Merge(ExactQuantile& later);
  uint64_t size() const { return spilled_values_ + values_.size(); }
  // 0 <= k < size().
  Result<double> Smallest(uint64_t k) const;

 private:
  struct Block {
    uint64_t offset;
    uint64_t values;
  };

  void Spill();
  // How many values whose bits above `shift` + 16 equal `prefix` have which next 16 bits.
  Status Count(uint64_t prefix, int shift, std::vector<uint64_t>* counts) const;

  Spool* spool_;
  size_t in_memory_;
  Status error_;
  std::vector<double> values_;
  std::vector<Block> blocks_;
  uint64_t spilled_values_ = 0;
};

}  // namespace profd::exporting::csv
