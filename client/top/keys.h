// From a terminal's bytes to keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd::client::top {

enum class Key : uint8_t {
  kNone,
  kText,  // `text` holds the character
  kEnter,
  kEscape,
  kBackspace,
  kTab,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kInterrupt,  // Ctrl-C, Ctrl-D
  kRedraw,     // Ctrl-L
};

struct KeyPress {
  Key key = Key::kNone;
  std::string text;
};

// Keeps what is not complete yet. Escape sequences it does not know are swallowed whole.
class KeyReader {
 public:
  std::vector<KeyPress> Feed(std::string_view bytes);
  // No byte came for a while: an escape that stands alone is the Escape key.
  std::vector<KeyPress> Settle();

 private:
  // Bytes of `pending_` the next key has; 0 = not complete.
  size_t Next(KeyPress* press) const;
  size_t NextEscape(KeyPress* press) const;

  std::string pending_;
};

}  // namespace profd::client::top
