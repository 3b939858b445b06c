// Numbers that a database keeps: made to fit their types.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "analysis/times.h"

namespace profd::analysis {

// In JSON that is kept as text.
template <class T>
std::optional<T> NumberIn(const nlohmann::ordered_json& json) {
  if (!json.is_number()) return std::nullopt;
  const auto value = json.get<double>();
  if constexpr (std::is_integral_v<T>) {
    // What is at the type's borders as a double may be beyond them.
    if (!(value > static_cast<double>(std::numeric_limits<T>::min()) && value < static_cast<double>(std::numeric_limits<T>::max()))) return std::nullopt;
    return json.get<T>();
  } else {
    return value;
  }
}

}  // namespace profd::analysis
