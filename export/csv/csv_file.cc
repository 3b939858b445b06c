#include "export/csv/csv_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "dump/dump_io.h"

namespace profd::exporting::csv {

Status WriteWhole(const CsvTarget& target, const std::string& name, std::string_view text, uint64_t rows) {
  const std::string path = target.dir + "/" + name;
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (!fd.valid()) return Status::FromErrno(errno, "creating " + path);
  target.files->push_back({path, text.size(), rows});
  return WriteAll(fd.get(), text).Annotate(path);
}

size_t EndOfRows(std::string_view text, uint64_t rows) {
  size_t end = 0;
  bool quoted = false;
  for (; rows > 0 && end < text.size(); ++end) {
    if (text[end] == '"') quoted = !quoted;
    if (text[end] == '\n' && !quoted) --rows;
  }
  return end;
}

Status CsvFile::Next() {
  RETURN_IF_ERROR(Close());
  bool sliced = spec_.rows > spec_.limit || (spec_.slice_at_limit && spec_.rows == spec_.limit);
  std::string path = spec_.dir + "/" + std::string(spec_.name);
  if (sliced) path += "_slice_" + std::to_string(slice_);
  path += "_" + spec_.timestamp + ".csv";
  ++slice_;
  fd_.Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (!fd_.valid()) return Status::FromErrno(errno, "creating " + path);
  files_->push_back({path, 0, 0});
  rows_here_ = 0;
  std::string header = (spec_.of_devices ? "Device_id," : "") + spec_.columns + "\n";
  files_->back().bytes = header.size();
  return WriteAll(fd_.get(), header).Annotate(path);
}

Result<uint64_t> CsvFile::RowsLeft() {
  RETURN_IF_ERROR(IsInterrupted(spec_.go_on));
  if (!fd_.valid() || rows_here_ == spec_.limit) {
    Status status = Next();
    if (!status.ok()) return status;
  }
  return spec_.limit - rows_here_;
}

Status CsvFile::Append(std::string_view text, uint64_t rows) {
  while (rows > 0) {
    auto left = RowsLeft();
    if (!left.ok()) return left.status();
    uint64_t now = std::min(*left, rows);
    size_t end = now == rows ? text.size() : EndOfRows(text, now);
    RETURN_IF_ERROR(WriteAll(fd_.get(), text.substr(0, end)).Annotate(files_->back().path));
    files_->back().bytes += end;
    files_->back().rows += now;
    rows_here_ += now;
    rows -= now;
    text.remove_prefix(end);
  }
  return Status::Ok();
}

Status CsvFile::Append(const Spool& spool, const SpooledRows& piece) {
  if (piece.rows == 0) return Status::Ok();
  auto left = RowsLeft();
  if (!left.ok()) return left.status();
  if (*left < piece.rows) {
    std::string text(piece.bytes, '\0');
    RETURN_IF_ERROR(spool.Read(piece.offset, std::as_writable_bytes(std::span(text))));
    return Append(text, piece.rows);
  }
  RETURN_IF_ERROR(spool.CopyTo(fd_.get(), piece.offset, piece.bytes).Annotate(files_->back().path));
  files_->back().bytes += piece.bytes;
  files_->back().rows += piece.rows;
  rows_here_ += piece.rows;
  return Status::Ok();
}

Status CsvFile::Close() {
  if (!fd_.valid()) return Status::Ok();
  // What the file system only reports now: no space, a broken disk.
  if (::close(fd_.Release()) != 0) {
    return Status::FromErrno(errno, "closing " + files_->back().path);
  }
  return Status::Ok();
}

}  // namespace profd::exporting::csv
