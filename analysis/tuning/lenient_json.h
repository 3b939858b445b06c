// JSON as tuning tools leave it: keys that repeat, commas that are missing, a file that is still being written or was
// never finished. Read from front to back, a value at a time, so that what is complete in front of a defect is kept.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace profd::analysis {

class LenientJson {
 public:
  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxString = 64 << 10;  // bytes of a text; the rest is left out

  // `text` must outlive the reader.
  explicit LenientJson(std::string_view text) : text_(text), at_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0) {}

  using TakeMember = std::function<void(const std::string& key)>;
  // Each member of the next object, in the order of the text, keys that repeat too. `take` reads its value;
  // what it does not read is skipped, and so is a value that is not an object. `braces`: false where an opening brace may be
  // missing, as in front of the first key of a file.
  void Members(const TakeMember& take, bool braces = true);
  // Each item of the next list; as above.
  void Items(const std::function<void()>& take);

  // The next value; nothing, and the value skipped, where it is of another kind.
  std::optional<double> Number();
  std::optional<std::string> Text();
  void Skip();

  char Peek();  // the next character; 0 at the end
  // The rest cannot be read: it ends too early, or is not JSON.
  bool stopped() const { return stopped_; }
  const std::string& why() const { return why_; }
  size_t missing_commas() const { return missing_commas_; }
  size_t Line() const;

 private:
  void Stop(std::string_view why);
  void SkipBlanks();
  bool Enter();
  // Whether there is one more; commas in front of it are taken.
  bool Next(char close, bool first);
  void TakeOne(const std::function<void()>& take);
  bool Word(std::string* word);
  void ReadString(std::string* out);
  void ReadEscape(std::string* out);

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool stopped_ = false;
  std::string why_;
  size_t missing_commas_ = 0;
};

}  // namespace profd::analysis
