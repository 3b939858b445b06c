#include "export/csv/spooled_text.h"

#include <span>

namespace profd::exporting::csv {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;
// What a file that has ended may keep in memory: there may be many.
constexpr size_t kRestBytes = 4 * 1024;

}  // namespace

void SpooledText::Added(uint64_t rows) {
  text_rows_ += rows;
  rows_ += rows;
  if (text_.size() >= kPieceBytes) Spill();
}

void SpooledText::Spill() {
  if (text_.empty()) return;
  auto offset = spool_->Append(text_);
  if (offset.ok()) {
    pieces_.push_back({*offset, text_.size(), text_rows_});
  } else if (error_.ok()) {
    error_ = offset.status();
  }
  text_.clear();
  text_rows_ = 0;
}

Status SpooledText::Finish() {
  if (text_.size() > kRestBytes) Spill();
  text_.shrink_to_fit();
  return error_;
}

Status SpooledText::WriteTo(CsvFile* file) {
  RETURN_IF_ERROR(error_);
  for (const SpooledRows& piece : pieces_) {
    RETURN_IF_ERROR(file->Append(*spool_, piece));
    spool_->Forget(piece.offset, piece.bytes);
  }
  pieces_.clear();
  RETURN_IF_ERROR(file->Append(text_, text_rows_));
  text_.clear();
  return Status::Ok();
}

Status SpooledText::ForEach(const std::function<Status(std::string_view)>& each) {
  RETURN_IF_ERROR(error_);
  std::string lines;
  for (const SpooledRows& piece : pieces_) {
    lines.resize(piece.bytes);
    RETURN_IF_ERROR(spool_->Read(piece.offset, std::as_writable_bytes(std::span(lines))));
    RETURN_IF_ERROR(each(lines));
  }
  return text_.empty() ? Status::Ok() : each(text_);
}

}  // namespace profd::exporting::csv
