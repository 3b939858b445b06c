#include "collectors/proc/proc_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <span>

#include "base/text.h"
#include "base/utf8.h"
#include "collectors/proc/blank_fields.h"

namespace profd {
namespace {

bool Printable(uint32_t c) { return !IsInvisible(c) && (c & 0xfffe) != 0xfffe; }

void AppendSafe(std::string_view bytes, size_t max_chars, bool as_word, std::string* out) {
  // Nearly always all of it is plain.
  auto plain = [](char c) { return c > 0x20 && c < 0x7f; };
  if (bytes.size() <= max_chars && std::ranges::all_of(bytes, plain)) {
    out->append(bytes);
    return;
  }
  for (size_t chars = 0; chars < max_chars && !bytes.empty(); ++chars) {
    const auto [value, length] = FirstCodePoint(bytes);
    const bool blank =
        value == ' ' || value == 0xa0 || (value >= 0x2000 && value <= 0x200a) || value == 0x3000;
    if (length == 0 || !Printable(value)) {
      out->push_back('?');
    } else if (as_word && blank) {
      out->push_back('_');
    } else {
      out->append(bytes.substr(0, length));
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
}

// As the kernel prints it; false for everything else, some of which may be a stat line all the same.
bool ParsePrintedStat(std::string_view text, PidStat* out) {
  const char* at = text.data();
  const char* const text_end = at + text.size();
  uint64_t number = 0;
  if (!fields::TakeNumber(&at, text_end, &number) || number == 0 || number > INT_MAX) return false;
  if (text_end - at < 2 || at[1] != '(') return false;
  const char* const open = at + 1;
  const auto* close =
      static_cast<const char*>(::memrchr(open, ')', static_cast<size_t>(text_end - open)));
  if (close == nullptr) return false;
  const char* const end = text.back() == '\n' ? text_end - 1 : text_end;
  if (end - close < 5) return false;
  PidStat stat;
  stat.pid = static_cast<int>(number);
  stat.comm = {open + 1, static_cast<size_t>(close - open - 1)};
  stat.tail = {close + 1, static_cast<size_t>(end - close - 1)};
  stat.tail_printable = fields::AllPrintable(stat.tail);
  if (!stat.tail_printable || close[1] != ' ' || close[2] == ' ' || close[3] != ' ') return false;
  stat.state = close[2];
  at = close + 4;
  if (!fields::TakeNumber(&at, end, &number) || number > INT_MAX) return false;
  stat.ppid = static_cast<int>(number);
  // Fields by their numbers in proc(5): `at` stands behind one, the next wanted is `ahead` of it.
  auto take = [&](int ahead, uint64_t* value) {
    if (at == end) return false;
    at = ahead == 1 ? at + 1 : fields::Skip(at + 1, end, ahead - 1);
    return at != nullptr && fields::TakeNumber(&at, end, value);
  };
  if (!take(9 - 4, &stat.flags) || !take(14 - 9, &stat.utime_ticks) ||
      !take(1, &stat.stime_ticks) || !take(22 - 15, &stat.start_ticks)) {
    return false;
  }
  *out = stat;
  return true;
}

bool ParsePrintedStatm(std::string_view text, Statm* out) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < out->pages.size(); ++i) {
    if (i > 0 && at++ == end) return false;
    if (!fields::TakeNumber(&at, end, &out->pages[i])) return false;
  }
  out->line = text;
  return at == end;
}

}  // namespace

bool ParsePidStat(std::string_view text, PidStat* out) {
  return ParsePrintedStat(text, out) || internal::ParsePidStatSlowly(text, out);
}

bool ParseStatm(std::string_view text, Statm* out) {
  if (ParsePrintedStatm(text, out)) return true;
  out->line = {};
  for (uint64_t& value : out->pages) {
    if (!ParseNumber(NextToken(&text), &value)) return false;
  }
  return Trim(text).empty();
}

bool internal::ParsePidStatSlowly(std::string_view text, PidStat* out) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return false;
  }
  PidStat stat;
  if (!ParseNumber(Trim(text.substr(0, open)), &stat.pid) || stat.pid <= 0) return false;
  stat.comm = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  stat.tail = rest.substr(0, rest.find('\n'));
  rest = stat.tail;
  const std::string_view state = NextToken(&rest);
  if (state.size() != 1) return false;
  stat.state = state[0];
  // Fields by their numbers in proc(5); the next one is 4.
  for (int field = 4; field <= 22; ++field) {
    const std::string_view token = NextToken(&rest);
    bool good = !token.empty();
    if (field == 4) good = ParseNumber(token, &stat.ppid);
    if (field == 9) good = ParseNumber(token, &stat.flags);
    if (field == 14) good = ParseNumber(token, &stat.utime_ticks);
    if (field == 15) good = ParseNumber(token, &stat.stime_ticks);
    if (field == 22) good = ParseNumber(token, &stat.start_ticks);
    if (!good) return false;
  }
  *out = stat;
  return true;
}

void AppendClean(std::string_view bytes, size_t max_chars, std::string* out) {
  AppendSafe(bytes, max_chars, false, out);
}

void AppendWord(std::string_view bytes, size_t max_chars, std::string* out) {
  AppendSafe(bytes, max_chars, true, out);
}

std::string CleanLabel(std::string_view bytes, size_t max_chars) {
  std::string label;
  AppendClean(bytes, max_chars, &label);
  return label;
}

void AppendPrintableLine(std::string_view line, std::string* out) {
  const size_t at = out->size();
  out->append(line);
  if (!fields::AllPrintable(line)) {
    for (char& c : std::span(*out).subspan(at)) {
      if (c != '\t' && (c < 0x20 || c > 0x7e)) c = '?';
    }
  }
  out->push_back('\n');
}

void AppendStatLine(const PidStat& stat, std::string* out) {
  const fmt::format_int pid(stat.pid);
  out->append(pid.data(), pid.size());
  out->append(" (");
  AppendWord(stat.comm, kMaxDeviceChars, out);
  out->push_back(')');
  // The kernel prints numbers only from here on; anything else would be a forged line.
  AppendPrintableLine(stat.tail, out);
}

}  // namespace profd
