#include "client/signals.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace profd::client {

SignalWatch::SignalWatch(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  for (int signal : signals) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) {
      if (signal != SIGCHLD) continue;
      // A parent that ignored SIGCHLD would make the kernel reap our child unseen.
      action.sa_handler = SIG_DFL;
      sigaction(signal, &action, nullptr);
    }
    sigaddset(&set_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set_, &original_);
}

SignalWatch::~SignalWatch() { (void)Release(); }

Status SignalWatch::Release() {
  while (Poll() != 0) {
  }
  sigemptyset(&set_);
  pthread_sigmask(SIG_SETMASK, &original_, nullptr);
  return caught_ == 0 ? Status::Ok() : Status(StatusCode::kCancelled, "interrupted");
}

int SignalWatch::Poll() {
  struct timespec none = {};
  int signal = sigtimedwait(&set_, nullptr, &none);
  if (signal <= 0) return 0;
  caught_ = signal;
  return signal;
}

siginfo_t SignalWatch::Wait(int64_t ms) {
  siginfo_t info = {};
  const struct timespec patience = {ms / 1000, ms % 1000 * 1'000'000};
  while (sigtimedwait(&set_, &info, &patience) < 0) {
    if (errno != EINTR) return {};
  }
  caught_ = info.si_signo;
  return info;
}

}  // namespace profd::client
