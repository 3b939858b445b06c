// Numbers of things as people read them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace profd {

// "1 process", "2 processes"; of "query" "2 queries". With `plural` these words: "1 line makes", "2 lines make".
inline std::string CountText(uint64_t count, std::string_view singular, std::string_view plural = "") {
  if (count == 1) return fmt::format("1 {}", singular);
  if (!plural.empty()) return fmt::format("{} {}", count, plural);
  if (singular.ends_with('y')) return fmt::format("{} {}ies", count, singular.substr(0, singular.size() - 1));
  return fmt::format("{} {}{}", count, singular, singular.ends_with('s') ? "es" : "s");
}

}  // namespace profd
