#include "dump/dump_folders.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "dump/data_name.h"
#include "dump/slice_journal.h"

namespace profd {

std::string ControlName(std::string_view name, int device) {
  if (device == kVendorHostId || name == "sample.json") return std::string(name);
  return fmt::format("{}.{}", name, device);
}

Status DumpFolders::Make(DumpRoot& root, int64_t start_wall_ns) {
  Result<DumpRoot::NewDump> made = root.CreateDump(owner_, start_wall_ns);
  if (!made.ok()) return made.status();
  name_ = std::move(made->name);
  top_ = std::move(made->dir);
  path_ = fmt::format("{}/{}", root.path(), name_);
  return {};
}

Result<DataFolder*> DumpFolders::Add(int device) {
  DataFolder folder;
  folder.device = device;
  folder.number = all_.size();
  folder.name = FolderOf(device == kVendorHostId ? -1 : device);
  Result<UniqueFd> dir = MakeTopFolderAt(top_.get(), folder.name, owner_);
  if (!dir.ok()) return dir.status();
  folder.dir = std::move(*dir);
  Result<UniqueFd> data = MakeDirAt(folder.dir.get(), "data", owner_);
  if (!data.ok()) return data.status();
  folder.data = std::move(*data);
  return &all_.emplace_back(std::move(folder));
}

Status DumpFolders::AddOwn() {
  Result<UniqueFd> own = MakeDirAt(all_.front().dir.get(), std::string(kOwnFolder), owner_);
  if (own.ok()) own_ = std::move(*own);
  return own.status();
}

DataFolder* DumpFolders::Find(int device) {
  const auto found = std::ranges::find(all_, device, &DataFolder::device);
  return found == all_.end() ? nullptr : &*found;
}

Status DumpFolders::WriteControl(DataFolder& folder, std::string_view name, std::string_view text) {
  std::string file = ControlName(name, folder.device);
  const std::string done = ControlDone(text.size());
  RETURN_IF_ERROR(WriteNewFile(io_, folder.dir.get(), file, text, owner_));
  RETURN_IF_ERROR(WriteNewFile(io_, folder.dir.get(), file + std::string(kDoneSuffix), done, owner_));
  Grow(&folder, text.size() + done.size());
  ++entries_;
  listed_[fmt::format("{}/{}", folder.name, file)] = {Crc32c(AsBytes(text))};
  if (sync_.on()) folder.unsynced.push_back(std::move(file));
  return {};
}

Status DumpFolders::ReplaceControl(DataFolder& folder, std::string_view name, std::string_view text, uint64_t before) {
  const std::string file = ControlName(name, folder.device);
  const std::string done = ControlDone(text.size());
  RETURN_IF_ERROR(ReplaceFile(io_, folder.dir.get(), file, text, owner_, false));
  Grow(&folder, text.size() + done.size() - before - ControlDone(before).size());
  listed_[fmt::format("{}/{}", folder.name, file)] = {Crc32c(AsBytes(text))};
  return ReplaceFile(io_, folder.dir.get(), file + std::string(kDoneSuffix), done, owner_, false);
}

void DumpFolders::Grow(DataFolder* folder_or_null, uint64_t more) {
  bytes_ += more;
  if (folder_or_null != nullptr) folder_or_null->bytes += more;
}

void DumpFolders::Shrink(DataFolder* folder_or_null, uint64_t less) {
  bytes_ -= std::min(less, bytes_);
  if (folder_or_null != nullptr) folder_or_null->bytes -= std::min(less, folder_or_null->bytes);
}

Status DumpFolders::CheckStillThere() const {
  const auto gone = [](const UniqueFd& dir) {
    struct stat st {};
    return ::fstat(dir.get(), &st) == 0 && st.st_nlink == 0;
  };
  if (gone(top_) || std::ranges::any_of(all_, gone, &DataFolder::data)) {
    return DataLoss(fmt::format("{} was removed while it was written; start another session", path_));
  }
  // Of a run it is one level down.
  if (IsAt(path_) || IsAt(fmt::format("{}/{}", path_, name_))) return {};
  return DataLoss(fmt::format("{} was moved away, or replaced, while it was written: move it, or the dump root, back; what was "
                              "recorded until then is in it", path_));
}

bool DumpFolders::IsAt(const std::string& path) const {
  struct stat opened {};
  struct stat named {};
  if (::fstat(top_.get(), &opened) != 0) return true;
  if (::lstat(path.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void DumpFolders::SyncControls() {
  for (DataFolder& folder : all_) {
    for (const std::string& name : std::exchange(folder.unsynced, {})) {
      Result<UniqueFd> fd = OpenFileAt(folder.dir.get(), name);
      if (fd.ok()) sync_.Take(std::move(*fd));
      folder.touched = true;
    }
  }
}

void DumpFolders::SyncTouched() {
  for (DataFolder& folder : all_) {
    if (!std::exchange(folder.touched, false)) continue;
    sync_.TakeCopy(folder.data.get());
    sync_.TakeCopy(folder.dir.get());
  }
}

}  // namespace profd
