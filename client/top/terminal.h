// The terminal, by ncurses: a screen of its own, keys, and everything as before when this object goes.
#pragma once

#include <cstdio>
#include <memory>
#include <vector>

#include "base/status.h"
#include "client/top/frame.h"
#include "client/top/keys.h"

// ncurses's SCREEN; its header defines macros such as OK.
struct screen;

namespace profd::client::top {

class Terminal {
 public:
  // Keys come from standard input, or from /dev/tty where that is something else. Without `color` there is
  // bold, faint and reverse only.
  static Result<std::unique_ptr<Terminal>> Open(bool color);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Other screen, no cursor, no echo. Signals of keys (Ctrl-C) stay signals.
  Status Enter();
  void Leave();
  bool entered() const { return entered_; }

  Size GetSize() const;
  // What was typed since; waits only to distinguish Escape from the beginning of another key. Sets `*gone` when
  // the terminal is gone.
  std::vector<KeyPress> Read(bool* gone);
  void Show(const Frame& frame);
  // The next Show() draws everything anew.
  void Redraw();

 private:
  Terminal(FILE* input, bool color) : input_(input), color_(color) {}

  FILE* input_;
  bool color_;
  bool entered_ = false;
  struct screen* screen_ = nullptr;
};

}  // namespace profd::client::top
