#include "client/top/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <span>

#include "base/utf8.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>

namespace profd::client::top {
namespace {

constexpr int kMostColumns = 1000;
constexpr int kMostRows = 500;
// How long ncurses waits for the rest of a key that begins as Escape does.
constexpr int kEscapeDelayMs = 25;

enum Colors : short { kGreen = 1, kYellow, kRed, kCyan };

struct Look {
  attr_t attributes = A_NORMAL;
  short colors = 0;
};

Look LookOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return {};
    case Style::kBold:
      return {A_BOLD};
    case Style::kFaint:
      return {A_DIM};
    case Style::kReverse:
      return {A_REVERSE};
    case Style::kGood:
      return {A_NORMAL, kGreen};
    case Style::kWarning:
      return {A_NORMAL, kYellow};
    case Style::kBad:
      return {A_BOLD, kRed};
    case Style::kAccent:
      return {A_NORMAL, kCyan};
  }
  return {};
}

struct KnownKey {
  wint_t code;
  Key key;
};
constexpr auto kFunctionKeys = std::to_array<KnownKey>({
    {KEY_ENTER, Key::kEnter}, {KEY_BACKSPACE, Key::kBackspace}, {KEY_UP, Key::kUp},         {KEY_DOWN, Key::kDown},
    {KEY_LEFT, Key::kLeft},   {KEY_RIGHT, Key::kRight},         {KEY_PPAGE, Key::kPageUp},  {KEY_NPAGE, Key::kPageDown},
    {KEY_HOME, Key::kHome},   {KEY_FIND, Key::kHome},           {KEY_END, Key::kEnd},       {KEY_SELECT, Key::kEnd},
});
constexpr auto kCharacterKeys = std::to_array<KnownKey>({
    {'\r', Key::kEnter},     {'\n', Key::kEnter},  {'\t', Key::kTab},       {'\b', Key::kBackspace}, {0x7f, Key::kBackspace},
    {0x1b, Key::kEscape},    {0x03, Key::kInterrupt}, {0x04, Key::kInterrupt}, {0x0c, Key::kRedraw},
});

// kNone: it is not among them.
KeyPress PressOf(std::span<const KnownKey> keys, wint_t code) {
  const auto known = std::ranges::find(keys, code, &KnownKey::code);
  return {known == keys.end() ? Key::kNone : known->key, ""};
}

KeyPress CharacterKey(wint_t c) {
  KeyPress press = PressOf(kCharacterKeys, c);
  if (press.key != Key::kNone || c < 0x20 || (c >= 0x80 && c < 0xa0)) return press;
  press.key = Key::kText;
  AppendUtf8(c, &press.text);
  return press;
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::Open(bool color) {
  // "e": not for programs that this one starts.
  FILE* input = isatty(STDIN_FILENO) != 0 ? stdin : fopen("/dev/tty", "re");
  if (input == nullptr) return Status::FromErrno(errno, "/dev/tty");
  return std::unique_ptr<Terminal>(new Terminal(input, color));
}

Terminal::~Terminal() {
  Leave();
  if (screen_ != nullptr) delscreen(screen_);
  if (input_ != stdin) fclose(input_);
}

Status Terminal::Enter() {
  if (entered_) return Status::Ok();
  if (screen_ == nullptr) {
    // A locale that is named but not installed must not cost the graphs. No other thread is there yet.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (std::setlocale(LC_CTYPE, "") == nullptr) std::setlocale(LC_CTYPE, "C.UTF-8");
    screen_ = newterm(nullptr, stdout, input_);
    // Every terminal in use understands what xterm does, also where terminfo does not know its name.
    if (screen_ == nullptr) screen_ = newterm("xterm", stdout, input_);
    if (screen_ == nullptr) return Unavailable("ncurses cannot use this terminal");
    set_escdelay(kEscapeDelayMs);
    if (color_ && start_color() != ERR && use_default_colors() != ERR) {
      init_pair(kGreen, COLOR_GREEN, -1);
      init_pair(kYellow, COLOR_YELLOW, -1);
      init_pair(kRed, COLOR_RED, -1);
      init_pair(kCyan, COLOR_CYAN, -1);
    } else {
      color_ = false;
    }
  } else {
    def_shell_mode();  // the shell may have changed it meanwhile
    reset_prog_mode();
  }
  cbreak();
  noecho();
  nonl();
  // Ctrl-S, Ctrl-Q and Ctrl-V are no keys of the terminal's driver.
  struct termios mode = {};
  if (tcgetattr(fileno(input_), &mode) != 0) return Status::FromErrno(errno, "tcgetattr");
  mode.c_lflag &= ~static_cast<tcflag_t>(IEXTEN);
  mode.c_iflag &= ~static_cast<tcflag_t>(IXON);
  if (tcsetattr(fileno(input_), TCSADRAIN, &mode) != 0) return Status::FromErrno(errno, "tcsetattr");
  def_prog_mode();
  nodelay(stdscr, TRUE);
  keypad(stdscr, TRUE);
  curs_set(0);
  entered_ = true;
  Redraw();
  return Status::Ok();
}

void Terminal::Leave() {
  if (!entered_) return;
  entered_ = false;
  flushinp();  // what was typed and not read would be typed into the shell
  endwin();
}

Size Terminal::GetSize() const {
  struct winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {std::min<int>(size.ws_col, kMostColumns), std::min<int>(size.ws_row, kMostRows)};
}

std::vector<KeyPress> Terminal::Read(bool* gone) {
  struct pollfd state = {fileno(input_), 0, 0};
  if (poll(&state, 1, 0) > 0) {
    *gone = true;
    return {};
  }
  std::vector<KeyPress> keys;
  wint_t c = 0;
  for (int kind = get_wch(&c); kind != ERR; kind = get_wch(&c)) {
    KeyPress press = kind == KEY_CODE_YES ? PressOf(kFunctionKeys, c) : CharacterKey(c);
    if (press.key != Key::kNone) keys.push_back(std::move(press));
  }
  return keys;
}

void Terminal::Show(const Frame& frame) {
  const Size size = frame.size();
  if (is_term_resized(size.rows, size.columns)) resizeterm(size.rows, size.columns);
  erase();
  for (int y = 0; y < size.rows; ++y) {
    for (int x = 0; x < size.columns; ++x) {
      const Glyph& glyph = frame.At(x, y);
      if (glyph == Glyph{} || glyph.character == 0) continue;
      const Look look = LookOf(glyph.style);
      const wchar_t text[] = {static_cast<wchar_t>(glyph.character), L'\0'};
      cchar_t cell = {};
      setcchar(&cell, text, look.attributes, color_ ? look.colors : short{0}, nullptr);
      mvadd_wch(y, x, &cell);
    }
  }
  refresh();
}

void Terminal::Redraw() { clearok(stdscr, TRUE); }

}  // namespace profd::client::top
