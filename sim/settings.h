// How the stand-ins of the application's libraries are configured to misbehave: the variable
// PROFD_SIM_APP when they are loaded, and their control function afterwards. Both take
// "library.key=value", many divided by ';'. A library takes what begins with its own name. What it
// does not know ends the process: a test that misspells a fault must not pass.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace profd::sim {

inline constexpr char kSettingsEnv[] = "PROFD_SIM_APP";

// False: the key is unknown or the value is not one it takes.
using ApplySetting = std::function<bool(std::string_view key, std::string_view value)>;
void ApplySettings(std::string_view text, std::string_view library, const ApplySetting& apply);
void ApplySettingsOfEnvironment(std::string_view library, const ApplySetting& apply);

// False when the text is not an integer in [least, most].
bool ParseSetting(std::string_view text, int64_t least, int64_t most, int64_t* value);
bool ParseSetting(std::string_view text, bool* value);  // 0, 1

}  // namespace profd::sim
