#include "export/rows/row_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

namespace profd::exporting {
namespace {

constexpr std::string_view kPart = ".part";

}  // namespace

RowFile::~RowFile() { Discard(); }

Status RowFile::Create(std::string path) {
  path_ = std::move(path);
  std::string part = path_ + std::string(kPart);
  fd_.Reset(::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!fd_.valid()) return Status::FromErrno(errno, part);
  there_ = true;
  return {};
}

Status RowFile::Append(std::string_view text, uint64_t* offset) {
  MutexLock lock(mutex_);
  if (offset != nullptr) *offset = bytes_;
  while (!text.empty()) {
    ssize_t put = ::pwrite(fd_.get(), text.data(), text.size(), static_cast<off_t>(bytes_));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Status::FromErrno(errno, path_);
    bytes_ += static_cast<uint64_t>(put);
    text.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

Status RowFile::Read(uint64_t offset, size_t size, std::string* out) const {
  size_t done = out->size();
  out->resize(done + size);
  while (done < out->size()) {
    ssize_t got =
        ::pread(fd_.get(), out->data() + done, out->size() - done, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, path_);
    if (got == 0) return DataLoss(path_ + ": shorter than written");
    offset += static_cast<uint64_t>(got);
    done += static_cast<size_t>(got);
  }
  return {};
}

Status RowFile::Commit() {
  std::string part = path_ + std::string(kPart);
  if (::rename(part.c_str(), path_.c_str()) != 0) return Status::FromErrno(errno, path_);
  there_ = false;
  return {};
}

void RowFile::Discard() {
  if (there_) ::unlink((path_ + std::string(kPart)).c_str());
  there_ = false;
  fd_.Reset();
}

}  // namespace profd::exporting
