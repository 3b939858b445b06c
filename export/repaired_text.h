// Texts of dumps, which are untrusted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace profd::exporting {

// Whether it has only characters of one byte; then it is valid.
bool IsAscii(std::string_view text);
// Valid UTF-8 whatever `text` is, of at most so many bytes of it.
inline constexpr size_t kMaxText = 1024;
std::string RepairedText(std::string_view text, size_t max_bytes = kMaxText);

}  // namespace profd::exporting
