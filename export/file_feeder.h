// The bytes of one data file, slice after slice, cut into complete records or lines for its decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/reader.h"
#include "export/decoder.h"
#include "export/dump_info.h"

namespace profd::exporting {

// What the first slice that can be read begins with, at most 64 KiB; empty where the place has no such file.
std::string FirstBytes(const DumpReader& reader, const Place& place, std::string_view base);

class FileFeeder {
 public:
  static constexpr size_t kChunk = 512u << 10;
  // A line longer than this is not a line but garbage.
  static constexpr size_t kMaxLine = 64u << 10;

  // Called with the bytes read (as they are stored) since the last call; false stops.
  using Progress = std::function<bool(uint64_t bytes)>;

  // `record_size` 0 = text. All outlive the feeder. `buffer` is the thread's own, of any size.
  FileFeeder(const DumpReader& reader, size_t record_size, std::vector<std::byte>* buffer,
             Progress progress);

  // Feeds `decoder` with all of `file` and finishes it. A slice that cannot be read or is damaged
  // becomes a problem; the others are read all the same.
  void Run(const DataFile& file, Decoder* decoder);

  uint64_t bytes() const { return bytes_; }
  // Cut off at an end, or too long for a line; of no record the decoder has seen.
  uint64_t bad_bytes() const { return bad_bytes_; }
  const std::vector<DumpInfo::Problem>& problems() const { return problems_; }

 private:
  void Slice(const DataFile::Slice& slice, Decoder* decoder);
  void SkipMissing(uint64_t missing);
  size_t HeadOf(const DataFile& file);
  size_t HeadByRecords(const DataFile& file, size_t rest);
  // Takes `got` more bytes behind the carried ones.
  void Consume(size_t got, Decoder* decoder);
  // At the beginning of a slice of text, `got` bytes of which are behind the carried ones: feeds the carried line
  // alone where the slice begins with a line of its own.
  void EndCarriedLine(size_t got, Decoder* decoder);
  void Drop();
  size_t WholeBytes(size_t size) const;

  const DumpReader& reader_;
  size_t record_size_;
  std::vector<std::byte>& buffer_;
  Progress progress_;
  size_t carried_ = 0;       // at the front of buffer_
  bool skip_line_ = false;   // until the next '\n'
  size_t skip_bytes_ = 0;    // the rest of a record whose beginning went with slices that are gone
  bool joins_slices_ = false;  // the carried line is of the slice before
  bool slice_start_ = true;  // what is fed next begins a slice
  bool stopped_ = false;
  uint64_t bytes_ = 0;
  uint64_t bad_bytes_ = 0;
  std::vector<DumpInfo::Problem> problems_;
};

}  // namespace profd::exporting
