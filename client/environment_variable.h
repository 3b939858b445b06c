#pragma once

#include <cstdlib>
#include <string_view>

namespace profd {

// Empty where it is not set. Valid until the process changes its environment.
inline std::string_view EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace profd
