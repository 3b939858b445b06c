// The complete screen from the model, the view and the size. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "client/top/frame.h"
#include "client/top/model.h"
#include "client/top/view.h"

namespace profd::client::top {

// Smaller terminals get a sentence instead.
inline constexpr Size kLeastSize = {40, 8};

struct Times {
  // "13:40:01"
  std::string wall;
  int64_t steady_ns = 0;
};

Frame Draw(const Model& model, const View& view, Size size, const Times& times);

}  // namespace profd::client::top
