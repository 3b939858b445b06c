#include "export/csv/parallel_rows.h"

#include <algorithm>
#include <vector>

#include "export/beside.h"

namespace profd::exporting::csv {
namespace {

constexpr size_t kRowsPerPiece = 8192;

}  // namespace

Status WriteRows(size_t rows, unsigned threads, const std::function<void(size_t row, std::string* out)>& add,
                 CsvFile* file) {
  std::vector<std::string> texts(std::max(threads, 1u));
  for (size_t begin = 0; begin < rows;) {
    const size_t first = begin;
    const auto make = [&](size_t piece) {
      texts[piece].clear();
      const size_t from = first + piece * kRowsPerPiece;
      for (size_t row = from; row < std::min(rows, from + kRowsPerPiece); ++row) add(row, &texts[piece]);
    };
    const size_t pieces = std::min(texts.size(), (rows - begin + kRowsPerPiece - 1) / kRowsPerPiece);
    RunBeside(pieces, make);
    for (size_t piece = 0; piece < pieces; ++piece) {
      const size_t now = std::min(kRowsPerPiece, rows - begin);
      RETURN_IF_ERROR(file->Append(texts[piece], now));
      begin += now;
    }
  }
  return Status::Ok();
}

}  // namespace profd::exporting::csv
