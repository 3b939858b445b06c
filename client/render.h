// Text for people: tables, units, and the filter that every foreign string passes before it reaches
// a terminal.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/count_text.h"
#include "base/duration_text.h"

namespace profd::client {

// `text` with everything that could move a cursor, recolour, reorder or hide (control bytes, C1,
// bidirectional and invisible format characters, bytes that are no UTF-8) written as \x.. or
// \u{..}.
std::string Printable(std::string_view text);
// The same, line breaks kept.
std::string PrintableLines(std::string_view text);

// Columns a terminal gives `text` (already printable).
size_t DisplayWidth(std::string_view text);
// `text` (already printable) in at most so many columns: cut at its end, or in the middle, where an ellipsis stands.
std::string CutAtEnd(std::string_view text, size_t columns);
std::string CutInMiddle(std::string_view text, size_t columns);

// Of the locale's three variables the first that is set decides.
bool IsUtf8Locale();

// "0 B", "1.5 KiB", "20.0 MiB"
std::string FormatBytes(uint64_t bytes);
// "-" where it is empty.
inline std::string OrDash(std::string text) { return text.empty() ? "-" : text; }
// Local time, "2026-01-01 00:00:00"; "-" for 0.
std::string FormatTime(int64_t epoch_ns);
// "50 Hz"; "event" for 0.
std::string FormatHz(double hz);
// {-1, 0, 1, 2, 5} -> "host,0-2,5"; also of other numbers
std::string FormatDevices(std::vector<int32_t> devices);

// "npu3", "host"
inline std::string PlaceName(int device) { return device < 0 ? "host" : "npu" + std::to_string(device); }

enum class Tone { kPlain, kGood, kWarning, kBad, kFaint };
std::string Paint(std::string_view text, Tone tone, bool color);

struct Cell {
  Cell(std::string t, Tone n = Tone::kPlain) : text(std::move(t)), tone(n) {}  // NOLINT: implicit
  Cell(const char* t) : text(t) {}                                             // NOLINT: implicit
  std::string text;
  Tone tone = Tone::kPlain;
};

// Aligned columns, two blanks between them; cells are made printable. A header that begins with '>'
// aligns its column to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> headers);
  // Missing cells are empty.
  void AddRow(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }
  // `columns`: of the terminal. Where rows are longer, the longest texts are cut in the middle. 0 = no terminal.
  void Print(std::ostream& out, bool color, std::string_view indent = "", size_t columns = 0) const;
  // Where it is wider all the same, further columns follow below, behind the first one again.
  void PrintInParts(std::ostream& out, bool color, std::string_view indent, size_t columns) const;

 private:
  // Its first column and those from `from` to `to`.
  Table Part(size_t from, size_t to) const;
  std::vector<size_t> Widths(size_t columns) const;

  std::vector<std::string> headers_;
  std::vector<bool> right_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace profd::client
