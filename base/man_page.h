// Text of a manual page in the man(7) language. Callers give plain text; whatever in it roff would
// take for markup is escaped here.
#pragma once

#include <string>
#include <string_view>

namespace profd {

class ManPage {
 public:
  // NAME is `name` - `what`.
  ManPage(std::string_view name, int section, std::string_view version, std::string_view what);

  void Section(std::string_view title);
  void Subsection(std::string_view title);
  void Paragraph(std::string_view text);  // one line
  // A term in bold, its value in italics behind it, and what it means below; lines of `text` stay lines.
  void Entry(std::string_view term, std::string_view value, std::string_view text);
  // Kept as it is, indented.
  void Example(std::string_view lines);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool after_title_ = false;  // a paragraph begins there by itself
};

}  // namespace profd
