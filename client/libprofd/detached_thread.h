// A thread of ours in a training process.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace profd::lib {

// 0, or an errno. The thread blocks all signals: the process's are for its own threads.
inline int StartDetached(void* (*body)(void*), void* argument) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t detached;
  ::pthread_attr_init(&detached);
  ::pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &detached, body, argument);
  ::pthread_attr_destroy(&detached);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace profd::lib
