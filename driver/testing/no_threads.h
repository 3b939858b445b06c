// For tests only: while one exists, no thread can be created, since each would need a stack larger than the address
// space.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace profd::testing {

class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t none;
    ::pthread_attr_init(&none);
    ::pthread_attr_setstacksize(&none, size_t{1} << 52);
    ::pthread_setattr_default_np(&none);
    ::pthread_attr_destroy(&none);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace profd::testing
