#include "base/man_page.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace profd {
namespace {

std::string Escaped(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (char c : text) {
    // A line that begins with one of these would be a request.
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    at_line_start = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':  // plain, roff prints a hyphen, which no shell takes for an option's dash
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// In lines of a length that is good to read in the source too; roff fills them anew.
std::string Filled(std::string_view text) {
  constexpr size_t kWidth = 72;
  std::string lines;
  size_t length = 0;
  for (std::string_view word = NextToken(&text); !word.empty(); word = NextToken(&text)) {
    bool breaks = length > 0 && length + 1 + word.size() > kWidth;
    if (length > 0) lines += breaks ? '\n' : ' ';
    length = breaks || length == 0 ? word.size() : length + 1 + word.size();
    lines += word;
  }
  return Escaped(lines);
}

// A macro's argument.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : Escaped(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + "\"";
}

std::string Upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace

ManPage::ManPage(std::string_view name, int section, std::string_view version,
                 std::string_view what) {
  text_ = ".TH " + Quoted(Upper(name)) + " " + std::to_string(section) + " \"\" " + Quoted(version) +
          " \"profd\"\n";
  Section("NAME");
  text_ += Escaped(name) + " \\- " + Escaped(what) + "\n";
}

void ManPage::Section(std::string_view title) {
  text_ += ".SH " + Quoted(title) + "\n";
  after_title_ = true;
}

void ManPage::Subsection(std::string_view title) {
  text_ += ".SS " + Quoted(title) + "\n";
  after_title_ = true;
}

void ManPage::Paragraph(std::string_view text) {
  if (!after_title_) text_ += ".PP\n";
  after_title_ = false;
  text_ += Filled(text) + "\n";
}

void ManPage::Entry(std::string_view term, std::string_view value, std::string_view text) {
  text_ += ".TP\n\\fB" + Escaped(term) + "\\fR";
  if (!value.empty()) text_ += " \\fI" + Escaped(value) + "\\fR";
  text_ += "\n";
  after_title_ = false;
  std::string_view line;
  for (bool first = true; NextLine(&text, &line); first = false) {
    if (!first) text_ += ".br\n";
    text_ += Filled(line) + "\n";
  }
}

void ManPage::Example(std::string_view lines) {
  if (!after_title_) text_ += ".PP\n";
  after_title_ = false;
  text_ += ".RS 4\n.nf\n";
  for (std::string_view line; NextLine(&lines, &line);) {
    if (line.starts_with("  ")) line.remove_prefix(2);  // the indentation of a help text
    text_ += Escaped(line) + "\n";
  }
  text_ += ".fi\n.RE\n";
}

}  // namespace profd
