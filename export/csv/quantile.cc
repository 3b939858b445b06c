#include "export/csv/quantile.h"

#include <bit>
#include <span>

namespace profd::exporting::csv {
namespace {

constexpr int kDigitBits = 16;
constexpr size_t kDigits = size_t{1} << kDigitBits;

void CountIn(std::span<const double> values, uint64_t prefix, int shift,
             std::vector<uint64_t>* counts) {
  for (double value : values) {
    uint64_t bits = std::bit_cast<uint64_t>(value) >> shift;
    if (bits >> kDigitBits == prefix) ++(*counts)[bits % kDigits];
  }
}

}  // namespace

void ExactQuantile::Add(double value) {
  if (!(value > 0)) return;
  values_.push_back(value);
  if (values_.size() >= in_memory_) Spill();
}

void ExactQuantile::Finish() {
  constexpr size_t kKept = 1024;
  if (values_.size() > kKept) Spill();
  values_.shrink_to_fit();
}

void ExactQuantile::Merge(ExactQuantile& later) {
  if (error_.ok()) error_ = later.error_;
  blocks_.insert(blocks_.end(), later.blocks_.begin(), later.blocks_.end());
  spilled_values_ += later.spilled_values_;
  for (double value : later.values_) Add(value);
}

void ExactQuantile::Spill() {
  if (values_.empty() || !error_.ok()) {
    values_.clear();
    return;
  }
  auto offset = spool_->Append(std::as_bytes(std::span(values_)));
  if (!offset.ok()) {
    error_ = offset.status();
  } else {
    blocks_.push_back({*offset, values_.size()});
    spilled_values_ += values_.size();
  }
  values_.clear();
}

Status ExactQuantile::Count(uint64_t prefix, int shift, std::vector<uint64_t>* counts) const {
  CountIn(values_, prefix, shift, counts);
  std::vector<double> buffer;
  for (const Block& block : blocks_) {
    buffer.resize(block.values);
    RETURN_IF_ERROR(spool_->Read(block.offset, std::as_writable_bytes(std::span(buffer))));
    CountIn(buffer, prefix, shift, counts);
  }
  return Status::Ok();
}

Result<double> ExactQuantile::Smallest(uint64_t k) const {
  if (!error_.ok()) return error_;
  if (k >= size()) return OutOfRange("a quantile of too few values");
  // The bits of positive doubles are in the values' order: 16 of them at a time, from the top.
  uint64_t prefix = 0;
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    std::vector<uint64_t> counts(kDigits);
    RETURN_IF_ERROR(Count(prefix, shift, &counts));
    size_t digit = 0;
    while (k >= counts[digit]) k -= counts[digit++];
    prefix = prefix << kDigitBits | digit;
  }
  return std::bit_cast<double>(prefix);
}

}  // namespace profd::exporting::csv
