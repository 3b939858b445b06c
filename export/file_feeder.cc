#include "export/file_feeder.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "dump/slice_source.h"

namespace profd::exporting {
FileFeeder::FileFeeder(const DumpReader& reader, size_t record_size, std::vector<std::byte>* buffer,
                       Progress progress)
    : reader_(reader), record_size_(record_size), buffer_(*buffer), progress_(std::move(progress)) {
  size_t carry = record_size == 0 ? kMaxLine : record_size;
  if (buffer_.size() < carry + kChunk) buffer_.resize(carry + kChunk);
}

size_t FileFeeder::WholeBytes(size_t size) const {
  if (record_size_ != 0) return size - size % record_size_;
  const void* last = ::memrchr(buffer_.data(), '\n', size);
  if (last == nullptr) return 0;
  return static_cast<size_t>(static_cast<const std::byte*>(last) - buffer_.data()) + 1;
}

void FileFeeder::Drop() {
  bad_bytes_ += carried_;
  carried_ = 0;
}

// A slice may end within a line, or with a line that only lacks its end. The next one then begins with a line of its
// own, and that is not the rest of the carried one: "1" and "0:000000000 5 5" make a line together, "9:000000000 5 5"
// and "10:000000000 5 5" do not.
void FileFeeder::EndCarriedLine(size_t got, Decoder* decoder) {
  const auto* text = reinterpret_cast<const char*>(buffer_.data());
  std::string_view joined(text, carried_ + got);
  joined = joined.substr(0, joined.find('\n', carried_));
  if (joined.ends_with('\r')) joined.remove_suffix(1);
  if (joined.size() < carried_ || decoder->IsLine(joined) || !decoder->IsLine(joined.substr(carried_))) return;
  decoder->Feed({buffer_.data(), carried_}, slice_start_);
  std::memmove(buffer_.data(), buffer_.data() + carried_, got);
  carried_ = 0;
  slice_start_ = true;
}

void FileFeeder::Consume(size_t got, Decoder* decoder) {
  if (std::exchange(joins_slices_, false)) EndCarriedLine(got, decoder);
  size_t size = carried_ + got;
  size_t begin = 0;
  carried_ = 0;
  if (skip_bytes_ > 0) {
    const size_t skipped = std::min(skip_bytes_, size);
    skip_bytes_ -= skipped;
    bad_bytes_ += skipped;
    size -= skipped;
    std::memmove(buffer_.data(), buffer_.data() + skipped, size);
  }
  if (skip_line_) {
    const void* end = std::memchr(buffer_.data(), '\n', size);
    begin = end == nullptr
                ? size
                : static_cast<size_t>(static_cast<const std::byte*>(end) - buffer_.data()) + 1;
    bad_bytes_ += begin;
    skip_line_ = end == nullptr;
    if (begin == size) return;
  }
  size_t whole = WholeBytes(size);
  if (whole > begin) {
    decoder->Feed({buffer_.data() + begin, whole - begin}, slice_start_ && begin == 0);
    slice_start_ = false;
  } else {
    whole = begin;
  }
  carried_ = size - whole;
  std::memmove(buffer_.data(), buffer_.data() + whole, carried_);
  if (record_size_ == 0 && carried_ > kMaxLine) {
    Drop();
    skip_line_ = true;
  }
}

void FileFeeder::Slice(const DataFile::Slice& slice, Decoder* decoder) {
  Result<UniqueFd> fd = reader_.OpenFile(slice.path);
  if (!fd.ok()) {
    problems_.push_back({slice.path, fd.status().message(), true});
    Drop();
    return;
  }
  // Only advice.
  (void)::posix_fadvise(fd->get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  SliceSource source(std::move(*fd), slice.path, SliceSource::Sums::kNo);
  uint64_t reported = 0;
  while (!stopped_) {
    std::span<std::byte> room(buffer_.data() + carried_, kChunk);
    Result<size_t> got = source.Read(room);
    if (!got.ok()) {
      problems_.push_back({slice.path, got.status().message(), true});
      Drop();
      break;
    }
    const uint64_t stored = source.stored_bytes();
    bytes_ += stored - reported;
    if (!progress_(stored - std::exchange(reported, stored))) stopped_ = true;
    if (*got == 0) break;
    Consume(*got, decoder);
  }
}

// Where the first slices are gone, the first one left begins with the rest of a record that began in them: what all
// slices hold beyond complete records (operator-data a.6). Slices of complete records have none, whatever the last one,
// which may be cut, ends with; nor is it known where others are missing in between.
size_t FileFeeder::HeadOf(const DataFile& file) const {
  if (record_size_ <= 1 || file.slices.empty() || file.slices.front().number == 0) return 0;
  uint64_t bytes = 0;
  bool are_complete = true;
  for (size_t i = 0; i < file.slices.size(); ++i) {
    const DataFile::Slice& slice = file.slices[i];
    if (slice.compressed || slice.number != file.slices.front().number + i) return 0;
    if (i + 1 < file.slices.size()) are_complete = are_complete && slice.bytes % record_size_ == 0;
    bytes += slice.bytes;
  }
  return are_complete && file.slices.size() > 1 ? 0 : bytes % record_size_;
}

void FileFeeder::Run(const DataFile& file, Decoder* decoder) {
  uint64_t expected = 0;
  skip_bytes_ = HeadOf(file);
  for (const DataFile::Slice& slice : file.slices) {
    // What a slice begins with does not continue one that is gone.
    if (slice.number != expected) Drop();
    expected = slice.number + 1;
    if (carried_ == 0) skip_line_ = false;
    if (carried_ == 0) slice_start_ = true;
    joins_slices_ = carried_ > 0 && record_size_ == 0;
    Slice(slice, decoder);
    skip_bytes_ = 0;  // of the first alone
    if (stopped_) break;
  }
  if (carried_ > 0 && record_size_ == 0 && !stopped_) {
    decoder->Feed({buffer_.data(), carried_}, slice_start_);
    carried_ = 0;
  }
  Drop();
  decoder->Finish();
}

}  // namespace profd::exporting
