// Addresses that the configuration lets the daemon listen on: "127.0.0.1:9464", "[::]:9465".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

enum class ListenFault : uint8_t { kNone, kShape, kPort, kHost };

// A port of 0 is any that is free.
ListenFault FaultOfListen(const std::string& text);

// Describes what is wrong with the key's value; `usual_port` is in the example.
void CheckListen(std::string_view key, const std::string& text, ListenFault fault, int usual_port,
                 std::vector<std::string>* problems);

}  // namespace profd
