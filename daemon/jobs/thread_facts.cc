#include "daemon/jobs/thread_facts.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/jobs/ring_reader.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

constexpr size_t kMaxStatus = 4096;  // of a thread; the lines that count are among the first
constexpr size_t kMaxAttribute = 256;
constexpr size_t kMaxFileName = 256;

// Calls in which threads wait, and whether their first argument is a descriptor.
struct SystemCall {
  long number;
  const char* name;
  bool of_file = false;
};
constexpr std::array kSystemCalls = {
    SystemCall{SYS_read, "read", true}, SystemCall{SYS_write, "write", true}, SystemCall{SYS_readv, "readv", true},
    SystemCall{SYS_writev, "writev", true}, SystemCall{SYS_pread64, "pread64", true}, SystemCall{SYS_pwrite64, "pwrite64", true},
    SystemCall{SYS_ioctl, "ioctl", true}, SystemCall{SYS_fsync, "fsync", true}, SystemCall{SYS_fdatasync, "fdatasync", true},
    SystemCall{SYS_flock, "flock", true}, SystemCall{SYS_getdents64, "getdents64", true}, SystemCall{SYS_close, "close", true},
    SystemCall{SYS_recvfrom, "recvfrom", true}, SystemCall{SYS_recvmsg, "recvmsg", true}, SystemCall{SYS_sendto, "sendto", true},
    SystemCall{SYS_sendmsg, "sendmsg", true}, SystemCall{SYS_accept, "accept", true}, SystemCall{SYS_accept4, "accept4", true},
    SystemCall{SYS_connect, "connect", true}, SystemCall{SYS_epoll_pwait, "epoll_wait", true}, SystemCall{SYS_futex, "futex"},
    SystemCall{SYS_ppoll, "poll"}, SystemCall{SYS_pselect6, "select"}, SystemCall{SYS_nanosleep, "nanosleep"},
    SystemCall{SYS_clock_nanosleep, "clock_nanosleep"}, SystemCall{SYS_wait4, "wait4"}, SystemCall{SYS_waitid, "waitid"},
    SystemCall{SYS_openat, "openat"}, SystemCall{SYS_mmap, "mmap"}, SystemCall{SYS_munmap, "munmap"},
    SystemCall{SYS_madvise, "madvise"}, SystemCall{SYS_exit_group, "exit_group"},
    SystemCall{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
#ifdef SYS_poll  // calls that newer architectures have in one form only
    SystemCall{SYS_poll, "poll"}, SystemCall{SYS_select, "select"}, SystemCall{SYS_epoll_wait, "epoll_wait", true},
    SystemCall{SYS_open, "open"}, SystemCall{SYS_pause, "pause"},
#endif
};

// "running", "-1 0x7ffd... 0x7f..." between calls, or "16 0x5 0x..." with number and arguments.
void ReadCall(const RootedFs& proc, pid_t pid, const std::string& base, ThreadFacts* out) {
  const std::string text = ReadUpTo(proc, base + "/syscall", kMaxAttribute);
  std::string_view rest = text;
  const std::string_view number = rest.substr(0, rest.find(' '));
  long call = -1;
  if (!ParseNumber(number, &call) || call < 0) return;
  const auto* known = std::ranges::find(kSystemCalls, call, &SystemCall::number);
  if (known == kSystemCalls.end()) {
    out->system_call = fmt::format("number {}", call);
    return;
  }
  out->system_call = known->name;
  if (!known->of_file || rest.size() <= number.size()) return;
  rest.remove_prefix(number.size() + 1);
  rest = Trim(rest.substr(0, rest.find(' ')));
  int descriptor = 0;
  if (!rest.starts_with("0x") || std::from_chars(rest.data() + 2, rest.data() + rest.size(), descriptor, 16).ec != std::errc()) return;
  Result<std::string> file = proc.ReadLink(fmt::format("{}/fd/{}", pid, descriptor));
  if (!file.ok()) return;
  out->file = std::move(file).value().substr(0, kMaxFileName);
  MakePrintable(out->file);
}

// False: it has ended meanwhile.
bool ReadThread(const RootedFs& proc, pid_t pid, pid_t thread, ThreadFacts* out) {
  const std::string base = fmt::format("{}/task/{}", pid, thread);
  const std::string status = ReadUpTo(proc, base + "/status", kMaxStatus);
  if (status.empty()) return false;
  out->thread = thread;
  out->name = std::string(FieldOf(status, "Name"));
  MakePrintable(out->name);
  const std::string_view state = FieldOf(status, "State");
  out->state = state.empty() ? '\0' : state.front();
  // One number for each namespace that it is in, the innermost last.
  const std::string_view numbers = FieldOf(status, "NSpid");
  const size_t last = numbers.find_last_of(" \t");
  out->inner = thread;
  if (pid_t inner = 0; ParseNumber(last == std::string_view::npos ? numbers : numbers.substr(last + 1), &inner)) out->inner = inner;
  out->cpus = std::string(FieldOf(status, "Cpus_allowed_list"));
  MakePrintable(out->cpus);
  if (out->state == 'R') return true;
  const std::string function = ReadUpTo(proc, base + "/wchan", kMaxAttribute);
  if (function != "0") out->kernel_function = std::string(Trim(function));
  MakePrintable(out->kernel_function);
  ReadCall(proc, pid, base, out);
  return true;
}

}  // namespace

Result<ProcessThreads> ReadThreads(const RootedFs& proc, pid_t pid, uint64_t start_ticks) {
  std::vector<pid_t> ids;
  const Status listed = proc.Visit(fmt::format("{}/task", pid), [&ids](std::string_view name) {
    pid_t id = 0;
    if (ParseNumber(name, &id)) ids.push_back(id);
  });
  if (!listed.ok()) return listed;
  std::ranges::sort(ids, [pid](pid_t a, pid_t b) { return std::pair(a != pid, a) < std::pair(b != pid, b); });
  ProcessThreads all;
  all.left_out = ids.size() - std::min(ids.size(), kMaxShownThreads);
  ids.resize(ids.size() - all.left_out);
  for (const pid_t id : ids) {
    ThreadFacts facts;
    if (ReadThread(proc, pid, id, &facts)) all.threads.push_back(std::move(facts));
  }
  // Whose threads were these?
  Result<uint64_t> ticks = ReadStartTicks(proc, pid);
  if (!ticks.ok()) return ticks.status();
  if (*ticks != start_ticks) return NotFound("the process has ended");
  return all;
}

}  // namespace profd
