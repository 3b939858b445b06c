#include "client/top/screen.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

namespace profd::client::top {
namespace {

// Ticks come every 100 ms: one that is this much early counts, or every other one would be missed.
constexpr int64_t kEarlyNs = 20 * kNsPerMs;

std::string ClockText(int64_t wall_ns) {
  time_t seconds = wall_ns / kNsPerSecond;
  struct tm local = {};
  localtime_r(&seconds, &local);
  char text[16] = {};
  size_t length = strftime(text, sizeof text, "%H:%M:%S", &local);
  return {text, length};
}

}  // namespace

bool Pace::Due(int64_t interval_ms) {
  int64_t now = clock_.SteadyNs();
  if (now + kEarlyNs < next_ns_) return false;
  int64_t interval_ns = interval_ms * kNsPerMs;
  next_ns_ = now > next_ns_ + interval_ns ? now + interval_ns : next_ns_ + interval_ns;
  return true;
}

void Screen::Suspend() {
  terminal_->Leave();
  // Stops here until the shell continues it.
  kill(getpid(), SIGSTOP);
}

bool Screen::TakeSignals() {
  while (int signal = signals_.Poll()) {
    if (signal == SIGTSTP) {
      Suspend();
    } else if (signal == SIGCONT) {
      // The shell may have changed the terminal meanwhile.
      terminal_->Leave();
    } else if (signal != SIGWINCH) {
      return false;
    }
  }
  return true;
}

bool Screen::TakeKeys(Model* model, View* view) {
  bool gone = false;
  const std::vector<KeyPress> keys = terminal_->Read(&gone);
  if (gone) return false;
  bool changed = false;
  for (const KeyPress& key : keys) {
    Effect effect = Press(key, view);
    if (effect == Effect::kQuit) return false;
    if (effect == Effect::kRedraw) terminal_->Redraw();
    changed = changed || effect != Effect::kNone;
  }
  if (!changed) return true;
  // Beyond the longest list there is nothing to scroll to.
  int processes = 0;
  for (const v1::Job& job : model->jobs().jobs()) processes += job.processes_size();
  view->scroll = std::min(view->scroll, std::max({processes, model->sessions().sessions_size(),
                                                static_cast<int>(model->devices().size())}));
  if (view->paused && !frozen_) {
    frozen_ = *model;
  } else if (!view->paused) {
    frozen_.reset();
  }
  Show(*model, *view);
  return true;
}

void Screen::Show(const Model& model, const View& view) {
  if (frozen_) {
    frozen_->SetConnection(model.connection());
  } else {
    times_.wall = ClockText(clock_.WallNs());
  }
  times_.steady_ns = clock_.SteadyNs();
  size_ = terminal_->GetSize();
  terminal_->Show(Draw(frozen_ ? *frozen_ : model, view, size_, times_));
}

bool Screen::Tick(Model* model, View* view) {
  if (!TakeSignals()) return false;
  if (!terminal_->entered()) {
    if (!model->connection().up && model->connection().losses == 0) return true;
    if (!terminal_->Enter().ok()) return false;
    size_ = {0, 0};
  }
  if (!TakeKeys(model, view)) return false;
  bool due = pace_.Due(view->interval_ms);
  if (due) model->Roll(clock_.SteadyNs());
  if (due || terminal_->GetSize() != size_) Show(*model, *view);
  return true;
}

}  // namespace profd::client::top
