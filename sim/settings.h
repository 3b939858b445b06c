// How the stand-ins of the application's libraries are configured to misbehave: the variable
// PROFD_SIM_APP when they are loaded, and their control function afterwards. Both take
// "library.key=value", many divided by ';'. A library takes what begins with its own name. What it
// does not know ends the process: a test that misspells a fault must not pass.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace profd::sim {

inline constexpr char kSettingsEnv[] = "PROFD_SIM_APP";

// False: the key is unknown or the value is not one it takes.
using ApplySetting = std::function<bool(std::string_view key, std::string_view value)>;
void ApplySettings(std::string_view text, std::string_view library, const ApplySetting& apply);
void ApplySettingsOfEnvironment(std::string_view library, const ApplySetting& apply);

// False when the text is not an integer in [least, most]. The value may be an atomic.
template <class Value>
bool ParseSetting(std::string_view text, int64_t least, int64_t most, Value* value) {
  int64_t number = 0;
  if (!ParseNumber(text, &number) || number < least || number > most) return false;
  *value = number;
  return true;
}
template <class Flag>
bool ParseSetting(std::string_view text, Flag* value) {  // 0, 1
  if (text != "0" && text != "1") return false;
  *value = text == "1";
  return true;
}

}  // namespace profd::sim
