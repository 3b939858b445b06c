// The live view on a terminal: keys, signals, pace, drawing.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "client/signals.h"
#include "client/top/draw.h"
#include "client/top/model.h"
#include "client/top/terminal.h"
#include "client/top/view.h"

namespace profd::client::top {

// When the next refresh is due.
class Pace {
 public:
  explicit Pace(const Clock& clock) : clock_(clock), next_ns_(clock.SteadyNs()) {}
  // True once per interval.
  bool Due(int64_t interval_ms);

 private:
  const Clock& clock_;
  int64_t next_ns_;
};

class Screen {
 public:
  // `signals` holds those that end or suspend a program.
  Screen(std::unique_ptr<Terminal> terminal, SignalWatch* signals, const Clock& clock)
      : terminal_(std::move(terminal)), signals_(*signals), clock_(clock), pace_(clock) {}

  // Does what is due; false when the user has had enough. Nothing is drawn before the model was
  // connected once, so that an error of the first attempt stands where errors stand.
  bool Tick(Model* model, View* view);

 private:
  bool TakeSignals();
  bool TakeKeys(Model* model, View* view);
  void Show(const Model& model, const View& view);
  void Suspend();

  std::unique_ptr<Terminal> terminal_;
  SignalWatch& signals_;
  const Clock& clock_;
  Pace pace_;
  // Of what is shown.
  Size size_ = {0, 0};
  // What a pause shows.
  std::optional<Model> frozen_;
  Times times_;
};

}  // namespace profd::client::top
