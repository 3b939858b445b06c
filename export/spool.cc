#include "export/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace profd::exporting {
namespace {

constexpr size_t kCopyBuffer = 256 * 1024;

}  // namespace

UniqueFd OpenUnnamed(const std::string& dir) {
  UniqueFd fd(::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  // No O_TMPFILE there: a named one, unlinked at once.
  std::string path = dir + "/.profd-XXXXXX";
  fd.Reset(::mkostemp(path.data(), O_CLOEXEC));
  if (fd.valid()) ::unlink(path.c_str());
  return fd;
}

Result<std::unique_ptr<Spool>> Spool::Create(const std::string& dir) {
  UniqueFd fd = OpenUnnamed(dir);
  if (!fd.valid()) return Status::FromErrno(errno, "making a temporary file in " + dir);
  return std::unique_ptr<Spool>(new Spool(std::move(fd)));
}

Result<uint64_t> Spool::Append(std::span<const std::byte> bytes) {
  uint64_t begin = end_.fetch_add(bytes.size(), std::memory_order_relaxed);
  uint64_t at = begin;
  while (!bytes.empty()) {
    ssize_t done = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Status::FromErrno(done < 0 ? errno : EIO, "writing a temporary file");
    at += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return begin;
}

Status Spool::Read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    ssize_t done = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Status::FromErrno(done < 0 ? errno : EIO, "reading a temporary file");
    offset += static_cast<uint64_t>(done);
    into = into.subspan(static_cast<size_t>(done));
  }
  return Status::Ok();
}

Status Spool::CopyTo(int to, uint64_t offset, uint64_t bytes) const {
  auto from = static_cast<off_t>(offset);
  while (bytes > 0) {
    ssize_t done = ::copy_file_range(fd_.get(), &from, to, nullptr, bytes, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    bytes -= static_cast<uint64_t>(done);
  }
  std::vector<std::byte> buffer(std::min<uint64_t>(bytes, kCopyBuffer));
  while (bytes > 0) {
    auto piece = std::span(buffer).first(std::min<uint64_t>(bytes, buffer.size()));
    RETURN_IF_ERROR(Read(static_cast<uint64_t>(from), piece));
    RETURN_IF_ERROR(WriteAll(to, {reinterpret_cast<const char*>(piece.data()), piece.size()}));
    from += static_cast<off_t>(piece.size());
    bytes -= piece.size();
  }
  return Status::Ok();
}

void Spool::Forget(uint64_t offset, uint64_t bytes) const {
  // Only saves space: whether it works does not matter.
  [[maybe_unused]] int done = ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                          static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

Status WriteAll(int fd, std::string_view text, std::string_view what) {
  while (!text.empty()) {
    ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Status::FromErrno(done < 0 ? errno : EIO, what);
    text.remove_prefix(static_cast<size_t>(done));
  }
  return Status::Ok();
}

}  // namespace profd::exporting
