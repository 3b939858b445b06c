#include "export/file_feeder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "driver/abi/channels.h"
#include "driver/records/soc_profile.h"
#include "dump/slice_source.h"
#include "export/operators/records.h"

namespace profd::exporting {
namespace {

// Of the STARS scheduler: all begin with the same word and a magic number (operator-data a.4, dump-format 2.9).
bool HasMagic(const DataFile& file) {
  return file.base == "stars_soc.data" || file.base == "ffts_profile.data" ||
         file.base == records::kSocProfileFormat.file;
}

struct Fit {
  size_t plausible = 0;  // records that can be some, and go on from the one before
  uint64_t begin = 0;    // of the first one's time
};
Fit FitOf(const abi::ChannelFormat& format, std::span<const std::byte> bytes) {
  Fit fit;
  uint64_t last = 0;
  for (size_t i = 0; bytes.size() >= format.record_size; bytes = bytes.subspan(format.record_size), ++i) {
    uint64_t time = 0;
    std::memcpy(&time, bytes.data() + format.timestamp.offset, format.timestamp.width);
    if (i == 0) fit.begin = last = time;
    const bool follows = time >= last && time - last < uint64_t{1} << 40;
    if (format.plausible(bytes.first(format.record_size)) && time <= records::kMaxTimestamp && follows) ++fit.plausible;
    last = time;
  }
  return fit;
}

}  // namespace

std::string FirstBytes(const DumpReader& reader, const Place& place, std::string_view base) {
  constexpr size_t kBytes = 64u << 10;
  const auto file = std::ranges::find(place.files, base, &DataFile::base);
  if (file == place.files.end()) return "";
  std::string bytes(kBytes, '\0');
  for (const DataFile::Slice& slice : file->slices) {
    Result<UniqueFd> fd = reader.OpenFile(slice.path);
    if (!fd.ok()) continue;
    SliceSource source(std::move(*fd), slice.path, SliceSource::Sums::kNo);
    const Result<size_t> got = source.Read(std::as_writable_bytes(std::span(bytes)));
    if (got.ok() && *got > 0) return bytes.substr(0, *got);
  }
  return "";
}

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
    std::span<std::byte> chunk(buffer_.data() + carried_, kChunk);
    Result<size_t> got = source.Read(chunk);
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

// What the next slice begins with, where this one's end is gone, does not continue the carried bytes. Lines show where
// they begin.
void FileFeeder::SkipMissing(uint64_t missing) {
  if (missing == 0 || record_size_ <= 1) return;
  const size_t within = (carried_ + missing) % record_size_;
  skip_bytes_ = within == 0 ? 0 : record_size_ - within;
  Drop();
}

// Where the first record begins: at 0 where only the last slice is cut, behind `rest` bytes where only the first one is.
// Asked of the only slice that is left, and of records that tell for certain, also where both ends are cut.
size_t FileFeeder::HeadByRecords(const DataFile& file, size_t rest) {
  const bool has_magic = HasMagic(file);
  const auto* format = std::ranges::find(abi::kChannelFormats, file.base, &abi::ChannelFormat::file);
  if (!has_magic && (format == abi::kChannelFormats.end() || format->plausible == nullptr || format->record_size != record_size_)) {
    return rest;
  }
  Result<UniqueFd> fd = reader_.OpenFile(file.slices.front().path);
  if (!fd.ok()) return rest;
  constexpr size_t kRecords = 64;
  const ssize_t got = ::pread(fd->get(), buffer_.data(), std::min(kRecords * record_size_ + rest, kChunk), 0);
  const std::span bytes(buffer_.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (has_magic) {
    const auto begins_at = [&](size_t at) {
      return bytes.size() >= at + 2 * sizeof(uint16_t) &&
             operators::RecordView(bytes.subspan(at)).U16(2) == operators::kStarsMagic;
    };
    if (begins_at(0)) return 0;
    if (begins_at(rest)) return rest;
    for (size_t at = 1; at < record_size_; ++at) {
      if (begins_at(at) && begins_at(at + record_size_)) return at;
    }
    return file.slices.front().number == 0 ? 0 : rest;
  }
  if (bytes.size() < rest) return rest;
  const Fit whole = FitOf(*format, bytes);
  const Fit behind = FitOf(*format, bytes.subspan(rest));
  // Where a few bytes too early are zeros, a time is as plausible, but many times as large.
  const bool begins = whole.plausible != behind.plausible ? whole.plausible > behind.plausible : whole.begin < behind.begin;
  return begins ? 0 : rest;
}

// Where the first slices are gone, the first one left begins with the rest of a record that began in them: what all
// slices hold beyond complete records (operator-data a.6). Slices of complete records have none, whatever the last one,
// which may be cut, ends with; nor is it known where others are missing in between. Of one slice alone its records
// say which end is cut, where their format is known. A writer that numbers what is left from 0 again is recognised by
// records with a magic number.
size_t FileFeeder::HeadOf(const DataFile& file) {
  if (record_size_ <= 1 || file.slices.empty()) return 0;
  const bool from_0 = file.slices.front().number == 0;
  if (from_0 && !HasMagic(file)) return 0;
  uint64_t bytes = 0;
  bool are_complete = true;
  for (size_t i = 0; i < file.slices.size(); ++i) {
    const DataFile::Slice& slice = file.slices[i];
    if (slice.compressed || slice.number != file.slices.front().number + i) return 0;
    if (i + 1 < file.slices.size()) are_complete = are_complete && slice.bytes % record_size_ == 0;
    bytes += slice.bytes;
  }
  const size_t rest = bytes % record_size_;
  const bool is_alone = file.slices.size() == 1;
  if ((rest == 0 && !HasMagic(file)) || (!is_alone && are_complete)) return 0;
  return is_alone || from_0 ? HeadByRecords(file, rest) : rest;
}

void FileFeeder::Run(const DataFile& file, Decoder* decoder) {
  uint64_t expected = 0;
  skip_bytes_ = HeadOf(file);
  for (const DataFile::Slice& slice : file.slices) {
    // What a slice begins with does not continue one that is gone.
    if (slice.number != expected) {
      Drop();
      if (&slice != &file.slices.front()) skip_bytes_ = 0;
    }
    expected = slice.number + 1;
    if (carried_ == 0) skip_line_ = false;
    if (carried_ == 0) slice_start_ = true;
    joins_slices_ = carried_ > 0 && record_size_ == 0;
    Slice(slice, decoder);
    skip_bytes_ = 0;  // of the first alone
    SkipMissing(slice.missing);
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
