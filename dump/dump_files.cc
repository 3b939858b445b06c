#include "dump/dump_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dump/data_name.h"

namespace profd {
namespace {

// So much of a file is worth asking the kernel to begin with.
constexpr uint64_t kWritebackBytes = 256u << 10;

}  // namespace

std::string DumpFile::PathOf(uint32_t slice) const {
  if (folder == nullptr) return fmt::format("{}{}", kOwnPrefix, writer->SliceName(slice));
  return fmt::format("{}/data/{}", folder->name, writer->SliceName(slice));
}

// Reuses one string: a session with processes looks a name up tens of thousands of times a second.
const std::string& DumpFiles::KeyOf(int device, std::string_view base) {
  const fmt::format_int number(device);
  key_.assign(number.data(), number.size());
  key_ += '/';
  key_ += base;
  return key_;
}

DumpFile* DumpFiles::Find(int device, std::string_view base) {
  const auto found = by_name_.find(KeyOf(device, base));
  return found == by_name_.end() ? nullptr : found->second;
}

Result<DumpFile*> DumpFiles::Add(DataFolder* folder_or_null, SliceOptions options) {
  if (!IsSafeName(options.base)) return InvalidArgument("not a possible file name");
  const int device = folder_or_null != nullptr ? folder_or_null->device : kOwn;
  if (Find(device, options.base) != nullptr) return AlreadyExists(fmt::format("{} is open already", key_));
  auto file = std::make_unique<DumpFile>();
  file->number = static_cast<uint32_t>(files_.size());
  file->folder = folder_or_null;
  if (device != kVendorHostId) file->device = options.device = device;
  if (folder_or_null != nullptr) {
    ++folder_or_null->files;
    folder_or_null->singles += options.single_slice ? 1 : 0;
  }
  const int dir = folder_or_null != nullptr ? folder_or_null->data.get() : folders_.own();
  file->writer = std::make_unique<SliceWriter>(folders_.io(), dir, folders_.owner(), std::move(options));
  by_name_[key_] = file.get();
  return files_.emplace_back(std::move(file)).get();
}

template <typename Change>
Status DumpFiles::Do(DumpFile& file, const Change& change) {
  const uint64_t before = file.size();
  Status result = change(*file.writer);
  folders_.Grow(file.folder, file.size() - before);
  if (file.dynamic) CountFd(file);
  return result;
}

void DumpFiles::CountFd(DumpFile& file) {
  if (file.writer->holds_fd() && !file.holds_fd && dynamic_fds_ >= max_dynamic_fds_) GiveFdBack(file);
  if (file.writer->holds_fd() == file.holds_fd) return;
  file.holds_fd = file.writer->holds_fd();
  dynamic_fds_ = file.holds_fd ? dynamic_fds_ + 1 : dynamic_fds_ - 1;
}

void DumpFiles::GiveFdBack(DumpFile& file) {
  if (sync_.on() && file.writer->unsynced_bytes() > 0) {
    sync_.Take(file.writer->CopyFd());
    file.writer->MarkSynced();
  }
  file.writer->ReleaseFd();
}

size_t DumpFiles::open_fds() const {
  return static_cast<size_t>(std::ranges::count_if(files_, [](const auto& file) { return file->writer->holds_fd(); }));
}

Status DumpFiles::Append(DumpFile& file, std::span<const std::byte> bytes, uint64_t records, int64_t host_ns) {
  file.idle = false;
  return Do(file, [&](SliceWriter& writer) { return writer.Append(bytes, records, host_ns); });
}

Status DumpFiles::Flush(DumpFile& file) {
  return Do(file, [](SliceWriter& writer) { return writer.Flush(); });
}

Status DumpFiles::Cut(DumpFile& file) {
  return Do(file, [](SliceWriter& writer) { return writer.Cut(); });
}

Status DumpFiles::FlushAll() {
  Status first;
  for (const auto& file : files_) {
    Status flushed = Do(*file, [&](SliceWriter& writer) {
      Status status = writer.Flush();
      if (file->dynamic && file->idle) {
        GiveFdBack(*file);
        writer.ReleaseBuffer();
      }
      return status;
    });
    file->idle = true;
    if (first.ok()) first = std::move(flushed);
  }
  return first;
}

Status DumpFiles::CloseAll() {
  Status first;
  for (const auto& file : files_) {
    Status closed = Do(*file, [](SliceWriter& writer) { return writer.Close(); });
    if (first.ok()) first = std::move(closed);
  }
  return first;
}

void DumpFiles::StartWriteback() {
  if (!sync_.on()) return;
  for (const auto& file : files_) {
    const uint64_t unsynced = file->writer->unsynced_bytes();
    if (unsynced < file->started) file->started = 0;
    if (unsynced - file->started < kWritebackBytes) continue;
    file->started = unsynced;
    sync_.Take(file->writer->CopyFd(), DumpSync::SyncMode::kStart);
  }
}

void DumpFiles::Sync() {
  for (const auto& file : files_) {
    if (file->writer->unsynced_bytes() == 0) continue;
    if (file->folder != nullptr) file->folder->touched = true;
    if (!sync_.Take(file->writer->CopyFd())) continue;
    file->writer->MarkSynced();
    file->started = 0;
  }
}

}  // namespace profd
