#include "dump/dump_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dump/ageing.h"

namespace profd {
namespace {

// Set aside under a limit for what running and ending a dump take besides data.
constexpr uint64_t kSlackBytes = 32u << 10;
constexpr uint64_t kManifestBase = 32u << 10;
constexpr uint64_t kBytesPerChannel = 1536;  // of the manifest
constexpr uint64_t kBytesPerGap = 192;
constexpr uint64_t kBytesPerProcess = 2048;
constexpr uint64_t kBytesPerEntry = 400;     // of the last manifest: each file it lists
constexpr uint64_t kBytesPerClosing = 448;   // the open slice's .done, journal line, next header
constexpr uint64_t kBytesPerFolder = 1024;   // end_info
// Near a limit (this part of it is left) slices are closed before they are full, for only closed ones
// may go: so early that this many of each file fit.
constexpr uint64_t kNearPart = 5;
constexpr uint64_t kSlicesPerFile = 8;
// Of files that should have one slice only, all that is open may take this part: the vendor's reader
// keeps only the last slice, so it is worth more than those of others.
constexpr uint64_t kSinglePart = 3;
constexpr uint64_t kLeastCutBytes = 16u << 10;

}  // namespace

Status AtStorageLimit(std::string text) {
  return {StatusCode::kResourceExhausted, Problem{.field = std::string(ToString(LossReason::kStorageLimit)), .text = std::move(text)}};
}

bool IsAtStorageLimit(const Status& status) {
  return !status.problems().empty() && status.problems().front().field == ToString(LossReason::kStorageLimit);
}

uint64_t DumpSpace::Reserved() const {
  const Manifest& now = dump_.manifest;
  const SliceIndex& index = dump_.closed.index();
  const uint64_t folders = dump_.folders.all().size();
  const uint64_t files = dump_.files.size();
  const uint64_t manifest = kManifestBase + std::max(dump_.manifest_writer.bytes(), now.channels.size() * kBytesPerChannel + gap_bytes_);
  const uint64_t entries = index.size() + files + dump_.folders.entries() + folders;
  // Twice: the old manifest stays until the new one is complete.
  return 2 * manifest + now.process_files.size() * kBytesPerProcess + entries * kBytesPerEntry + files * kBytesPerClosing +
         folders * kBytesPerFolder + index.spare_bytes() + kSlackBytes + dump_.closed.spare_bytes();
}

void DumpSpace::CountGaps() {
  gap_bytes_ = 0;
  for (const ManifestChannel& channel : dump_.manifest.channels) gap_bytes_ += channel.gaps.size() * kBytesPerGap;
}

bool DumpSpace::Fits(uint64_t more) const { return limits_.bytes == 0 || used() + more + Reserved() <= limits_.bytes; }

Status DumpSpace::Reserve(uint64_t more) {
  while (!Fits(more)) {
    if (ages() && dump_.closed.RemoveOldest(nullptr)) continue;
    // Under a small limit, what the journal has about slices that are gone takes a good part of it.
    if (dump_.closed.index().Shrink(kSlackBytes)) continue;
    return AtStorageLimit(fmt::format("the dump may hold {} bytes", limits_.bytes));
  }
  return {};
}

Status DumpSpace::Reserve(DumpFile& file, uint64_t more) {
  const uint64_t limit = limits_.bytes;
  if (limit == 0) return {};
  if (more <= known_) {
    known_ -= more;
    return {};
  }
  known_ = 0;
  const auto needed = [&] { return used() + more + Reserved(); };
  if (ages()) CutNear(file, needed() > limit - limit / kNearPart);
  FindKnown(needed());
  RETURN_IF_ERROR(Reserve(more));
  if (!ages() || limits_.folder_bytes == 0 || file.folder == nullptr) return {};
  while (file.folder->bytes + more + kBytesPerFolder > limits_.folder_bytes) {
    if (dump_.closed.RemoveOldest(file.folder)) continue;
    return AtStorageLimit(fmt::format("{} may hold {} bytes, half of the limit", file.folder->name, limits_.folder_bytes));
  }
  return {};
}

Status DumpSpace::Take(uint64_t bytes) {
  if (!Fits(bytes)) return AtStorageLimit(fmt::format("the dump may hold {} bytes", limits_.bytes));
  dump_.folders.Grow(nullptr, bytes);
  Forget();
  return {};
}

// Far from every limit there is nothing to work out again for the next so many bytes: what else grows
// meanwhile (files, the manifest, the journal) is far less than what is left.
void DumpSpace::FindKnown(uint64_t needed) {
  constexpr uint64_t kKnown = 1u << 20;
  constexpr uint64_t kFar = 32u << 20;
  const uint64_t near = limits_.bytes - limits_.bytes / kNearPart;
  bool far = !near_limit_ && needed + kFar < near;
  for (const DataFolder& folder : dump_.folders.all()) {
    if (limits_.folder_bytes == 0) break;
    far = far && !folder.near_limit && folder.bytes + kFar < PlaceThreshold(limits_.folder_bytes);
  }
  if (far) known_ = kKnown;
}

// From when on an open slice is closed near a limit.
uint64_t DumpSpace::CutBytes(const DumpFile& file) const {
  uint64_t files = 0;
  uint64_t singles = 0;
  for (const DataFolder& folder : dump_.folders.all()) {
    files += folder.files;
    singles += folder.singles;
  }
  if (file.writer->options().single_slice) {
    uint64_t share = limits_.bytes / (kSinglePart * singles);
    if (limits_.folder_bytes != 0) share = std::min(share, limits_.folder_bytes / (kSinglePart * file.folder->singles));
    return std::max(share, kLeastCutBytes);
  }
  const uint64_t limit = limits_.folder_bytes != 0 ? limits_.folder_bytes : limits_.bytes;
  return std::clamp(limit / (std::max<uint64_t>(1, files) * kSlicesPerFile), kLeastCutBytes,
                    std::max(kLeastCutBytes, file.writer->options().slice_bytes));
}

bool DumpSpace::Cut(DumpFile& file, uint64_t least) {
  if (file.folder == nullptr || file.writer->open_bytes() < least) return false;
  return dump_.files.Cut(file).ok();  // else it is tried again
}

// Near a limit: every file once, then each as it grows.
void DumpSpace::CutNear(DumpFile& file, bool near_limit) {
  const bool near_folder = limits_.folder_bytes != 0 && file.folder != nullptr &&
                           file.folder->bytes > PlaceThreshold(limits_.folder_bytes);
  const bool all = near_limit && !near_limit_;
  const bool of_folder = near_folder && !file.folder->near_limit;
  if (all || of_folder) {
    for (const auto& one : dump_.files.all()) {
      if (all || one->folder == file.folder) Cut(*one, CutBytes(*one));
    }
  } else if (near_limit || near_folder) {
    Cut(file, CutBytes(file));
  }
  near_limit_ = near_limit;
  if (file.folder != nullptr) file.folder->near_limit = near_folder;
}

bool DumpSpace::CutAll() {
  if (!dump_.closed.ages()) return false;
  bool any = false;
  for (const auto& file : dump_.files.all()) {
    if (MayAge(file->writer->options().base)) any = Cut(*file, kLeastCutBytes) || any;
  }
  return any;
}

void DumpSpace::AgeFolders() {
  if (known_ != 0 || !ages() || limits_.folder_bytes == 0) return;
  for (const DataFolder& folder : dump_.folders.all()) {
    while (dump_.closed.stored(folder) > PlaceThreshold(limits_.folder_bytes) && dump_.closed.RemoveOldest(&folder)) continue;
  }
}

}  // namespace profd
