// Reading the lines of /proc that describe processes, and making text that any user of the node can
// choose (comm, device names) fit for labels and for dump files. Nothing here trusts its input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace profd {

// TASK_COMM_LEN is 16 with its terminator; kernel threads of workqueues show up to 64.
inline constexpr size_t kMaxCommChars = 15;
inline constexpr size_t kMaxDeviceChars = 64;

// What we need of /proc/[pid]/stat or /proc/[pid]/task/[tid]/stat (proc(5)). `comm` and `tail` are
// views into the parsed text; `tail` is everything after the parenthesis of comm, on one line.
struct PidStat {
  int pid = 0;
  std::string_view comm;
  char state = '?';
  int ppid = 0;
  uint64_t flags = 0;
  uint64_t utime_ticks = 0;
  uint64_t stime_ticks = 0;
  uint64_t start_ticks = 0;
  std::string_view tail;
  bool tail_printable = false;  // known to need no cleaning

  bool kernel_thread() const { return (flags & 0x00200000) != 0; }  // PF_KTHREAD
};

// False when the text is not a stat line. comm may hold blanks, parentheses, any other byte: it ends
// at the last parenthesis of the text.
[[nodiscard]] bool ParsePidStat(std::string_view text_untrusted, PidStat* out);

namespace internal {
// The same answer for any input; ParsePidStat is faster for what the kernel prints.
[[nodiscard]] bool ParsePidStatSlowly(std::string_view text_untrusted, PidStat* out);
}  // namespace internal

// /proc/[pid]/statm (proc(5)), in pages.
struct Statm {
  static constexpr size_t kSize = 0;
  static constexpr size_t kResident = 1;
  std::array<uint64_t, 7> pages = {};
  // The numbers as they stood in the text, with single blanks between them; empty if they were
  // written in some other way.
  std::string_view line;
};

// False when the text is not seven numbers. `out->line` is a view into it.
[[nodiscard]] bool ParseStatm(std::string_view text_untrusted, Statm* out);

// Appends `bytes` as at most `max_chars` printable characters of UTF-8; whatever is not (control
// and bidi characters, broken sequences) becomes '?'. Nothing is appended for empty input.
void AppendClean(std::string_view bytes_untrusted, size_t max_chars, std::string* out);

// The same, and blanks become '_': a field of a line that readers split at blanks.
void AppendWord(std::string_view bytes_untrusted, size_t max_chars, std::string* out);

std::string CleanLabel(std::string_view bytes_untrusted, size_t max_chars);

// Appends one line of a raw file: bytes that are not printable ASCII become '?', a newline ends it.
void AppendPrintableLine(std::string_view line_untrusted, std::string* out);

// Appends the stat line with comm made a single word and exactly one newline at the end.
void AppendStatLine(const PidStat& stat, std::string* out);

}  // namespace profd
