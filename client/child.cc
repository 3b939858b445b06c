#include "client/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/exec.h"

namespace profd::client {
namespace {

bool IsRegular(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Ours first, then the caller's without the names we set.
std::vector<char*> EnvironmentWith(const std::vector<std::string>& ours) {
  std::vector<char*> pointers = ExecPointers(ours);
  pointers.pop_back();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& own : ours) {
      std::string_view name(own.data(), own.find('=') + 1);
      replaced = replaced || std::string_view(*entry).starts_with(name);
    }
    if (!replaced) pointers.push_back(*entry);
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child: system calls only, as another thread may have held a lock at the fork.
[[noreturn]] void WaitAndRun(int barrier, const char* program, char* const* argv,
                             char* const* environment, const sigset_t& mask) {
  char go = 0;
  ssize_t got = 0;
  do {
    got = read(barrier, &go, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(125);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  signal(SIGXFSZ, SIG_DFL);  // main() ignores it
  execvpe(program, argv, environment);
  int error = errno;
  constexpr char kText[] = "profctl: the program could not be run\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(error == ENOENT ? 127 : 126);
}

int Reap(pid_t pid, int flags, int* exit_code) {
  int state = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(pid, &state, flags);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return 0;
  *exit_code = ended < 0 ? 1 : WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
  return 1;
}

}  // namespace

Result<std::string> FindProgram(const std::string& name, const std::string& search_path) {
  bool denied = false;
  auto runs = [&](const std::string& path) {
    if (!IsRegular(path)) return false;
    if (faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0) return true;
    denied = true;
    return false;
  };
  if (name.find('/') != std::string::npos) {
    if (runs(name)) return name;
  } else if (!name.empty()) {
    size_t begin = 0;
    while (begin <= search_path.size()) {
      size_t end = std::min(search_path.find(':', begin), search_path.size());
      std::string directory = search_path.substr(begin, end - begin);
      std::string path = (directory.empty() ? "." : directory) + "/" + name;
      if (runs(path)) return path;
      begin = end + 1;
    }
  }
  if (denied) return PermissionDenied(fmt::format("{} may not be executed", name));
  return NotFound(fmt::format("no program {}", name));
}

Result<HeldChild> HeldChild::Fork(const Plan& plan) {
  Result<Pipe> barrier = MakePipe();
  if (!barrier.ok()) return barrier.status();
  std::vector<char*> argv = ExecPointers(plan.argv);
  std::vector<char*> environment = EnvironmentWith(plan.environment);
  pid_t pid = fork();
  if (pid < 0) return Status::FromErrno(errno, "fork");
  if (pid == 0) {
    // Ours would keep the pipe open, and the child would wait for ever if profctl died.
    close(barrier->write.get());
    if (plan.stdout_fd >= 0) dup2(plan.stdout_fd, STDOUT_FILENO);
    if (plan.stderr_fd >= 0) dup2(plan.stderr_fd, STDERR_FILENO);
    WaitAndRun(barrier->read.get(), plan.program.c_str(), argv.data(), environment.data(),
               plan.signal_mask);
  }
  return HeldChild(pid, std::move(barrier->write));
}

HeldChild::~HeldChild() {
  if (pid_ < 0) return;
  // A child that was released is left to itself; one that was not ends when the pipe closes.
  int flags = barrier_.valid() ? 0 : WNOHANG;
  barrier_.Reset();
  int ignored = 0;
  Reap(pid_, flags, &ignored);
}

void HeldChild::Release() {
  constexpr char kGo = 'g';
  (void)!write(barrier_.get(), &kGo, 1);
  barrier_.Reset();
}

bool HeldChild::Ended(int* exit_code) {
  if (pid_ < 0 || Reap(pid_, WNOHANG, exit_code) == 0) return pid_ < 0;
  pid_ = -1;
  return true;
}

void HeldChild::Forward(const siginfo_t& info) {
  const bool for_it = info.si_signo != 0 && info.si_signo != SIGCHLD && info.si_code <= 0;
  if (for_it && pid_ > 0) kill(pid_, info.si_signo);
}

}  // namespace profd::client
