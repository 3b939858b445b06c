// Paths taken apart, for the two walks that resolve symlinks by hand.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

inline constexpr int kMaxSymlinks = 40;  // as the kernel

// Puts the components of `path` in front of `*todo`; "." and empty ones are left out.
inline void PushPathFront(std::string_view path, std::deque<std::string>* todo) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0 && path.substr(0, slash) != ".") parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  todo->insert(todo->begin(), parts.begin(), parts.end());
}

}  // namespace profd
