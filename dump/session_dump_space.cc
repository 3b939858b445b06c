// Keeping a dump within its limits: what is set aside, what goes, what is made smaller.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dump/data_name.h"
#include "dump/session_dump.h"

namespace profd {
namespace {

// Set aside under a limit for what running and ending a dump take besides data.
constexpr uint64_t kSlackBytes = 32u << 10;
constexpr uint64_t kManifestBase = 32u << 10;
constexpr uint64_t kBytesPerChannel = 1536;  // of the manifest
constexpr uint64_t kBytesPerEntry = 400;     // of the last manifest: each file it lists
constexpr uint64_t kBytesPerClosing = 448;   // the open slice's .done, journal line, next header
constexpr uint64_t kBytesPerPlace = 1024;    // end_info
// Near a limit (this part of it is left) slices are closed before they are full, for only closed ones
// may go: so early that this many of each file fit.
constexpr uint64_t kNearPart = 5;
constexpr uint64_t kSlicesPerFile = 8;
// Of files that should have one slice only, all that is open may take this part: the vendor's reader
// keeps only the last slice, so it is worth more than those of others.
constexpr uint64_t kSinglePart = 3;
constexpr uint64_t kLeastCutBytes = 16u << 10;

}  // namespace

uint64_t SessionDump::Reserved() const {
  const uint64_t manifest =
      std::max(manifest_bytes_ + kManifestBase,
               kManifestBase + manifest_.channels.size() * kBytesPerChannel + gap_bytes_);
  const uint64_t entries = slice_index_.size() + files_.size() + final_entries_ + places_.size();
  // Twice: the old manifest stays until the new one is complete.
  constexpr uint64_t kBytesPerProcess = 2048;  // of the manifest
  return 2 * manifest + manifest_.process_files.size() * kBytesPerProcess + entries * kBytesPerEntry + files_.size() * kBytesPerClosing +
         places_.size() * kBytesPerPlace + slice_index_.spare_bytes() + kSlackBytes +
         (compressor_ != nullptr ? compressor_->spare_bytes() : 0);
}

Status AtStorageLimit(std::string text) {
  return {StatusCode::kResourceExhausted, Problem{.field = std::string(ToString(LossReason::kStorageLimit)), .text = std::move(text)}};
}

bool IsAtStorageLimit(const Status& status) {
  return !status.problems().empty() && status.problems().front().field == ToString(LossReason::kStorageLimit);
}

Status SessionDump::ReserveSpace(uint64_t more) {
  const uint64_t limit = options_.max_bytes;
  const bool ages = options_.age_at_limit && ages_;
  while (limit != 0 && BytesButManifest() + more + Reserved() > limit) {
    if (ages && AgeOne(std::nullopt)) continue;
    // Under a small limit, what the journal has about slices that are gone takes a good part of it.
    if (slice_index_.Shrink(kSlackBytes)) continue;
    return AtStorageLimit(fmt::format("the dump may hold {} bytes", limit));
  }
  return {};
}

Status SessionDump::ReserveSpace(File& file, uint64_t more) {
  const uint64_t limit = options_.max_bytes;
  if (limit == 0) return {};
  if (more <= space_known_) {
    space_known_ -= more;
    return {};
  }
  space_known_ = 0;
  const bool ages = options_.age_at_limit && ages_;
  auto needed = [&] { return BytesButManifest() + more + Reserved(); };
  if (ages) CutNear(file, needed() > limit - limit / kNearPart);
  FindKnownSpace(needed());
  RETURN_IF_ERROR(ReserveSpace(more));
  if (!ages || options_.place_bytes == 0 || !file.place) return {};
  const DataFolder& place = places_[*file.place];
  while (place.bytes + more + kBytesPerPlace > options_.place_bytes) {
    if (AgeOne(file.place)) continue;
    return AtStorageLimit(fmt::format("{} may hold {} bytes, half of the limit", place.name, options_.place_bytes));
  }
  return {};
}

// Far from every limit there is nothing to work out again for the next so many bytes: what else grows
// meanwhile (files, the manifest, the journal) is far less than what is left.
void SessionDump::FindKnownSpace(uint64_t needed) {
  constexpr uint64_t kKnown = 1u << 20;
  constexpr uint64_t kFar = 32u << 20;
  const uint64_t near = options_.max_bytes - options_.max_bytes / kNearPart;
  bool far = !near_limit_ && needed + kFar < near;
  for (const DataFolder& place : places_) {
    if (options_.place_bytes == 0) break;
    far = far && !place.near_limit && place.bytes + kFar < PlaceThreshold(options_.place_bytes);
  }
  if (far) space_known_ = kKnown;
}

// From when on an open slice is closed near a limit.
uint64_t SessionDump::CutBytes(const File& file) const {
  if (file.writer->options().single_slice) {
    uint64_t share = options_.max_bytes / (kSinglePart * singles_);
    if (options_.place_bytes != 0) {
      share = std::min(share, options_.place_bytes / (kSinglePart * places_[*file.place].singles));
    }
    return std::max(share, kLeastCutBytes);
  }
  const uint64_t files = std::max<size_t>(1, by_id_.size());
  const uint64_t limit = options_.place_bytes != 0 ? options_.place_bytes : options_.max_bytes;
  return std::clamp(limit / (files * kSlicesPerFile), kLeastCutBytes,
                    std::max(kLeastCutBytes, file.writer->options().slice_bytes));
}

bool SessionDump::Cut(File& file, uint64_t least) {
  if (!file.place || file.writer->open_bytes() < least) return false;
  const uint64_t before = SizeOf(file);
  const bool cut = file.writer->Cut().ok();  // else it is tried again
  Account(file, before);
  return cut;
}

// Near a limit: every file once, then each as it grows.
void SessionDump::CutNear(File& file, bool near_limit) {
  const bool near_place = options_.place_bytes != 0 && file.place &&
                          places_[*file.place].bytes > PlaceThreshold(options_.place_bytes);
  if (near_limit && !near_limit_) {
    for (File* one : by_id_) Cut(*one, CutBytes(*one));
  } else if (near_place && !places_[*file.place].near_limit) {
    for (File* one : by_id_) {
      if (one->place == file.place) Cut(*one, CutBytes(*one));
    }
  } else if (near_limit || near_place) {
    Cut(file, CutBytes(file));
  }
  near_limit_ = near_limit;
  if (file.place) places_[*file.place].near_limit = near_place;
}

bool SessionDump::CutAll() {
  if (!ages_) return false;
  bool any = false;
  for (File* file : by_id_) {
    if (MayAge(file->writer->options().base)) any = Cut(*file, kLeastCutBytes) || any;
  }
  return any;
}

void SessionDump::AgePlaces() {
  if (!ages_ || !options_.age_at_limit || options_.place_bytes == 0) return;
  for (size_t i = 0; i < places_.size(); ++i) {
    while (ageing_.stored(i) > PlaceThreshold(options_.place_bytes) && AgeOne(i)) continue;
  }
}

uint64_t SessionDump::AgeFor(uint64_t bytes) {
  const uint64_t before = taken_bytes_;
  ages_for_space_ = true;
  while (ages_ && before - taken_bytes_ < bytes && AgeOne(std::nullopt)) continue;
  ages_for_space_ = false;
  return before - taken_bytes_;
}

int64_t SessionDump::OldestNs() {
  if (!ages_) return 0;
  ages_for_space_ = true;
  std::optional<Ageing::Slice> oldest = ageing_.Oldest();
  ages_for_space_ = false;
  if (!oldest) return 0;
  const SliceEntry* slice = slice_index_.Find(PathOf(*by_id_[oldest->file], oldest->slice));
  return slice != nullptr ? std::max<int64_t>(1, slice->closed_ns) : 1;
}

// Is something left of the file without its closed slices? A full volume may refuse what is only buffered: for its
// space only what could be written counts.
bool SessionDump::WriteOpen(File& file) {
  if (!ages_for_space_) return &file == appending_ || file.writer->open_bytes() > 0;
  const uint64_t before = SizeOf(file);
  file.writer->Flush().Ignore();
  Account(file, before);
  return file.writer->written_bytes() > file.writer->options().header.size();
}

bool SessionDump::AgeOne(std::optional<size_t> place) {
  std::optional<Ageing::Slice> oldest = ageing_.Oldest(place);
  if (!oldest) return false;
  std::optional<Ageing::Slice> partner = ageing_.PartnerOf(*oldest);
  RemoveSlice(*oldest);
  if (partner) RemoveSlice(*partner);
  return true;
}

void SessionDump::RemoveSlice(const Ageing::Slice& slice) {
  File& file = *by_id_[slice.file];
  const std::string path = PathOf(file, slice.slice);
  for (const auto& [job, what] : compressing_) {
    if (what.first != &file || what.second != slice.slice) continue;
    if (!compressor_->Forget(job)) break;
    compressing_.erase(job);
    break;
  }
  TakeCompressed();
  ageing_.Gone(slice);
  const SliceEntry* entry = slice_index_.Find(path);
  if (entry == nullptr) return;
  const SliceEntry removed = *entry;
  const bool gone = slice_index_.Aged(path, clock().MonotonicRawNs(), [&] {
    const uint64_t stored = removed.compressed ? removed.stored_bytes : removed.bytes;
    const uint64_t freed = file.writer->RemoveSlice(slice.slice, stored, removed.compressed);
    taken_bytes_ -= std::min(freed, taken_bytes_);
    uint64_t& of_place = places_[*file.place].bytes;
    of_place -= std::min(freed, of_place);
    return freed != 0;
  });
  if (!gone) return;  // it is still there, and will not be tried again
  CountAged(file, removed);
  manifest_touched_ = true;
}

void SessionDump::CountAged(const File& file, const SliceEntry& slice) {
  const uint64_t header = std::min<uint64_t>(file.writer->options().header.size(), slice.bytes);
  const uint64_t bytes = slice.bytes - header;
  EntryOf(file).AddAged(slice.records, bytes, slice.first_ns, slice.last_ns);
  if (ages_for_space_) manifest_.aged_for_space += slice.records;
  for (AgedCount& one : aged_) {
    if (one.device != file.device || one.channel != file.channel_id ||
        one.collector != file.collector) {
      continue;
    }
    one.records += slice.records;
    one.bytes += bytes;
    return;
  }
  aged_.push_back({file.collector, file.device, file.channel_id, slice.records, bytes});
}

ManifestChannel& SessionDump::EntryOf(const File& file) {
  for (ManifestChannel& entry : manifest_.channels) {
    if (entry.device != file.device || entry.channel != file.channel_id) continue;
    if (file.channel_id != 0 || entry.collector == file.collector) return entry;
  }
  ManifestChannel& entry = manifest_.channels.emplace_back();
  entry.collector = file.collector;
  entry.device = file.device;
  entry.channel = file.channel_id;
  if (file.channel_id != 0) entry.file = file.writer->options().base;
  return entry;
}

std::string SessionDump::PathOf(const File& file, uint32_t slice) const {
  if (!file.place) return fmt::format("{}{}", kOwnPrefix, file.writer->SliceName(slice));
  return fmt::format("{}/data/{}", places_[*file.place].name, file.writer->SliceName(slice));
}

void SessionDump::OnSliceClosed(const SliceWriter& writer, const ClosedSlice& slice, UniqueFd fd) {
  const File& file = *by_writer_.at(&writer);
  std::string path = PathOf(file, slice.slice);
  if (!file.place) {
    control_files_[std::move(path)] = {slice.crc32c, slice.records};
    return;
  }
  SliceEntry entry;
  entry.path = std::move(path);
  entry.bytes = slice.bytes;
  entry.records = slice.records;
  entry.crc32c = slice.crc32c;
  entry.first_ns = slice.first_ns;
  entry.last_ns = slice.last_ns;
  entry.closed_ns = clock().MonotonicRawNs();
  ageing_.Closed(file.id, slice.slice, slice.bytes + SliceDone(slice.bytes).size());
  slice_index_.Closed(entry);
  // After the journal knows what was compressed.
  const bool compresses = Compress(file, entry, slice.slice);
  // What is going to be compressed is read again soon, and need not reach the disk.
  if (compresses || running_sync() == nullptr) return;
  options_.sync->Take(std::move(fd), DumpSync::SyncMode::kClosed, sync_outcome_);
}

bool SessionDump::Compress(const File& file, const SliceEntry& slice, uint32_t number) {
  if (compressor_ == nullptr) return false;
  // Beside a slice its compressed copy needs space for a moment.
  if (options_.max_bytes > 0 && slice.bytes > options_.max_bytes / 16) return false;
  const DataFolder& place = places_[*file.place];
  SliceCompressor::Job job;
  job.id = next_job_++;
  job.dir = UniqueFd(::fcntl(place.data.get(), F_DUPFD_CLOEXEC, 0));
  job.name = file.writer->SliceName(number);
  job.bytes = slice.bytes;
  job.crc32c = slice.crc32c;
  const uint64_t id = job.id;
  if (!job.dir.valid() || !compressor_->Take(std::move(job))) return false;
  compressing_[id] = {&file, number};
  return true;
}

void SessionDump::TakeCompressed() {
  if (compressor_ == nullptr) return;
  for (const SliceCompressor::Done& done : compressor_->TakeDone()) {
    auto found = compressing_.find(done.id);
    if (found == compressing_.end()) continue;
    const auto [file, number] = found->second;
    compressing_.erase(found);
    if (done.bytes == 0) continue;
    const std::string path = PathOf(*file, number);
    const SliceEntry* entry = slice_index_.Find(path);
    if (entry == nullptr) continue;
    const uint64_t saved = entry->bytes - std::min(entry->bytes, done.bytes);
    taken_bytes_ -= saved;
    places_[*file->place].bytes -= saved;
    ageing_.Resized(file->id, number, done.bytes + SliceDone(entry->bytes).size());
    slice_index_.Compressed(path, done.bytes, done.crc32c);
  }
}

Status SessionDump::ReserveForFiles(uint64_t bytes) {
  if (finished_) return FailedPrecondition("the dump is complete");
  const uint64_t limit = options_.max_bytes;
  if (limit != 0 && BytesButManifest() + bytes + Reserved() > limit) {
    return AtStorageLimit(fmt::format("the dump may hold {} bytes", limit));
  }
  taken_bytes_ += bytes;
  space_known_ = 0;
  return Status::Ok();
}

}  // namespace profd
