// Paths taken apart, for the two walks that resolve symlinks by hand.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace profd {

inline constexpr int kMaxSymlinks = 40;  // as the kernel

// Puts the components of `path` in front of `*todo`; "." and empty ones are left out.
inline void PushPathFront(std::string_view path, std::deque<std::string>* todo) {
  std::vector<std::string> parts;
  for (std::string_view part; NextPart(&path, '/', &part);) {
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  todo->insert(todo->begin(), parts.begin(), parts.end());
}

}  // namespace profd
