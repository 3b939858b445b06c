#include "driver/hccn_tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/exec.h"
#include "base/text.h"
#include "base/utf8.h"
#include "driver/dl_library.h"

namespace profd {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

// The driver's own libraries, which the tool needs and which no loader configuration may name.
constexpr std::string_view kLibraryPath =
    "LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64/driver:"
    "/usr/local/Ascend/driver/lib64";
constexpr std::string_view kProgramPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// How long a killed process may take to be gone: one inside the driver goes when the driver lets
// it.
constexpr milliseconds kKillGrace{1000};
constexpr milliseconds kLook{20};
constexpr size_t kMaxFirstLine = 200;

// File actions and attributes of one start, freed with it.
class SpawnPlan {
 public:
  explicit SpawnPlan(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // Ours close by themselves; the driver's libraries are not that careful.
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
#endif
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t ours;  // what the daemon handles or ignores
    ::sigemptyset(&ours);
    for (int number : {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ours, number);
    ::posix_spawnattr_setsigdefault(&attributes_, &ours);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // 0 or an errno.
  int Start(const std::string& path, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment, pid_t* pid) {
    return ::posix_spawn(pid, path.c_str(), &actions_, &attributes_, ExecPointers(arguments).data(),
                         ExecPointers(environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// True once the process has ended; it is not reaped, so that its id stays taken.
bool HasEnded(pid_t pid, siginfo_t* info) {
  *info = {};
  const int got = ::waitid(P_PID, static_cast<id_t>(pid), info, WEXITED | WNOHANG | WNOWAIT);
  return (got == 0 && info->si_pid == pid) || (got != 0 && errno == ECHILD);
}

// Reads what is there; false at the end of the pipe.
bool ReadSome(int fd, std::string* out) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) out->append(buffer.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

// The first line with text, printable.
std::string FirstLine(std::string_view text) {
  std::string_view line;
  while (NextLine(&text, &line)) {
    if (std::string shown = AsciiOnly(Trim(line), kMaxFirstLine); !shown.empty()) return shown;
  }
  return "no output";
}

Status EndStatus(const siginfo_t& info, std::string_view output) {
  if (info.si_code != CLD_EXITED) {
    return Unavailable(fmt::format("hccn_tool was ended by signal {}", info.si_status));
  }
  if (info.si_status == 0) return Status::Ok();
  return Unavailable(
      fmt::format("hccn_tool ended with exit code {}: {}", info.si_status, FirstLine(output)));
}

}  // namespace

Status CheckHccnTool(const HccnToolOptions& options) {
  if (::access(options.path.c_str(), X_OK) != 0) {
    return Status::FromErrno(errno, options.path);
  }
  if (!options.require_safe) return Status::Ok();
  return CheckTrustedPath(options.path).status();
}

std::vector<std::string> HccnArguments(int physical_id, std::string_view what) {
  return {"-i", std::to_string(physical_id), fmt::format("-{}", what), "-g"};
}

std::vector<std::string> HccnPortArguments(int logical_id, std::string_view what, HccnPort port) {
  return {"-g", fmt::format("-{}", what), "-i", std::to_string(logical_id),
          "-u", std::to_string(port.die), "-p", std::to_string(port.port)};
}

std::vector<std::string> HccnPortTableArguments(int logical_id) {
  return {"-g", "-dev_info", "-i", std::to_string(logical_id)};
}

HccnTool::HccnTool(HccnToolOptions options)
    : options_(std::move(options)), cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HccnTool::~HccnTool() { ReapLeftovers(); }

namespace {

Status Cancelled() { return Status(StatusCode::kCancelled, "hccn_tool was stopped: profd ends"); }

}  // namespace

void HccnTool::Cancel() {
  const uint64_t one = 1;
  if (::write(cancel_.get(), &one, sizeof one) < 0) return;  // it is full: cancelled already
}

Result<std::string> HccnTool::Run(std::span<const std::string> arguments) {
  ReapLeftovers();
  if (!leftovers_.empty()) {
    return ResourceExhausted(
        fmt::format("hccn_tool (process {}) was killed and is still there: it hangs in the driver",
                    leftovers_.front()));
  }
  RETURN_IF_ERROR(CheckHccnTool(options_));
  pollfd cancelled{cancel_.get(), POLLIN, 0};
  if (::poll(&cancelled, 1, 0) > 0) return Cancelled();
  Result<Pipe> pipe = MakePipe();
  if (!pipe.ok()) return pipe.status();
  std::vector<std::string> words = {options_.path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = {std::string(kProgramPath), std::string(kLibraryPath)};
  environment.insert(environment.end(), options_.environment.begin(), options_.environment.end());
  pid_t pid = 0;
  SpawnPlan plan(pipe->write.get());
  if (int error = plan.Start(options_.path, words, environment, &pid); error != 0) {
    return Status::FromErrno(error, options_.path);
  }
  pipe->write.Reset();
  ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  return Wait(pid, std::move(pipe->read));
}

Result<std::string> HccnTool::Wait(pid_t pid, UniqueFd pipe) {
  const SteadyTime deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.timeout_ns);
  std::string output;
  siginfo_t info{};
  Status problem;
  while (problem.ok() && !HasEnded(pid, &info)) {
    std::array<pollfd, 2> watched = {pollfd{cancel_.get(), POLLIN, 0}, {pipe.get(), POLLIN, 0}};
    // The program may end without closing the pipe; that is checked from time to time.
    ::poll(watched.data(), watched.size(), static_cast<int>(kLook.count()));
    if (watched[0].revents != 0) {
      problem = Cancelled();
    } else if (watched[1].revents != 0 && !ReadSome(pipe.get(), &output)) {
      pipe.Reset();
    }
    if (output.size() > options_.max_output) {
      problem = Unavailable(
          fmt::format("hccn_tool wrote more than {} bytes and was killed", options_.max_output));
    } else if (problem.ok() && std::chrono::steady_clock::now() >= deadline) {
      problem = DeadlineExceeded(fmt::format("hccn_tool did not end within {:g} s and was killed",
                                             static_cast<double>(options_.timeout_ns) / 1e9));
    }
  }
  KillAndReap(pid);
  if (!problem.ok()) return problem;
  // What it wrote last; children of its that still hold the pipe are gone, so this ends.
  size_t before = SIZE_MAX;
  while (pipe.valid() && output.size() <= options_.max_output && output.size() != before) {
    before = output.size();
    if (!ReadSome(pipe.get(), &output)) break;
  }
  if (output.size() > options_.max_output) {
    return Unavailable(fmt::format("hccn_tool wrote more than {} bytes", options_.max_output));
  }
  RETURN_IF_ERROR(EndStatus(info, output));
  return output;
}

void HccnTool::KillAndReap(pid_t pid) {
  // Before the leader is reaped: as long as it is a zombie its number is not reused.
  ::kill(-pid, SIGKILL);
  const SteadyTime deadline = std::chrono::steady_clock::now() + kKillGrace;
  siginfo_t info{};
  while (!HasEnded(pid, &info)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      leftovers_.push_back(pid);
      return;
    }
    ::poll(nullptr, 0, static_cast<int>(kLook.count()) / 4);
  }
  ::waitpid(pid, nullptr, 0);
}

void HccnTool::ReapLeftovers() {
  std::erase_if(leftovers_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace profd
