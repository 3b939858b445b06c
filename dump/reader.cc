#include "dump/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "dump/data_name.h"

namespace profd {
namespace {

// Folders count directly in the dump only, where the vendor's analyser descends into them.
bool IsStrange(const TreeEntry& entry) {
  if (!entry.is_dir) return entry.other || !IsSafePath(entry.path);
  return entry.path.find('/') == std::string::npos && !IsTopFolder(entry.path) && entry.path != kOwnFolder;
}

Result<uid_t> OwnerOf(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Status::FromErrno(errno, "stat");
  return st.st_uid;
}

}  // namespace

Result<DumpReader> DumpReader::Of(Result<UniqueFd> dir) {
  if (!dir.ok()) return dir.status();
  Result<uid_t> uid = OwnerOf(dir->get());
  if (!uid.ok()) return uid.status();
  return DumpReader(std::move(*dir), *uid);
}

Result<DumpReader> DumpReader::Open(const DumpRoot& root, std::string_view name) { return Of(root.OpenDump(name)); }

Result<DumpReader> DumpReader::OpenWhole(const DumpRoot& root, std::string_view name) {
  return Of(root.OpenFolder(name));
}

Result<DumpReader> DumpReader::OpenPath(const std::string& path) {
  UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Status::FromErrno(errno, path);
  return Of(std::move(dir));
}

std::string DumpReader::NotRead::What() const {
  if (files == 1) return "is a hard link or belongs to another user: not read";
  return fmt::format("{} files are hard links or belong to another user: not read", files);
}

Result<std::vector<DumpReader::File>> DumpReader::Files(const ListLimits& limits, NotRead* not_read) const {
  std::vector<File> files;
  size_t name_bytes = 0;
  TreeLimits tree;
  tree.entries = limits.entries;
  Status walked = WalkTree(dir_.get(), tree, [&](const TreeEntry& entry) {
    const bool strange = IsStrange(entry);
    if (strange && not_read != nullptr) not_read->strange.push_back(entry);
    if (entry.is_dir || strange) return Status();
    // Another's file here is a hard link that a user made, not ours.
    if (entry.uid != uid_ || entry.links > 1) {
      if (not_read != nullptr && not_read->files++ == 0) not_read->first = entry.path;
    } else if (entry.links == 1) {
      name_bytes += entry.path.size();
      if (name_bytes > limits.name_bytes) return OutOfRange("the names of its files are too long");
      files.push_back({TodaysPath(entry.path), entry.bytes});
    }
    return Status();
  });
  if (!walked.ok()) return walked;
  // Should a path be there twice, its first is today's, which is what OpenFile opens.
  std::ranges::stable_sort(files, {}, &File::path);
  auto same = [](const File& a, const File& b) { return a.path == b.path; };
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return files;
}

Result<UniqueFd> DumpReader::OpenFile(std::string_view path_untrusted) const {
  Result<UniqueFd> file = OpenBelow(path_untrusted);
  const std::string_view own = OwnFileName(path_untrusted);
  if (file.ok() || own.empty() || file.status().code() != StatusCode::kNotFound) return file;
  Result<UniqueFd> old = OpenBelow(fmt::format("{}{}", kOldOwnPrefix, own));
  return old.ok() ? std::move(old) : std::move(file);
}

Result<UniqueFd> DumpReader::OpenBelow(std::string_view path_untrusted) const {
  if (!IsSafePath(path_untrusted)) return InvalidArgument("not a path inside a dump");
  std::string_view rest = path_untrusted;
  UniqueFd held;
  int dir = dir_.get();
  for (size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    Result<UniqueFd> next = OpenDirAt(dir, std::string(rest.substr(0, slash)));
    if (!next.ok()) return next.status();
    held = std::move(*next);
    dir = held.get();
    rest.remove_prefix(slash + 1);
  }
  Result<UniqueFd> file = OpenFileAt(dir, std::string(rest));
  if (!file.ok()) return file.status();
  struct stat st {};
  if (::fstat(file->get(), &st) != 0) return Status::FromErrno(errno, rest);
  // Removed between its opening and this look at it.
  if (st.st_nlink == 0) return NotFound(std::string(path_untrusted));
  if (st.st_uid != uid_ || st.st_nlink != 1) {
    return PermissionDenied(fmt::format("{} is not the dump's own", path_untrusted));
  }
  return file;
}

bool DumpReader::HasBeside(std::string_view name_untrusted) const {
  return DumpRoot::IsDumpName(name_untrusted) && OpenDirAt(dir_.get(), fmt::format("../{}", name_untrusted)).ok();
}

Result<Manifest> DumpReader::ReadManifest() const {
  Result<UniqueFd> file = OpenFile(kManifestFile);
  if (!file.ok()) return file.status();
  Result<std::string> text = ReadWhole(file->get(), kMaxManifestBytes);
  if (!text.ok()) return text.status().Annotate(kManifestFile);
  return ParseManifest(*text);
}

}  // namespace profd
