// What a channel holds until it is read. Bounded: when full, the oldest complete records go and are
// counted, like in the hardware's ring; a record the reader has half in its hands is finished
// first. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace profd::sim {

class RecordRing {
 public:
  static constexpr size_t kCapacity = size_t{1} << 20;

  // `record_size` 0: text, a record is a line.
  explicit RecordRing(size_t record_size) : record_size_(record_size) {}

  void Append(std::string_view bytes);
  // Hands out up to `size` bytes, cutting records where it must.
  size_t Read(char* out, size_t size);
  size_t size() const { return buffer_.size() - head_; }
  uint64_t dropped_bytes() const { return dropped_bytes_; }
  // Bytes lost before they were ever generated (no read for so long that they could not have
  // survived).
  void CountNeverGenerated(uint64_t bytes) { dropped_bytes_ += bytes; }

 private:
  // Length of the piece at the front that belongs to a record already begun.
  size_t PartialFront() const;
  void DropOldest(size_t at_least);

  size_t record_size_;
  size_t in_record_ = 0;  // bytes of the front record already handed out
  size_t head_ = 0;
  uint64_t dropped_bytes_ = 0;
  std::string buffer_;
};

}  // namespace profd::sim
