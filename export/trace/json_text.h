// JSON's texts and numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "export/repaired_text.h"

namespace profd::exporting {

// RepairedText as it stands between the quotes.
std::string JsonEscaped(std::string_view text, size_t max_bytes = kMaxText);

// The same at the end of `out`.
void AppendJsonEscaped(std::string* out, std::string_view text, size_t max_bytes = kMaxText);

// The shortest decimal number that reads as `value` again, with at least one decimal: 12.5, 3.0,
// 1e+300. NaN and infinities, which JSON has not: 0.0. `out` has space for 32 bytes; returns the
// end.
char* AppendShortest(char* out, double value);

// Timestamps as the timeline has them, in us with three decimals; fast while the second stays the same.
class MicrosText {
 public:
  std::string_view Of(int64_t t_ns);

 private:
  char text_[32];
  size_t seconds_size_ = 0;
  size_t size_ = 0;
  int64_t second_ = -1;
  int64_t t_ns_ = -1;
};

}  // namespace profd::exporting
