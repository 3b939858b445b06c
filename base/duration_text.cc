#include "base/duration_text.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace profd {

std::string FormatSpan(int64_t ns) {
  if (ns < 0) ns = 0;
  if (ns < 10 * kNsPerSecond) {
    return fmt::format("{:.1f} s", static_cast<double>(ns) / static_cast<double>(kNsPerSecond));
  }
  const int64_t s = ns / kNsPerSecond;
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h {:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d {:02}h", s / 86400, s % 86400 / 3600);
}

std::string ExactDuration(uint64_t ms) {
  if (ms == 0 || ms % 1000 != 0) return fmt::format("{}ms", ms);
  if (ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms % 60'000 == 0) return fmt::format("{}m", ms / 60'000);
  return fmt::format("{}s", ms / 1000);
}

}  // namespace profd
