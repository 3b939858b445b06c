// Signals as data: blocked and polled, so that nothing runs at an arbitrary moment.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <initializer_list>

#include "base/status.h"

namespace profd::client {

// Blocks the given signals for the process's life of this object (create it before the first
// thread, so that every thread inherits the mask) and hands them out one at a time. Signals the
// process ignored from its start stay ignored, except SIGCHLD.
class SignalWatch {
 public:
  explicit SignalWatch(std::initializer_list<int> signals = {SIGINT, SIGTERM, SIGHUP});
  // Discards what is still pending and restores the mask.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The next pending signal's number, or 0 at once. Once a signal was seen, caught() returns it.
  int Poll();
  // Waits a second, or so long, for the next one; si_signo 0: none arrived. A thread of a library that was there before may have
  // taken it: who waits for a child looks at the child again.
  siginfo_t Wait(int64_t ms = 1000);
  int caught() const { return caught_; }
  // For what may take long: false from the first signal on.
  std::function<bool()> go_on() {
    return [this] { return Poll() == 0 && caught_ == 0; };
  }
  // From here on the signals do what they would do without this. An error: one has arrived already.
  Status Release();
  // The mask from before: what a child shall run with.
  const sigset_t& original_mask() const { return original_; }

 private:
  sigset_t set_;
  sigset_t original_;
  int caught_ = 0;
};

}  // namespace profd::client
