// A child process that exists but runs its program only after Release().
#pragma once

#include <sys/types.h>

#include <csignal>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace profd::client {

// A command's exit codes, by a shell's convention.
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNoCommand = 127;
inline constexpr int kExitKilledBase = 128;

// The file `name` stands for: itself when it has a slash, otherwise the first executable on
// `search_path`. kNotFound, or kPermissionDenied when there is one that may not be run.
Result<std::string> FindProgram(const std::string& name, const std::string& search_path);
inline int ExitWithoutProgram(const Status& why) {
  return why.code() == StatusCode::kNotFound ? kExitNoCommand : kExitNotExecutable;
}

// Those of a command that are handed on to it, and its end.
inline constexpr std::initializer_list<int> kCommandSignals = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                                                               SIGQUIT, SIGUSR1, SIGUSR2};

class HeldChild {
 public:
  struct Plan {
    std::string program;
    std::vector<std::string> argv;
    // "NAME=value", beside the caller's own environment.
    std::vector<std::string> environment;
    sigset_t signal_mask;
    // What its standard output and error become; -1: the caller's own.
    int stdout_fd = -1;
    int stderr_fd = -1;
  };
  // Forks. Call it before the process has other threads.
  static Result<HeldChild> Fork(const Plan& plan);

  // Not released: the child ends without having run anything.
  ~HeldChild();
  HeldChild(HeldChild&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), barrier_(std::move(other.barrier_)) {}
  HeldChild& operator=(HeldChild&&) = delete;

  pid_t pid() const { return pid_; }
  // Lets the child run its program.
  void Release();
  // True, and the exit code (128+signal when killed), once the child has ended.
  bool Ended(int* exit_code);
  // Hands a signal on. The terminal's own (Ctrl-C) went to all of the foreground group, and SIGCHLD is about the child.
  void Forward(const siginfo_t& info);

 private:
  HeldChild(pid_t pid, UniqueFd barrier) : pid_(pid), barrier_(std::move(barrier)) {}

  // -1 once the child was reaped.
  pid_t pid_ = -1;
  UniqueFd barrier_;
};

}  // namespace profd::client
