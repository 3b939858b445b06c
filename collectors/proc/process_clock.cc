#include "collectors/proc/process_clock.h"

#include <time.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"

namespace profd {
namespace {

// Does `proc` show this process under its own number, and is that its only one there? In a /proc of
// an outer namespace there is a number per namespace (proc(5), NStgid).
bool ShowsOurNumbers(const RootedFs& proc) {
  Result<std::string> self = proc.ReadLink("self");
  int number = 0;
  if (!self.ok() || !ParseNumber(*self, &number) || number != ::getpid()) return false;
  constexpr size_t kMaxStatus = 64 * 1024;
  Result<std::string> status = proc.ReadFile("self/status", kMaxStatus);
  if (!status.ok()) return false;
  std::string_view line;
  for (std::string_view rest = *status; NextLine(&rest, &line);) {
    constexpr std::string_view kKey = "NStgid:";
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    return ParseNumber(NextToken(&line), &number) && number == ::getpid() &&
           NextToken(&line).empty();
  }
  return false;
}

}  // namespace

ProcessClock::ProcessClock(const RootedFs& proc)
    : usable_(ShowsOurNumbers(proc) && Read(::getpid()) > 0) {}

int64_t ProcessClock::Read(int pid) {
  // The kernel's encoding of a process's clock (clock_getcpuclockid(3), which would make the same of
  // it with a call of its own): the number inverted, and CPUCLOCK_SCHED.
  constexpr unsigned kSched = 2;
  const auto id = static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | kSched);
  struct timespec time = {};
  if (pid <= 0 || ::clock_gettime(id, &time) != 0) return -1;
  return static_cast<int64_t>(time.tv_sec) * kNsPerSecond + time.tv_nsec;
}

}  // namespace profd
