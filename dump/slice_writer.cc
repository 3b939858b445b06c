#include "dump/slice_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/text.h"
#include "dump/control_files.h"
#include "dump/slice_journal.h"

namespace profd {

SliceWriter::SliceWriter(DumpIo& io, int dir, DumpOwner owner, SliceOptions options)
    : io_(io), dir_(dir), owner_(owner), options_(std::move(options)) {}

std::string SliceWriter::SliceName(uint32_t k) const {
  if (options_.plain) return options_.base;
  if (options_.device < 0) return fmt::format("{}.slice_{}", options_.base, k);
  return fmt::format("{}.{}.slice_{}", options_.base, options_.device, k);
}

Status SliceWriter::Append(std::span<const std::byte> block, uint64_t records, int64_t host_ns) {
  if (closed_) return FailedPrecondition(fmt::format("{} is closed", options_.base));
  if (!options_.header_token.empty() &&
      AsText(block).find(options_.header_token) != std::string_view::npos) {
    return AppendWithoutHeaders(block, {records, host_ns});
  }
  return AppendWhole(block, {records, host_ns});
}

Status SliceWriter::AppendWithoutHeaders(std::span<const std::byte> block, const Timestamped& what) {
  stripped_.clear();
  std::string_view rest = AsText(block);
  while (!rest.empty()) {
    std::string_view before = rest;
    std::string_view line;
    NextLine(&rest, &line);
    if (line.find(options_.header_token) != std::string_view::npos) continue;
    auto bytes = AsBytes(before.substr(0, before.size() - rest.size()));
    stripped_.insert(stripped_.end(), bytes.begin(), bytes.end());
  }
  return AppendWhole(stripped_, what);
}

void SliceWriter::BeginSlice() {
  if (buffer_.capacity() < options_.buffer_bytes) buffer_.reserve(options_.buffer_bytes);
  auto header = AsBytes(options_.header);
  buffer_.insert(buffer_.end(), header.begin(), header.end());
  bytes_ += header.size();
  slice_open_ = true;
  open_ = {};
  crc_ = 0;
}

Status SliceWriter::AppendWhole(std::span<const std::byte> block, const Timestamped& what) {
  if (block.empty()) return {};
  if (!slice_open_) BeginSlice();
  if (block.size() >= std::min(kDirectBytes, options_.buffer_bytes)) {
    RETURN_IF_ERROR(WriteOut(block));
  } else {
    if (buffer_.size() + block.size() > options_.buffer_bytes) RETURN_IF_ERROR(Flush());
    buffer_.insert(buffer_.end(), block.begin(), block.end());
    buffered_records_ += what.records;
  }
  bytes_ += block.size();
  records_ += what.records;
  open_.records += what.records;
  if (open_.first_ns == 0) open_.first_ns = what.host_ns;
  if (what.host_ns != 0) open_.last_ns = what.host_ns;
  if (buffer_.empty()) written_ns_ = std::max(written_ns_, open_.last_ns);
  if (!options_.single_slice && !options_.plain && slice_size() >= options_.slice_bytes) {
    // The block is ours already. A slice that cannot be closed now stays open and is tried again.
    CloseSlice().Ignore();
  }
  return {};
}

Status SliceWriter::Flush() {
  if (buffer_.empty()) return {};
  return WriteOut({});
}

Status SliceWriter::WriteOut(std::span<const std::byte> more) {
  RETURN_IF_ERROR(EnsureFd());
  const std::string& name = options_.base;
  if (torn_) {
    if (io_.Truncate(fd_.get(), on_disk_) != 0) {
      return Status::FromErrno(errno, fmt::format("repair {}", name));
    }
    torn_ = false;
  }
  size_t written = 0;
  Status result = WriteBoth(io_, fd_.get(), buffer_, more, open_name_, &written);
  if (!result.ok()) {
    torn_ = written > 0 && io_.Truncate(fd_.get(), on_disk_) != 0;
    return result;
  }
  crc_ = Crc32c(more, Crc32c(buffer_, crc_));
  on_disk_ += buffer_.size() + more.size();
  unsynced_ += buffer_.size() + more.size();
  buffer_.clear();
  buffered_records_ = 0;
  written_ns_ = std::max(written_ns_, open_.last_ns);
  return {};
}

Status SliceWriter::EnsureFd() {
  if (fd_.valid()) return {};
  std::string name = SliceName(slice_);
  struct stat st {};
  if (!created_) {
    Result<UniqueFd> fd = io_.Create(dir_, name, owner_);
    if (!fd.ok()) return fd.status();
    if (::fstat(fd->get(), &st) != 0) return Status::FromErrno(errno, name);
    fd_ = std::move(*fd);
    open_name_ = std::move(name);
    created_ = true;
    device_of_file_ = st.st_dev;
    inode_ = st.st_ino;
    return {};
  }
  UniqueFd fd(::openat(dir_, name.c_str(),
                       O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return Status::FromErrno(errno, fmt::format("reopen {}", name));
  if (::fstat(fd.get(), &st) != 0) return Status::FromErrno(errno, name);
  // The directory is the owner's, who may have put another file in its place.
  if (st.st_dev != device_of_file_ || st.st_ino != inode_) {
    return DataLoss(fmt::format("{} was replaced", name));
  }
  fd_ = std::move(fd);
  open_name_ = std::move(name);
  return {};
}

Status SliceWriter::CloseSlice() {
  RETURN_IF_ERROR(Flush());
  if (torn_ && fd_.valid() && io_.Truncate(fd_.get(), on_disk_) == 0) torn_ = false;
  if (created_) {
    UniqueFd fd = std::move(fd_);
    if (!options_.plain) pending_done_.emplace_back(slice_, on_disk_);
    open_.slice = slice_;
    open_.bytes = on_disk_;
    open_.crc32c = crc_;
    if (observer_ != nullptr) observer_->OnSliceClosed(file_, open_, std::move(fd));
    ++slice_;
  }
  slice_open_ = false;
  created_ = false;
  torn_ = false;
  on_disk_ = 0;
  unsynced_ = 0;
  return WriteDone();
}

Status SliceWriter::Cut() {
  if (!slice_open_ || options_.plain || slice_size() <= options_.header.size()) return {};
  return CloseSlice();
}

uint64_t SliceWriter::RemoveSlice(uint32_t slice, uint64_t stored_bytes, bool compressed) {
  std::string name = SliceName(slice);
  const std::string done = name + std::string(kDoneSuffix);
  if (compressed) name += kCompressedSuffix;
  // Gone already is as good; what cannot be removed still takes its space.
  uint64_t freed = io_.Unlink(dir_, name) == 0 || errno == ENOENT ? stored_bytes : 0;
  auto pending = std::ranges::find(pending_done_, slice, [](const auto& one) { return one.first; });
  if (pending != pending_done_.end()) {
    pending_done_.erase(pending);
    return freed;
  }
  struct stat st {};
  const bool has_done = ::fstatat(dir_, done.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (has_done && io_.Unlink(dir_, done) == 0) freed += static_cast<uint64_t>(st.st_size);
  return freed;
}

Status SliceWriter::WriteDone() {
  while (!pending_done_.empty()) {
    const auto& [slice, size] = pending_done_.back();
    std::string text = SliceDone(size);
    RETURN_IF_ERROR(WriteNewFile(io_, dir_, SliceName(slice) + std::string(kDoneSuffix), text, owner_));
    overhead_bytes_ += text.size();
    pending_done_.pop_back();
  }
  return {};
}

Status SliceWriter::Close() {
  if (closed_) return {};
  if (on_disk_ == 0 && buffer_.size() <= options_.header.size()) buffer_.clear();  // a header, no data
  Status flushed = Flush();
  if (!flushed.ok()) {
    lost_bytes_ += buffer_.size();
    lost_records_ += buffered_records_;
    open_.records -= buffered_records_;
    lost_until_ns_ = std::exchange(open_.last_ns, written_ns_);
    buffer_.clear();
    buffered_records_ = 0;
  }
  if (created_ && on_disk_ <= options_.header.size()) DropSlice();
  Status done = CloseSlice();
  closed_ = true;
  fd_.Reset();
  std::vector<std::byte>().swap(buffer_);
  return flushed.ok() ? done : flushed;
}

// Its file was made, and has got no record: who recovers the dump would remove it.
void SliceWriter::DropSlice() {
  io_.Unlink(dir_, SliceName(slice_));
  fd_.Reset();
  created_ = false;
  bytes_ -= on_disk_;
}

void SliceWriter::ReleaseFd() { fd_.Reset(); }

void SliceWriter::ReleaseBuffer() {
  if (buffer_.empty()) std::vector<std::byte>().swap(buffer_);
}

}  // namespace profd
