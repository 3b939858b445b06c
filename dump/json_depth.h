// Whether a JSON text nests deeper than what we read does. The parser keeps nesting on the heap, other functions of it
// on the stack.
#pragma once

#include <cstddef>
#include <string_view>

namespace profd {

inline bool NestsTooDeep(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace profd
