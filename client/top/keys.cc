#include "client/top/keys.h"

namespace profd::client::top {
namespace {

constexpr char kEscapeByte = '\033';
// Longer ones are no keys.
constexpr size_t kMaxSequence = 32;

Key FinalKey(char last, char number) {
  switch (last) {
    case 'A':
      return Key::kUp;
    case 'B':
      return Key::kDown;
    case 'C':
      return Key::kRight;
    case 'D':
      return Key::kLeft;
    case 'H':
      return Key::kHome;
    case 'F':
      return Key::kEnd;
    case '~':
      break;
    default:
      return Key::kNone;
  }
  switch (number) {
    case '1':
    case '7':
      return Key::kHome;
    case '4':
    case '8':
      return Key::kEnd;
    case '5':
      return Key::kPageUp;
    case '6':
      return Key::kPageDown;
    default:
      return Key::kNone;
  }
}

Key ControlKey(char c) {
  switch (c) {
    case '\r':
    case '\n':
      return Key::kEnter;
    case '\t':
      return Key::kTab;
    case '\b':
    case '\x7f':
      return Key::kBackspace;
    case '\x03':
    case '\x04':
      return Key::kInterrupt;
    case '\x0c':
      return Key::kRedraw;
    default:
      return Key::kNone;
  }
}

}  // namespace

size_t KeyReader::NextEscape(KeyPress* press) const {
  if (pending_.size() < 2) return 0;
  char kind = pending_[1];
  if (kind != '[' && kind != 'O') {
    press->key = Key::kEscape;
    return 1;
  }
  for (size_t i = 2; i < pending_.size() && i < kMaxSequence; ++i) {
    char c = pending_[i];
    if (c < 0x40 || c > 0x7e) continue;
    press->key = FinalKey(c, pending_[2]);
    return i + 1;
  }
  if (pending_.size() < kMaxSequence) return 0;
  return kMaxSequence;
}

size_t KeyReader::Next(KeyPress* press) const {
  auto first = static_cast<unsigned char>(pending_[0]);
  if (pending_[0] == kEscapeByte) return NextEscape(press);
  if (first < 0x20 || first == 0x7f) {
    press->key = ControlKey(pending_[0]);
    return 1;
  }
  size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // A byte that begins nothing, or whose rest is something else.
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4) return 1;
  for (size_t i = 1; i < length && i < pending_.size(); ++i) {
    if ((static_cast<unsigned char>(pending_[i]) & 0xc0) != 0x80) return 1;
  }
  if (pending_.size() < length) return 0;
  press->key = Key::kText;
  press->text = pending_.substr(0, length);
  return length;
}

std::vector<KeyPress> KeyReader::Feed(std::string_view bytes) {
  pending_ += bytes;
  std::vector<KeyPress> keys;
  while (!pending_.empty()) {
    KeyPress press;
    size_t used = Next(&press);
    if (used == 0) break;
    pending_.erase(0, used);
    if (press.key != Key::kNone) keys.push_back(std::move(press));
  }
  return keys;
}

std::vector<KeyPress> KeyReader::Settle() {
  if (pending_.empty()) return {};
  bool escape = pending_ == std::string(1, kEscapeByte);
  pending_.clear();
  if (!escape) return {};
  return {KeyPress{Key::kEscape, ""}};
}

}  // namespace profd::client::top
