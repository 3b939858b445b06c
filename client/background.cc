#include "client/background.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"
#include "client/connection.h"

namespace profd::client {
namespace {

constexpr unsigned kFirstOther = 3;

// Device files of a training process among them: a process that has one open keeps the device busy.
void CloseInherited() {
  constexpr rlim_t kMost = 1 << 20;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, kFirstOther, ~0U, 0) == 0) return;
#endif
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t fd = kFirstOther; fd < std::min(limit.rlim_cur, kMost); ++fd) ::close(static_cast<int>(fd));
}

bool LeaveTerminal() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  return null >= 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(null, STDOUT_FILENO) >= 0 && ::close(null) == 0;
}

}  // namespace

std::optional<int> GoToBackground(const Io& io) {
  CloseInherited();
  const pid_t child = ::fork();
  if (child > 0) return kExitOk;
  if (child < 0 || ::setsid() < 0 || !LeaveTerminal()) {
    io.err << "profctl: cannot go to the background: " << Status::FromErrno(errno, "fork").message() << std::endl;
    return kExitInternal;
  }
  return std::nullopt;
}

}  // namespace profd::client
