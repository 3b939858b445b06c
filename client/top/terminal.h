// The terminal in raw mode with a screen of its own, and as it was before when this object goes.
#pragma once

#include <termios.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/top/frame.h"

namespace profd::client::top {

class Terminal {
 public:
  // Keys come from standard input, or from /dev/tty where that is something else.
  static Result<std::unique_ptr<Terminal>> Open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Other screen, no cursor, no echo. Signals of keys (Ctrl-C) stay signals.
  Status Enter();
  void Leave();
  bool entered() const { return entered_; }

  Size GetSize() const;
  // What was typed since; never waits. Sets `*gone` when nobody can type any more.
  std::string Read(bool* gone);
  // All of it; false when the terminal is gone.
  bool Write(std::string_view bytes);

 private:
  Terminal(int input, bool close_input) : input_(input), close_input_(close_input) {}

  int input_;
  bool close_input_;
  bool entered_ = false;
  struct termios saved_ = {};
};

}  // namespace profd::client::top
