#include "client/fleet/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/exec.h"
#include "base/text.h"
#include "client/child.h"

namespace profd::client {
namespace {

constexpr size_t kMaxErrorText = 4096;

// Owns the child: killed and reaped at the end of this object unless it was waited for.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    (void)Wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

Result<pid_t> Spawn(const std::string& program, const std::vector<std::string>& argv, int out,
                    int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, ExecPointers(argv).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Status::FromErrno(error, "running " + program);
  return pid;
}

// Takes what there is; false at the end of the stream.
bool Drain(int fd, std::string* text, size_t limit) {
  std::array<char, 16384> buffer;
  ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  size_t take = std::min(static_cast<size_t>(got), limit - std::min(limit, text->size()));
  text->append(buffer.data(), take);
  return got > 0;
}

// Reads both streams until they end.
Status Collect(const Pipe& out, const Pipe& err, const ProgramLimits& limits, std::string* text,
               std::string* errors) {
  SystemClock clock;
  const int64_t end_ns = clock.SteadyNs() + limits.deadline_ms * kNsPerMs;
  std::array<struct pollfd, 2> waiting = {{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    int64_t left_ms = (end_ns - clock.SteadyNs()) / kNsPerMs;
    if (left_ms <= 0) {
      return DeadlineExceeded(fmt::format("has not ended within {} ms", limits.deadline_ms));
    }
    int ready = poll(waiting.data(), waiting.size(), static_cast<int>(std::min<int64_t>(left_ms, 1000)));
    if (ready < 0 && errno != EINTR) return Status::FromErrno(errno, "poll");
    if (ready <= 0) continue;
    if (waiting[0].revents != 0 && !Drain(waiting[0].fd, text, limits.max_output + 1)) {
      waiting[0].fd = -1;
    }
    if (waiting[1].revents != 0 && !Drain(waiting[1].fd, errors, kMaxErrorText)) waiting[1].fd = -1;
    if (text->size() > limits.max_output) {
      return ResourceExhausted(fmt::format("prints more than {} bytes", limits.max_output));
    }
  }
  return Status::Ok();
}

Status HowItEnded(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::Ok();
  if (WIFEXITED(status)) {
    return Unavailable(fmt::format("ended with exit code {}", WEXITSTATUS(status)));
  }
  return Unavailable(fmt::format("was ended by signal {}", WTERMSIG(status)));
}

}  // namespace

Result<std::string> RunProgram(const std::vector<std::string>& argv, const std::string& search_path,
                               const ProgramLimits& limits) {
  auto program = FindProgram(argv.front(), search_path);
  if (!program.ok()) return Unavailable(program.status().message());
  auto out = MakePipe();
  if (!out.ok()) return out.status();
  auto err = MakePipe();
  if (!err.ok()) return err.status();
  auto pid = Spawn(*program, argv, out->write.get(), err->write.get());
  if (!pid.ok()) return pid.status();
  Child child(*pid);
  out->write.Reset();
  err->write.Reset();
  std::string text;
  std::string errors;
  Status status = Collect(*out, *err, limits, &text, &errors);
  if (status.ok()) status = HowItEnded(child.Wait());
  if (status.ok()) return text;
  std::string said(Trim(errors));
  return Status(status.code(),
                fmt::format("{} {}{}{}", argv.front(), status.message(), said.empty() ? "" : ": ", said));
}

}  // namespace profd::client
