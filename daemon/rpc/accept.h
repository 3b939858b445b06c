// Accepts connections, of any kind of socket.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strand.h"

namespace profd {

// `take(fd, from)` gets those that wait, which do not block, and which no program that is started inherits; some at a time, so
// that others get their turn. False: none can be accepted, as where no descriptor is left, and the listener may stay readable.
template <class Take>
bool AcceptSome(int listener, Take take) {
  constexpr int kMost = 32;
  for (int i = 0; i < kMost; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    UniqueFd fd(::accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      take(std::move(fd), from);
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR && errno != ECONNABORTED) {  // these are of one connection alone
      return false;
    }
  }
  return true;
}

// Does so on a strand while it lives, with a pause where none can be accepted.
class AcceptLoop {
 public:
  using Take = std::function<void(UniqueFd, const sockaddr_storage& from)>;

  AcceptLoop(Strand& strand, int listener, Take take)
      : listener_(listener), take_(std::move(take)), incoming_(strand, listener), again_(strand) {
    Next();
  }

 private:
  void Next() {
    incoming_.WhenReadable([this] {
      if (AcceptSome(listener_, take_)) return Next();
      again_.After(200 * kNsPerMs, [this] { Next(); });
    });
  }

  const int listener_;
  const Take take_;
  FdWatch incoming_;
  Timer again_;
};

}  // namespace profd
