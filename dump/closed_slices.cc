#include "dump/closed_slices.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace profd {
namespace {

// The end of a session does not wait longer for what is still to be compressed.
constexpr int64_t kCompressAtEndNs = kNsPerSecond;

uint64_t JobOf(uint32_t file, uint32_t slice) { return uint64_t{file} << 32 | slice; }

}  // namespace

ClosedSlices::ClosedSlices(const Dump& dump, Options options)
    : dump_(dump),
      options_(options),
      index_(dump.folders.io(), dump.folders.owner()),
      ageing_([this](Ageing::FileId id) { return HasOpen(dump_.files.at(id)); }) {
  if (options.compress > 0) {
    compressor_ = std::make_unique<SliceCompressor>(dump.folders.io(), dump.folders.owner(), options.compress);
  }
}

void ClosedSlices::Watch(DumpFile& file) {
  // Our own are in no folder that has a limit, and have no slices.
  ageing_.AddFile(file.folder != nullptr ? file.folder->number : 0, file.writer->options().base);
  file.writer->SetObserver(this, file.number);
}

void ClosedSlices::OnSliceClosed(uint32_t number, const ClosedSlice& slice, UniqueFd fd) {
  const DumpFile& file = dump_.files.at(number);
  if (file.folder == nullptr) {
    dump_.folders.listed()[file.PathOf(slice.slice)] = {slice.crc32c, slice.records};
    return;
  }
  SliceEntry entry{.path = file.PathOf(slice.slice), .bytes = slice.bytes, .records = slice.records,
                   .crc32c = slice.crc32c, .first_ns = slice.first_ns, .last_ns = slice.last_ns,
                   .closed_ns = dump_.clock.MonotonicRawNs()};
  ageing_.Closed(number, slice.slice, slice.bytes + SliceDone(slice.bytes).size());
  index_.Closed(entry);
  // What is going to be compressed is read again soon, and need not reach the disk.
  if (!Compress(file, entry, slice.slice)) dump_.sync.Take(std::move(fd), DumpSync::SyncMode::kClosed);
}

bool ClosedSlices::Compress(const DumpFile& file, const SliceEntry& slice, uint32_t number) {
  if (compressor_ == nullptr) return false;
  // Beside a slice its compressed copy needs space for a moment.
  if (options_.most_bytes > 0 && slice.bytes > options_.most_bytes) return false;
  SliceCompressor::Job job{.id = JobOf(file.number, number), .dir = CopyOf(file.folder->data.get()),
                           .name = file.writer->SliceName(number), .bytes = slice.bytes, .crc32c = slice.crc32c};
  return job.dir.valid() && compressor_->Take(std::move(job));
}

void ClosedSlices::TakeCompressed() {
  if (compressor_ == nullptr) return;
  for (const SliceCompressor::Done& done : compressor_->TakeDone()) {
    if (done.bytes == 0) continue;
    const DumpFile& file = dump_.files.at(static_cast<uint32_t>(done.id >> 32));
    const auto number = static_cast<uint32_t>(done.id);
    const std::string path = file.PathOf(number);
    const SliceEntry* entry = index_.Find(path);
    if (entry == nullptr) continue;
    dump_.folders.Shrink(file.folder, entry->bytes - std::min(entry->bytes, done.bytes));
    ageing_.Resized(file.number, number, done.bytes + SliceDone(entry->bytes).size());
    index_.Compressed(path, done.bytes, done.crc32c);
  }
}

void ClosedSlices::FinishCompressing() {
  if (compressor_ != nullptr) compressor_->Finish(kCompressAtEndNs);
  TakeCompressed();
}

// Is something left of the file without its closed slices? A full volume may refuse what is only buffered: for its
// space only what could be written counts.
bool ClosedSlices::HasOpen(DumpFile& file) {
  if (!for_space_) return file.appending || file.writer->open_bytes() > 0;
  dump_.files.Flush(file).Ignore();
  return file.writer->written_bytes() > file.writer->options().header.size();
}

bool ClosedSlices::RemoveOldest(const DataFolder* folder_or_null) {
  if (!options_.ages) return false;
  const auto place = folder_or_null != nullptr ? std::optional(folder_or_null->number) : std::nullopt;
  const std::optional<Ageing::Slice> oldest = ageing_.Oldest(place);
  if (!oldest) return false;
  const std::optional<Ageing::Slice> partner = ageing_.PartnerOf(*oldest);
  Remove(*oldest);
  if (partner) Remove(*partner);
  return true;
}

uint64_t ClosedSlices::AgeFor(uint64_t bytes) {
  const uint64_t before = dump_.folders.bytes();
  for_space_ = true;
  while (before - dump_.folders.bytes() < bytes && RemoveOldest(nullptr)) continue;
  for_space_ = false;
  return before - dump_.folders.bytes();
}

int64_t ClosedSlices::OldestNs() {
  if (!options_.ages) return 0;
  for_space_ = true;
  const std::optional<Ageing::Slice> oldest = ageing_.Oldest();
  for_space_ = false;
  if (!oldest) return 0;
  const SliceEntry* slice = index_.Find(dump_.files.at(oldest->file).PathOf(oldest->slice));
  return slice != nullptr ? std::max<int64_t>(1, slice->closed_ns) : 1;
}

void ClosedSlices::Remove(const Ageing::Slice& slice) {
  DumpFile& file = dump_.files.at(slice.file);
  const std::string path = file.PathOf(slice.slice);
  if (compressor_ != nullptr) compressor_->Forget(JobOf(slice.file, slice.slice));
  TakeCompressed();
  ageing_.Gone(slice);
  const SliceEntry* entry = index_.Find(path);
  if (entry == nullptr) return;
  const SliceEntry removed = *entry;
  const bool gone = index_.Aged(path, dump_.clock.MonotonicRawNs(), [&] {
    const uint64_t stored = removed.compressed ? removed.stored_bytes : removed.bytes;
    const uint64_t freed = file.writer->RemoveSlice(slice.slice, stored, removed.compressed);
    dump_.folders.Shrink(file.folder, freed);
    return freed != 0;
  });
  if (!gone) return;  // it is still there, and will not be tried again
  CountAged(file, removed);
  dump_.manifest_writer.Touch();
}

void ClosedSlices::CountAged(const DumpFile& file, const SliceEntry& slice) {
  const uint64_t header = std::min<uint64_t>(file.writer->options().header.size(), slice.bytes);
  const uint64_t bytes = slice.bytes - header;
  EntryOf(file).AddAged(slice.records, bytes, slice.first_ns, slice.last_ns);
  if (for_space_) dump_.manifest.aged_for_space += slice.records;
  auto counted = std::ranges::find_if(aged_, [&](const AgedCount& one) {
    return one.device == file.device && one.channel == file.channel_id && one.collector == file.collector;
  });
  if (counted == aged_.end()) counted = aged_.insert(aged_.end(), {file.collector, file.device, file.channel_id});
  counted->records += slice.records;
  counted->bytes += bytes;
}

ManifestChannel& ClosedSlices::EntryOf(const DumpFile& file) {
  ManifestChannel* const known = dump_.manifest.FindChannel(file.device, file.channel_id, file.collector);
  if (known != nullptr) return *known;
  ManifestChannel& entry = dump_.manifest.channels.emplace_back();
  entry.collector = file.collector;
  entry.device = file.device;
  entry.channel = file.channel_id;
  if (file.channel_id != 0) entry.file = file.writer->options().base;
  return entry;
}

}  // namespace profd
