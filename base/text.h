// Parsing of paths, and of the plain text that /proc, /sys and the driver's text channels hand out. Nothing here
// allocates; every function returns false rather than guess.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace profd {

// All of `text` must be the number.
template <class T>
[[nodiscard]] bool ParseNumber(std::string_view text, T* out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// Some writers begin a file of UTF-8 with it.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Takes the next blank-separated token off the front of `*rest`; empty when there is none.
inline std::string_view NextToken(std::string_view* rest) {
  // Compared by hand: this runs for every word of every record, and find_first_of calls memchr for
  // each character.
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  const char* begin = rest->data();
  const char* const end = begin + rest->size();
  while (begin != end && blank(*begin)) ++begin;
  if (begin == end) {
    *rest = {};
    return {};
  }
  const char* stop = begin;
  while (stop != end && *stop != '\n' && !blank(*stop)) ++stop;
  *rest = std::string_view(stop, static_cast<size_t>(end - stop));
  return std::string_view(begin, static_cast<size_t>(stop - begin));
}

// Takes what is before the next separator, and that, off the front of `*rest`; false at the end.
inline bool NextPart(std::string_view* rest, char separator, std::string_view* part) {
  if (rest->empty()) return false;
  size_t end = rest->find(separator);
  if (end == std::string_view::npos) {
    *part = *rest;
    *rest = {};
  } else {
    *part = rest->substr(0, end);
    rest->remove_prefix(end + 1);
  }
  return true;
}

// The same of the next line.
inline bool NextLine(std::string_view* rest, std::string_view* line) { return NextPart(rest, '\n', line); }

// The last part of a path.
inline std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

inline std::string_view Trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace profd
