#include "sim/settings.h"

#include <cstdio>
#include <cstdlib>

namespace profd::sim {

void ApplySettings(std::string_view text, std::string_view library, const ApplySetting& apply) {
  while (!text.empty()) {
    const size_t semicolon = text.find(';');
    const std::string_view entry = text.substr(0, semicolon);
    text = semicolon == std::string_view::npos ? std::string_view() : text.substr(semicolon + 1);
    if (!entry.starts_with(library) || entry.substr(library.size(), 1) != ".") continue;
    const std::string_view setting = entry.substr(library.size() + 1);
    const size_t equals = setting.find('=');
    if (equals != std::string_view::npos &&
        apply(setting.substr(0, equals), setting.substr(equals + 1))) {
      continue;
    }
    std::fprintf(stderr, "profd sim (%s): setting '%s' is unknown or its value is wrong\n",
                 std::string(library).c_str(), std::string(entry).c_str());
    std::abort();
  }
}

void ApplySettingsOfEnvironment(std::string_view library, const ApplySetting& apply) {
  const char* const text = std::getenv(kSettingsEnv);
  if (text != nullptr) ApplySettings(text, library, apply);
}

}  // namespace profd::sim
