#include "collectors/proc/text_file.h"

#include <unistd.h>

#include <cerrno>

namespace profd {

Result<std::string_view> TextFile::Read(TextBuffer& buffer) {
  if (!fd_.valid()) {
    Result<UniqueFd> opened = fs_->Open(path_);
    if (!opened.ok()) return opened.status();
    fd_ = std::move(opened).value();
  }
  size_t length = 0;
  while (true) {
    const ssize_t n = ::pread(fd_.get(), buffer.data() + length, buffer.size() - length,
                              static_cast<off_t>(length));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Status status = Status::FromErrno(errno, path_);
      fd_.Reset();
      return status;
    }
    length += static_cast<size_t>(n);
    if (n == 0) break;
    if (length < buffer.size()) {
      if (kind_ == Kind::kOnePiece) break;
      continue;
    }
    if (!buffer.Grow()) break;
    // The rest of a file rendered per read would belong to another instant: begin again.
    if (kind_ == Kind::kOnePiece) length = 0;
  }
  return std::string_view(buffer.data(), length);
}

Status ProbeFile(const RootedFs& fs, const std::string& path, std::string_view shown) {
  char text[256];
  Result<size_t> read = fs.ReadInto(path, text);
  if (read.ok()) return {};
  if (read.status().code() == StatusCode::kNotFound) {
    return Unimplemented(std::string(shown) + " is missing");
  }
  return read.status().Annotate(shown);
}

}  // namespace profd
