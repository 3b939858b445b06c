#include "export/shared_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "export/spool.h"

namespace profd::exporting {

Status IsInterrupted(const GoOn& go_on) {
  return go_on && !go_on() ? Status(StatusCode::kCancelled, "interrupted") : Status::Ok();
}

Status SharedFile::Create(std::string path, GoOn go_on) {
  path_ = std::move(path);
  go_on_ = std::move(go_on);
  temporary_ = path_ + ".part";
  fd_.Reset(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!fd_.valid()) {
    Status failed = Status::FromErrno(errno, temporary_);
    temporary_.clear();
    return failed;
  }
  return Status::Ok();
}

SharedFile::~SharedFile() { Discard(); }

Status SharedFile::Append(std::string_view bytes) {
  MutexLock lock(mutex_);
  return Write(bytes);
}

Status SharedFile::AppendItems(std::string_view items) {
  if (items.empty()) return Status::Ok();
  MutexLock lock(mutex_);
  if (!has_items_) items.remove_prefix(1);
  has_items_ = true;
  return Write(items);
}

Status SharedFile::Write(std::string_view bytes) {
  if (failed_.ok()) failed_ = IsInterrupted(go_on_);
  if (failed_.ok()) failed_ = WriteAll(fd_.get(), bytes, temporary_);
  if (failed_.ok()) bytes_ += bytes.size();
  return failed_;
}

Status SharedFile::Commit() {
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(failed_);
  }
  // Some file systems report a full disk only here.
  if (::close(fd_.Release()) != 0) return Status::FromErrno(errno, temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Status::FromErrno(errno, path_);
  temporary_.clear();
  return Status::Ok();
}

void SharedFile::Discard() {
  fd_.Reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace profd::exporting
