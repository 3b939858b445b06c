// Named sets of options for what people want to know most often.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace profd::options {

struct Preset {
  std::string_view name;  // "comm"
  std::string_view what;
  // Option and value.
  std::span<const std::pair<std::string_view, std::string_view>> options;
};

// THE list.
std::span<const Preset> Presets();
// Null if there is none of that name.
const Preset* FindPreset(std::string_view name);
// "comm, mem, all"
std::string PresetNames();

}  // namespace profd::options
