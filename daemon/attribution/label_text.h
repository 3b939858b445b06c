// Text from processes, files and sockets as the value of a label. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace profd {

inline constexpr size_t kMaxLabelBytes = 128;

// At most kMaxLabelBytes of printable UTF-8: bytes that are none, control characters, and the invisible
// ones that turn a line around become '?'; what is too long ends in "...".
std::string LabelText(std::string_view text_untrusted);

}  // namespace profd
