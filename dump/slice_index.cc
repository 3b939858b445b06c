#include "dump/slice_index.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace profd {
namespace {

// Rewriting is not worth the while below this.
constexpr uint64_t kRewriteLines = 4096;

}  // namespace

void SliceIndex::Closed(SliceEntry slice) {
  Add(ClosedLine(slice));
  std::string path = slice.path;
  slices_[std::move(path)] = std::move(slice);
}

void SliceIndex::Compressed(std::string_view path, uint64_t stored_bytes, uint32_t stored_crc32c) {
  auto found = slices_.find(path);
  if (found == slices_.end()) return;
  SliceEntry& slice = found->second;
  slice.compressed = true;
  slice.stored_bytes = stored_bytes;
  slice.stored_crc32c = stored_crc32c;
  Add(CompressedLine(slice));
}

bool SliceIndex::Aged(std::string_view path, int64_t now_ns, const std::function<bool()>& remove) {
  auto found = slices_.find(path);
  if (found == slices_.end()) return false;
  SliceEntry& slice = found->second;
  slice.aged_ns = now_ns;
  Add(AgedLine(slice));
  const bool removed = remove();
  Flush().Ignore();  // there may be space for the line now
  if (!removed) {
    Add(ClosedLine(slice));
    if (slice.compressed) Add(CompressedLine(slice));
    return false;
  }
  dead_lines_ += slice.compressed ? 3 : 2;
  ForgottenSlices& gone = gone_[std::string(FileOfSlice(path))];
  ++gone.slices;
  gone.bytes += slice.bytes;
  gone.records += slice.records;
  if (gone.from_ns == 0) gone.from_ns = slice.first_ns;
  gone.to_ns = std::max(gone.to_ns, slice.last_ns);
  gone.ns = now_ns;
  slices_.erase(found);
  RewriteIfWorth();
  return true;
}

void SliceIndex::Lost(const JournalLoss& loss) {
  losses_.push_back(LostLine(loss));
  Add(losses_.back());
}

void SliceIndex::Files(const JournalFiles& files) {
  std::string& line = files_[files.folder];
  dead_lines_ += line.empty() ? 0 : 1;
  line = FilesLine(files);
  Add(line);
}

void SliceIndex::ManifestReplaced() {
  dead_lines_ += earlier_losses_.size();
  earlier_losses_ = std::exchange(losses_, {});
  RewriteIfWorth();
}

// A journal that cannot be rewritten now grows on.
void SliceIndex::RewriteIfWorth() {
  if (dead_lines_ > kRewriteLines && dead_lines_ > lines_ / 2) Rewrite().Ignore();
}

const SliceEntry* SliceIndex::Find(std::string_view path) const {
  auto found = slices_.find(path);
  return found == slices_.end() ? nullptr : &found->second;
}

uint64_t SliceIndex::spare_bytes() const {
  if (dead_lines_ <= kRewriteLines / 2) return 0;
  return MostRewritten();
}

bool SliceIndex::Shrink(uint64_t most_bytes) {
  if (dead_lines_ == 0) return false;
  const uint64_t rest = (losses_.size() + earlier_losses_.size() + files_.size()) * kLineBytes;
  return MostRewritten() + rest <= most_bytes && Rewrite().ok();
}

void SliceIndex::Add(std::string line) {
  pending_ += line;
  ++lines_;
  Flush().Ignore();
}

Status SliceIndex::Open() {
  if (fd_.valid()) return {};
  if (dir_ < 0) return FailedPrecondition("no place for the journal");
  Result<UniqueFd> fd = io_.Create(dir_, std::string(kJournalName), owner_);
  if (!fd.ok()) return fd.status();
  fd_ = std::move(*fd);
  return {};
}

Status SliceIndex::Flush() {
  if (pending_.empty()) return {};
  RETURN_IF_ERROR(Open());
  if (torn_) {
    if (io_.Truncate(fd_.get(), written_) != 0) return Status::FromErrno(errno, "repair journal");
    torn_ = false;
  }
  size_t done = 0;
  Status status = WriteAll(io_, fd_.get(), AsBytes(pending_), kJournalFile, &done);
  if (!status.ok()) {
    torn_ = done > 0 && io_.Truncate(fd_.get(), written_) != 0;
    return status;
  }
  written_ += pending_.size();
  crc_ = Crc32c(AsBytes(pending_), crc_);
  pending_.clear();
  return {};
}

// The lines keep no order among files, and need none.
Status SliceIndex::Rewrite() {
  std::string text;
  uint64_t lines = 0;
  for (const auto& [file, gone] : gone_) {
    ForgottenSlices line = gone;
    line.file = file;
    text += ForgottenLine(line);
    ++lines;
  }
  std::vector<const SliceEntry*> order;
  for (const auto& [path, slice] : slices_) order.push_back(&slice);
  std::ranges::sort(order, {}, &SliceEntry::closed_ns);
  for (const SliceEntry* slice : order) {
    text += ClosedLine(*slice);
    ++lines;
    if (!slice->compressed) continue;
    text += CompressedLine(*slice);
    ++lines;
  }
  for (const auto* losses : {&earlier_losses_, &losses_}) {
    for (const std::string& line : *losses) text += line;
    lines += losses->size();
  }
  for (const auto& [folder, line] : files_) text += line;
  lines += files_.size();
  RETURN_IF_ERROR(ReplaceFile(io_, dir_, std::string(kJournalName), text, owner_, false));
  UniqueFd fd(::openat(dir_, std::string(kJournalName).c_str(),
                       O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return Status::FromErrno(errno, "reopen journal");
  fd_ = std::move(fd);
  written_ = text.size();
  crc_ = Crc32c(AsBytes(text));
  pending_.clear();
  lines_ = lines;
  dead_lines_ = 0;
  torn_ = false;
  return {};
}

}  // namespace profd
