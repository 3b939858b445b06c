// What a user can type.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace profd::client::top
