#include "driver/rooted_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/text.h"
#include "driver/path_parts.h"

namespace profd {
namespace {

constexpr int kRaceRetries = 16;

// Paths come from code and configuration, and from names found in directories: anything that could
// mean "elsewhere" is refused before the kernel sees it.
Status CheckRelative(std::string_view path) {
  if (path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos) {
    return InvalidArgument("not a path");
  }
  if (!path.empty() && path.front() == '/') {
    return InvalidArgument(fmt::format("{}: must be relative", path));
  }
  std::string_view rest = path;
  for (std::string_view part; NextPart(&rest, '/', &part);) {
    if (part == "..") return InvalidArgument(fmt::format("{}: must not contain \"..\"", path));
  }
  return Status::Ok();
}

Status Escapes(std::string_view path) {
  return PermissionDenied(fmt::format("{}: leads out of its root", path));
}

// Resolution without openat2: one component at a time, no symlink followed by the kernel.
class HandWalk {
 public:
  HandWalk(int root, std::string_view path) : root_(root), path_(path) {}

  // The last component is opened with `flags`; with O_NOFOLLOW a symlink there is not resolved.
  Result<UniqueFd> Open(int flags) {
    PushPathFront(path_, &todo_);
    while (!todo_.empty()) {
      std::string part = std::move(todo_.front());
      todo_.pop_front();
      if (part == "..") {
        if (dirs_.empty()) return Escapes(path_);
        dirs_.pop_back();
        continue;
      }
      bool last = todo_.empty();
      UniqueFd entry(::openat(Top(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (!entry.valid()) return Status::FromErrno(errno, path_);
      struct stat facts {};
      if (::fstat(entry.get(), &facts) != 0) return Status::FromErrno(errno, path_);
      if (S_ISLNK(facts.st_mode) && !(last && (flags & O_NOFOLLOW) != 0)) {
        RETURN_IF_ERROR(Follow(part));
        continue;
      }
      if (last) return Finish(part, flags);
      dirs_.push_back(std::move(entry));
    }
    return Finish(".", flags);
  }

 private:
  int Top() const { return dirs_.empty() ? root_ : dirs_.back().get(); }

  Status Follow(const std::string& part) {
    if (++links_ > kMaxSymlinks) return Status::FromErrno(ELOOP, path_);
    std::array<char, PATH_MAX> target{};
    ssize_t length = ::readlinkat(Top(), part.c_str(), target.data(), target.size());
    if (length < 0) return Status::FromErrno(errno, path_);
    if (length > 0 && target[0] == '/') return Escapes(path_);
    PushPathFront({target.data(), static_cast<size_t>(length)}, &todo_);
    return Status::Ok();
  }

  // O_NOFOLLOW: should the entry have become a symlink meanwhile, this fails instead of leaving.
  Result<UniqueFd> Finish(const std::string& part, int flags) {
    UniqueFd fd(::openat(Top(), part.c_str(), flags | O_NOFOLLOW));
    if (!fd.valid()) return Status::FromErrno(errno, path_);
    return fd;
  }

  const int root_;
  const std::string path_;
  std::vector<UniqueFd> dirs_;
  std::deque<std::string> todo_;
  int links_ = 0;
};

int OpenBeneath(int root, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  // EAGAIN: something was renamed while the kernel walked ".." of a symlink.
  for (int attempt = 0; attempt < kRaceRetries; ++attempt) {
    fd = static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return fd;
}

bool KernelHasOpenat2(int root) {
  UniqueFd probe(OpenBeneath(root, ".", O_PATH | O_CLOEXEC));
  return probe.valid();
}

Result<size_t> ReadAll(int fd, std::span<char> buffer) {
  size_t used = 0;
  while (used < buffer.size()) {
    ssize_t got = ::read(fd, buffer.data() + used, buffer.size() - used);
    if (got < 0) {
      if (errno == EINTR) continue;
      return Status::FromErrno(errno, "read");
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  return used;
}

}  // namespace

Result<std::string_view> KeptFile::Read(std::span<char> buffer) const {
  if (!fd_.valid()) return FailedPrecondition("the file is not open");
  long got = -1;
  do {
    // The C library's is a point where a thread may be cancelled, and pays for it; ours never are.
    got = ::syscall(SYS_pread64, fd_.get(), buffer.data(), buffer.size(), 0L);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Status::FromErrno(errno, "read");
  return std::string_view(buffer.data(), static_cast<size_t>(got));
}

Result<RootedFs> RootedFs::OpenRoot(const std::string& path, Resolver resolver) {
  UniqueFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return Status::FromErrno(errno, path);
  if (resolver == Resolver::kKernelIfAble && !KernelHasOpenat2(root.get())) {
    resolver = Resolver::kByHand;
  }
  return RootedFs(std::move(root), resolver);
}

Result<UniqueFd> RootedFs::OpenFlags(std::string_view relative_path, int flags) const {
  RETURN_IF_ERROR(CheckRelative(relative_path));
  flags |= O_CLOEXEC;
  if (resolver_ == Resolver::kByHand) return HandWalk(root_.get(), relative_path).Open(flags);
  std::string path(relative_path.empty() ? "." : relative_path);
  UniqueFd fd(OpenBeneath(root_.get(), path.c_str(), flags));
  if (fd.valid()) return fd;
  if (errno == EXDEV) return Escapes(relative_path);
  return Status::FromErrno(errno, relative_path);
}

Result<UniqueFd> RootedFs::Open(std::string_view relative_path) const {
  return OpenFlags(relative_path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

Result<KeptFile> RootedFs::Keep(std::string_view relative_path) const {
  Result<UniqueFd> fd = Open(relative_path);
  if (!fd.ok()) return fd.status();
  return KeptFile(std::move(*fd));
}

Result<size_t> RootedFs::ReadInto(std::string_view relative_path, std::span<char> buffer) const {
  Result<UniqueFd> fd = Open(relative_path);
  if (!fd.ok()) return fd.status();
  Result<size_t> size = ReadAll(fd->get(), buffer);
  if (!size.ok()) return size.status().Annotate(relative_path);
  return size;
}

Result<std::string> RootedFs::ReadFile(std::string_view relative_path, size_t max_bytes) const {
  Result<UniqueFd> fd = Open(relative_path);
  if (!fd.ok()) return fd.status();
  std::string content;
  while (content.size() <= max_bytes) {
    size_t begin = content.size();
    content.resize(std::min(max_bytes + 1, std::max<size_t>(4096, begin * 2)));
    Result<size_t> got = ReadAll(fd->get(), std::span(content).subspan(begin));
    if (!got.ok()) return got.status().Annotate(relative_path);
    bool at_end = *got < content.size() - begin;
    content.resize(begin + *got);
    if (at_end) return content;
  }
  return OutOfRange(fmt::format("{}: longer than {} bytes", relative_path, max_bytes));
}

Status RootedFs::Visit(std::string_view relative_path,
                       const std::function<void(std::string_view)>& visit) const {
  Result<UniqueFd> fd = OpenFlags(relative_path, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return fd.status();
  alignas(dirent64) std::array<char, 16384> entries;
  for (;;) {
    const ssize_t got = ::getdents64(fd->get(), entries.data(), entries.size());
    if (got == 0) return {};
    if (got < 0) return Status::FromErrno(errno, relative_path);
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") visit(name);
      at += entry->d_reclen;
    }
  }
}

Result<std::vector<std::string>> RootedFs::List(std::string_view relative_path) const {
  std::vector<std::string> names;
  RETURN_IF_ERROR(Visit(relative_path, [&](std::string_view name) { names.emplace_back(name); }));
  std::ranges::sort(names);
  return names;
}

Result<std::string> RootedFs::ReadLink(std::string_view relative_path) const {
  Result<UniqueFd> fd = OpenFlags(relative_path, O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return fd.status();
  std::array<char, PATH_MAX> target{};
  ssize_t length = ::readlinkat(fd->get(), "", target.data(), target.size());
  if (length < 0) return Status::FromErrno(errno == ENOENT ? EINVAL : errno, relative_path);
  return std::string(target.data(), static_cast<size_t>(length));
}

bool RootedFs::Exists(std::string_view relative_path) const {
  return OpenFlags(relative_path, O_PATH).ok();
}

}  // namespace profd
