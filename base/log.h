// key=value log lines: to the journal under systemd, to stderr otherwise. Only the daemon and the
// client log; libraries return errors.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace profd::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Call once, before the first line and before threads: to the journal with its priorities, or to
// stderr. Safe to call again to change the level (thread-safe); the target stays.
void Setup(Level level, bool to_journal);

struct Field {
  template <class T>
  Field(std::string_view k, const T& v) : key(k), value(fmt::format("{}", v)) {}
  std::string_view key;
  std::string value;
};

// `event` is a short fixed phrase; everything that varies is a field. Values are quoted and escaped,
// so that bytes from a client cannot forge a line or drive a terminal.
void Write(Level level, std::string_view event, std::span<const Field> fields);

inline void Debug(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kDebug, event, fields);
}
inline void Info(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kInfo, event, fields);
}
inline void Warning(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kWarning, event, fields);
}
inline void Error(std::string_view event, std::initializer_list<Field> fields = {}) {
  Write(Level::kError, event, fields);
}

// `text` with quotes, backslashes and control bytes escaped, in double quotes if it needs them.
std::string Quote(std::string_view text);

}  // namespace profd::log
