#include "sim/record_ring.h"

#include <algorithm>
#include <cstring>

namespace profd::sim {

void RecordRing::Append(std::string_view bytes) {
  buffer_.append(bytes);
  if (size() > kCapacity) DropOldest(size() - kCapacity);
  if (head_ >= kCapacity) {
    buffer_.erase(0, head_);
    head_ = 0;
  }
}

size_t RecordRing::PartialFront() const {
  if (in_record_ == 0) return 0;
  if (record_size_ != 0) return std::min(size(), record_size_ - in_record_);
  const size_t end = buffer_.find('\n', head_);
  return end == std::string::npos ? size() : end + 1 - head_;
}

void RecordRing::DropOldest(size_t at_least) {
  const size_t keep = PartialFront();
  size_t drop = std::min(at_least, size() - keep);
  if (record_size_ != 0) {
    drop = std::min((drop + record_size_ - 1) / record_size_ * record_size_, size() - keep);
  } else {
    const size_t end = buffer_.find('\n', head_ + keep + (drop > 0 ? drop - 1 : 0));
    drop = end == std::string::npos ? size() - keep : end + 1 - head_ - keep;
  }
  std::memmove(buffer_.data() + head_ + drop, buffer_.data() + head_, keep);
  head_ += drop;
  dropped_bytes_ += drop;
}

size_t RecordRing::Read(char* out, size_t wanted) {
  const size_t count = std::min(wanted, size());
  if (count == 0) return 0;
  std::memcpy(out, buffer_.data() + head_, count);
  if (record_size_ != 0) {
    in_record_ = (in_record_ + count) % record_size_;
  } else {
    in_record_ = out[count - 1] == '\n' ? 0 : 1;
  }
  head_ += count;
  if (head_ == buffer_.size()) {
    constexpr size_t kKeepCapacity = size_t{64} << 10;
    head_ = 0;
    buffer_.clear();
    if (buffer_.capacity() > kKeepCapacity) buffer_.shrink_to_fit();
  }
  return count;
}

}  // namespace profd::sim
