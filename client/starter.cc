#include "client/starter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "dump/dump_io.h"

namespace profd::client {
namespace {

// Shells inside shells inside shells.
constexpr int kMaxCopies = 16;
constexpr size_t kMaxProcBytes = size_t{4} << 20;

// Empty where the process has ended.
std::string ReadProc(pid_t pid, const char* file) {
  const UniqueFd fd(::open(fmt::format("/proc/{}/{}", pid, file).c_str(), O_RDONLY | O_CLOEXEC));
  return ReadWhole(fd.get(), kMaxProcBytes).value_or("");
}

pid_t ParentOf(pid_t pid) {
  std::string status = ReadProc(pid, "status");
  std::string_view rest = status;
  std::string_view line;
  while (NextLine(&rest, &line)) {
    if (NextToken(&line) != "PPid:") continue;
    pid_t parent = 0;
    return ParseNumber(NextToken(&line), &parent) ? parent : 0;
  }
  return 0;
}

bool MayStandFor(pid_t pid) { return pid > 1 && kill(pid, 0) == 0; }

}  // namespace

pid_t StarterPid() {
  pid_t starter = getppid();
  if (!MayStandFor(starter)) return 0;
  std::string command = ReadProc(starter, "cmdline");
  for (int i = 0; i < kMaxCopies && !command.empty(); ++i) {
    // A fork that has not executed anything else has its parent's arguments.
    pid_t parent = ParentOf(starter);
    if (!MayStandFor(parent) || ReadProc(parent, "cmdline") != command) break;
    starter = parent;
  }
  return starter;
}

}  // namespace profd::client
