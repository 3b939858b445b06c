// Names for the numbers of users.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace profd::client {

// The name this machine has for the uid, or the number where it has none. Looked up once. From any thread.
std::string UserText(uint32_t uid);

// For tests: calls `lookup` (empty = no name) instead of the machine.
void SetUserLookup(std::function<std::string(uint32_t)> lookup);

}  // namespace profd::client
