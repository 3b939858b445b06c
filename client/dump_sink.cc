#include "client/dump_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "dump/data_name.h"
#include "export/spool.h"

namespace profd::client {
namespace {

constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxName = 255;
constexpr size_t kMaxDepth = 16;
// Far above any dump (a slice is megabytes); bounds our list of what was made.
constexpr size_t kMaxEntries = 1'000'000;

// As the daemon keeps them: a profile shows much of a job. The umask may only take away.
constexpr mode_t kDirMode = 0750;
constexpr mode_t kFileMode = 0640;

constexpr int kDirFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Status Refuse(std::string_view path, std::string_view why) {
  return DataLoss(
      fmt::format("the daemon sent a file name that is not acceptable: \"{}\" {}", path, why));
}

}  // namespace

Result<std::vector<std::string>> SplitDumpPath(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath)
    return Refuse(path.substr(0, 80), "has no sane length");
  if (path.front() == '/') return Refuse(path, "is absolute");
  for (char c : path) {
    if (IsControl(c)) return Refuse(path, "has control bytes");
  }
  std::vector<std::string> components;
  for (std::string_view rest = path;;) {
    size_t slash = rest.find('/');
    std::string_view name = rest.substr(0, slash);
    if (name.empty() || name == "." || name == "..") {
      return Refuse(path, "has an empty, \".\" or \"..\" component");
    }
    if (name.size() > kMaxName) return Refuse(path, "has a component that is too long");
    components.emplace_back(name);
    if (components.size() > kMaxDepth) return Refuse(path, "is too deep");
    if (slash == std::string_view::npos) return components;
    rest.remove_prefix(slash + 1);
  }
}

std::string DumpSink::path() const {
  if (name_.empty()) return "";
  return out_dir_ + (out_dir_.ends_with('/') ? "" : "/") + name_;
}

Status DumpSink::Begin(const v1::DumpChunk& chunk) {
  auto name = SplitDumpPath(chunk.dump_name());
  if (!name.ok()) return name.status().Annotate("name of the dump");
  if (name->size() != 1) return Refuse(chunk.dump_name(), "is not one directory's name");
  if (mkdir(out_dir_.c_str(), kDirMode) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "creating " + out_dir_);
  }
  // The user's own directory may be a symbolic link; below it none is followed.
  out_.Reset(open(out_dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out_.valid()) return Status::FromErrno(errno, "opening " + out_dir_);
  if (mkdirat(out_.get(), name->front().c_str(), kDirMode) != 0) {
    std::string there = out_dir_ + "/" + name->front();
    if (errno != EEXIST) return Status::FromErrno(errno, "creating " + there);
    const UniqueFd other(openat(out_.get(), name->front().c_str(), kDirFlags));
    const bool written_now = other.valid() && flock(other.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return AlreadyExists(there + (written_now ? ": another fetch is writing it; wait for that one, or choose another --out"
                                              : " is already there; remove it, or choose another --out"));
  }
  name_ = name->front();
  total_ = chunk.total_bytes();
  root_.Reset(openat(out_.get(), name_.c_str(), kDirFlags));
  if (!root_.valid()) return Status::FromErrno(errno, "opening " + path());
  // For another fetch, which then knows that this one is under way. Some file systems have no locks.
  (void)flock(root_.get(), LOCK_EX | LOCK_NB);
  return Status::Ok();
}

Result<UniqueFd> DumpSink::OpenParent(const std::vector<std::string>& components) {
  UniqueFd dir(openat(root_.get(), ".", kDirFlags));
  std::string so_far;
  for (size_t i = 0; dir.valid() && i + 1 < components.size(); ++i) {
    const char* name = components[i].c_str();
    so_far += (so_far.empty() ? "" : "/") + components[i];
    if (mkdirat(dir.get(), name, kDirMode) == 0) {
      created_.push_back({so_far, true});
    } else if (errno != EEXIST) {
      return Status::FromErrno(errno, "creating " + so_far);
    }
    dir.Reset(openat(dir.get(), name, kDirFlags));
  }
  if (!dir.valid()) return Status::FromErrno(errno, "opening directory " + so_far);
  return dir;
}

Status DumpSink::OpenFile(const std::string& path) {
  if (file_.valid()) return DataLoss(fmt::format("{} began before {} had ended", path, file_path_));
  auto components = SplitDumpPath(path);
  if (!components.ok()) return components.status();
  if (created_.size() + kMaxDepth > kMaxEntries) return DataLoss("the dump has too many files");
  auto parent = OpenParent(*components);
  if (!parent.ok()) return parent.status();
  file_.Reset(openat(parent->get(), components->back().c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file_.valid()) return Status::FromErrno(errno, "creating " + path);
  created_.push_back({path, false});
  file_path_ = path;
  file_bytes_ = 0;
  ++files_;
  return Status::Ok();
}

Status DumpSink::CloseFile() {
  if (!file_.valid()) return DataLoss("a file ended that never began");
  struct stat info = {};
  if (fstat(file_.get(), &info) != 0) return Status::FromErrno(errno, file_path_);
  if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) != file_bytes_) {
    return DataLoss(
        fmt::format("{}: {} bytes on disk, {} received", file_path_, info.st_size, file_bytes_));
  }
  // Network file systems report a full quota only here.
  if (close(file_.Release()) != 0) return Status::FromErrno(errno, "closing " + file_path_);
  return Status::Ok();
}

Status DumpSink::Write(const v1::DumpChunk& chunk) {
  if (name_.empty()) RETURN_IF_ERROR(Begin(chunk));
  // A daemon of an earlier version sends dumps with its layout.
  if (!chunk.path().empty()) RETURN_IF_ERROR(OpenFile(TodaysPath(chunk.path())));
  if (!chunk.data().empty()) {
    if (!file_.valid()) return DataLoss("data was received that belongs to no file");
    if (chunk.data().size() > total_ - received_) {
      return DataLoss(fmt::format("more than the announced {} bytes were received", total_));
    }
    RETURN_IF_ERROR(exporting::WriteAll(file_.get(), chunk.data(), "write").Annotate(file_path_));
    received_ += chunk.data().size();
    file_bytes_ += chunk.data().size();
  }
  if (chunk.last()) return CloseFile();
  return Status::Ok();
}

Status DumpSink::Finish() {
  if (name_.empty()) return DataLoss("the daemon sent nothing");
  if (file_.valid()) return DataLoss(fmt::format("{} has no end", file_path_));
  if (received_ != total_) {
    return DataLoss(fmt::format("{} of {} bytes were received", received_, total_));
  }
  return Status::Ok();
}

Status DumpSink::FinishPart() const {
  if (name_.empty()) return DataLoss("the daemon sent nothing");
  if (file_.valid()) return DataLoss(fmt::format("{} has no end", file_path_));
  return Status::Ok();
}

void DumpSink::Discard() {
  file_.Reset();
  if (!root_.valid()) return;
  for (auto made = created_.rbegin(); made != created_.rend(); ++made) {
    unlinkat(root_.get(), made->path.c_str(), made->directory ? AT_REMOVEDIR : 0);
  }
  created_.clear();
  root_.Reset();
  unlinkat(out_.get(), name_.c_str(), AT_REMOVEDIR);
}

}  // namespace profd::client
