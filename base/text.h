// Parsing of paths, and of the plain text that /proc, /sys and the driver's text channels hand out. Nothing but
// LowerCase and UpperCase allocate; every function returns false rather than guess.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace profd {

// These are of ASCII, whatever the locale.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; }
constexpr char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char ToUpper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// Nothing but digits, and at least one of them.
constexpr bool IsDigits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

inline bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ToLower, ToLower);
}
inline bool HoldsIgnoringCase(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return ToLower(a) == ToLower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), ToLower);
  return lower;
}
inline std::string UpperCase(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), ToUpper);
  return upper;
}

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

// "/a" of "/a//"; "/" stays.
inline std::string_view WithoutLastSlashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

// False for "/a/", "/a/." and "/a/..", which are directories by their spelling.
inline bool EndsWithName(std::string_view path) {
  const std::string_view last = BaseName(path);
  return !last.empty() && last != "." && last != "..";
}

inline std::string_view Trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace profd
