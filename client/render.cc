#include "client/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/clock.h"
#include "base/text.h"
#include "base/utf8.h"
#include "client/environment_variable.h"

namespace profd::client {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};
template <size_t N>
bool In(uint32_t c, const std::array<Range, N>& ranges) {
  return std::ranges::any_of(ranges, [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// Beside what is invisible: soft hyphen, Arabic letter mark, interlinear marks, tags.
constexpr std::array<Range, 4> kUnsafe = {{{0xad, 0xad}, {0x61c, 0x61c}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}}};
// East Asian wide and emoji.
constexpr std::array<Range, 9> kWide = {{{0x1100, 0x115f},
                                         {0x2e80, 0xa4cf},
                                         {0xac00, 0xd7a3},
                                         {0xf900, 0xfaff},
                                         {0xfe30, 0xfe6f},
                                         {0xff00, 0xff60},
                                         {0xffe0, 0xffe6},
                                         {0x1f300, 0x1faff},
                                         {0x20000, 0x3fffd}}};
constexpr std::array<Range, 2> kCombining = {{{0x300, 0x36f}, {0x20d0, 0x20ff}}};

std::string Filter(std::string_view text, bool keep_newlines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    CodePoint point = FirstCodePoint(text);
    if (point.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (point.value == '\n' && keep_newlines) {
      out += '\n';
    } else if (!IsInvisible(point.value) && !In(point.value, kUnsafe)) {
      out += text.substr(0, point.bytes);
    } else if (point.value < 0x80) {
      out += fmt::format("\\x{:02x}", point.value);
    } else {
      out += fmt::format("\\u{{{:x}}}", point.value);
    }
    text.remove_prefix(point.bytes);
  }
  return out;
}

std::string_view Escape(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kGood:
      return "\033[32m";
    case Tone::kWarning:
      return "\033[33m";
    case Tone::kBad:
      return "\033[31m";
    case Tone::kFaint:
      return "\033[2m";
  }
  return "";
}

// Removes the first character; the columns that it has.
size_t TakeCharacter(std::string_view* text) {
  const CodePoint point = FirstCodePoint(*text);
  text->remove_prefix(std::max<size_t>(point.bytes, 1));
  return In(point.value, kCombining) ? 0 : In(point.value, kWide) ? 2 : 1;
}

// What fits into so many columns.
std::string_view Beginning(std::string_view text, size_t columns) {
  std::string_view rest = text;
  for (std::string_view next = text; !next.empty(); rest = next) {
    const size_t width = TakeCharacter(&next);
    if (width > columns) break;
    columns -= width;
  }
  return text.substr(0, text.size() - rest.size());
}

constexpr size_t kBetween = 2;  // blanks between columns of a table

}  // namespace

std::string Printable(std::string_view text) { return Filter(text, false); }
std::string PrintableLines(std::string_view text) { return Filter(text, true); }

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += TakeCharacter(&text);
  return width;
}

bool IsUtf8Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = EnvironmentVariable(name);
    if (!locale.empty()) return HoldsIgnoringCase(locale, "utf-8") || HoldsIgnoringCase(locale, "utf8");
  }
  return false;
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatTime(int64_t epoch_ns) {
  if (epoch_ns == 0) return "-";
  time_t seconds = epoch_ns / kNsPerSecond;
  struct tm local = {};
  if (localtime_r(&seconds, &local) == nullptr) return fmt::format("{} s", seconds);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::string FormatHz(double hz) { return hz == 0 ? "event" : fmt::format("{:.6g} Hz", hz); }

std::string FormatDevices(std::vector<int32_t> devices) {
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  std::string out;
  for (size_t i = 0; i < devices.size();) {
    if (!out.empty()) out += ',';
    if (devices[i] < 0) {
      out += "host";
      ++i;
      continue;
    }
    size_t j = i;
    while (j + 1 < devices.size() && devices[j + 1] - devices[j] == 1) ++j;
    out += std::to_string(devices[i]);
    if (j > i) out += (j > i + 1 ? "-" : ",") + std::to_string(devices[j]);
    i = j + 1;
  }
  return out;
}

std::string Paint(std::string_view text, Tone tone, bool color) {
  if (!color || tone == Tone::kPlain) return std::string(text);
  return fmt::format("{}{}\033[0m", Escape(tone), text);
}

std::string CutAtEnd(std::string_view text, size_t columns) {
  if (DisplayWidth(text) <= columns) return std::string(text);
  return std::string(Beginning(text, columns - 1)) + "…";
}

std::string CutInMiddle(std::string_view text, size_t columns) {
  const size_t width = DisplayWidth(text);
  if (width <= columns) return std::string(text);
  const std::string_view begin = Beginning(text, columns / 2);
  const size_t left = columns - 1 - DisplayWidth(begin);
  std::string_view end = text.substr(Beginning(text, width - left).size());
  while (DisplayWidth(end) > left) TakeCharacter(&end);  // half of a wide one
  return fmt::format("{}…{}", begin, end);
}

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {
  for (std::string& header : headers_) {
    right_.push_back(header.starts_with('>'));
    if (right_.back()) header.erase(0, 1);
  }
}

void Table::AddRow(std::vector<Cell> cells) {
  cells.resize(headers_.size(), Cell(""));
  for (Cell& cell : cells) cell.text = Printable(cell.text);
  rows_.push_back(std::move(cells));
}

// Of each column, in so many columns of the terminal in all (0 = any). Numbers are never cut.
std::vector<size_t> Table::Widths(size_t columns) const {
  constexpr size_t kLeast = 24;  // shorter names of operators are hard to distinguish
  std::vector<size_t> widths;
  size_t all = 0;
  for (size_t i = 0; i < headers_.size(); ++i) {
    size_t width = DisplayWidth(headers_[i]);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i].text));
    widths.push_back(width);
    all += width + (i == 0 ? 0 : kBetween);
  }
  for (; columns != 0 && all > columns; --all) {
    size_t* longest = nullptr;
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool can_shrink = !right_[i] && widths[i] > std::max(kLeast, DisplayWidth(headers_[i]));
      if (can_shrink && (longest == nullptr || widths[i] > *longest)) longest = &widths[i];
    }
    if (longest == nullptr) break;
    --*longest;
  }
  return widths;
}

void Table::Print(std::ostream& out, bool color, std::string_view indent, size_t columns) const {
  const std::vector<size_t> widths = Widths(columns == 0 ? 0 : columns - std::min(columns - 1, indent.size()));
  auto print_row = [&](const auto& text_of, const auto& tone_of) {
    std::string line(indent);
    std::string gap;
    for (size_t i = 0; i < headers_.size(); ++i) {
      const std::string text = CutInMiddle(text_of(i), widths[i]);
      std::string padding(widths[i] - DisplayWidth(text), ' ');
      if (right_[i]) gap += padding;
      // Blanks are written only when something follows: no line ends in them.
      if (!text.empty()) {
        line += gap;
        line += Paint(text, tone_of(i), color);
        gap.clear();
      }
      if (!right_[i]) gap += padding;
      gap.append(kBetween, ' ');
    }
    out << line << '\n';
  };
  print_row([&](size_t i) { return std::string_view(headers_[i]); },
            [](size_t) { return Tone::kFaint; });
  for (const auto& row : rows_) {
    print_row([&](size_t i) { return std::string_view(row[i].text); },
              [&](size_t i) { return row[i].tone; });
  }
}

Table Table::Part(size_t from, size_t to) const {
  const auto columns = [from, to](const auto& all) {
    auto some = all;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(to), some.end());
    some.erase(some.begin() + 1, some.begin() + static_cast<std::ptrdiff_t>(from));
    return some;
  };
  Table part({});
  part.headers_ = columns(headers_);
  part.right_ = columns(right_);
  for (const auto& row : rows_) part.rows_.push_back(columns(row));
  return part;
}

void Table::PrintInParts(std::ostream& out, bool color, std::string_view indent, size_t columns) const {
  const size_t width_left = columns - std::min(columns, indent.size());
  const auto fits = [width_left](const Table& part) {
    size_t all = 0;
    for (const size_t width : part.Widths(width_left)) all += width + kBetween;
    return all <= width_left + kBetween;
  };
  if (columns == 0 || headers_.size() < 2) return Print(out, color, indent, columns);
  for (size_t from = 1; from < headers_.size();) {
    size_t to = from + 1;
    while (to < headers_.size() && fits(Part(from, to + 1))) ++to;
    Part(from, to).Print(out, color, indent, columns);
    from = to;
  }
}

}  // namespace profd::client
