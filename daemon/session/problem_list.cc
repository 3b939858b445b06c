#include "daemon/session/problem_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace profd {

void ProblemList::AddLine(std::string line_untrusted) {
  std::string& line = line_untrusted;
  if (line.size() > kMaxLineBytes) {
    size_t end = kMaxLineBytes;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
    line.resize(end);
    line += "...";
  }
  for (char& c : line) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  bytes_ += line.size() + 1;
  lines_.push_back(std::move(line));
}

void ProblemList::Append(const ProblemList& other) {
  for (const std::string& line : other.lines_) Add([&line] { return line; });
  left_out_ += other.left_out_;
}

std::string ProblemList::Text() const {
  std::string text = fmt::format("{}", fmt::join(lines_, "\n"));
  if (left_out_ > 0) text += fmt::format("\nand {} more", left_out_);
  return text;
}

}  // namespace profd
