#include "client/top/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace profd::client::top {
namespace {

// Every terminal in use understands these (xterm, screen, tmux, the Linux console): terminfo would
// tell nothing new. Other screen, cursor, wrapping at the right edge.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l\033[0m\033[2J";
constexpr std::string_view kLeave = "\033[0m\033[2J\033[?7h\033[?25h\033[?1049l";
constexpr int kMostColumns = 1000;
constexpr int kMostRows = 500;

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::Open() {
  if (isatty(STDIN_FILENO) != 0) {
    return std::unique_ptr<Terminal>(new Terminal(STDIN_FILENO, /*close_input=*/false));
  }
  int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC);
  if (tty < 0) return Status::FromErrno(errno, "/dev/tty");
  return std::unique_ptr<Terminal>(new Terminal(tty, /*close_input=*/true));
}

Terminal::~Terminal() {
  Leave();
  if (close_input_) close(input_);
}

Status Terminal::Enter() {
  if (entered_) return Status::Ok();
  if (tcgetattr(input_, &saved_) != 0) return Status::FromErrno(errno, "tcgetattr");
  struct termios raw = saved_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(input_, TCSADRAIN, &raw) != 0) return Status::FromErrno(errno, "tcsetattr");
  entered_ = true;
  if (!Write(kEnter)) return Unavailable("the terminal is closed");
  return Status::Ok();
}

void Terminal::Leave() {
  if (!entered_) return;
  entered_ = false;
  Write(kLeave);
  // What was typed and not read would be typed into the shell.
  tcsetattr(input_, TCSAFLUSH, &saved_);
}

Size Terminal::GetSize() const {
  struct winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {std::min<int>(size.ws_col, kMostColumns), std::min<int>(size.ws_row, kMostRows)};
}

std::string Terminal::Read(bool* gone) {
  struct pollfd ready = {input_, POLLIN, 0};
  if (poll(&ready, 1, 0) <= 0) return "";
  if ((ready.revents & POLLIN) == 0) {
    *gone = true;
    return "";
  }
  std::array<char, 256> bytes;
  ssize_t got = read(input_, bytes.data(), bytes.size());
  if (got > 0) return {bytes.data(), static_cast<size_t>(got)};
  if (got == 0 || (errno != EINTR && errno != EAGAIN)) *gone = true;
  return "";
}

bool Terminal::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      struct pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace profd::client::top
