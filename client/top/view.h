// What the user has asked to see, and how keys change it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/top/keys.h"
#include "client/top/measure.h"

namespace profd::client::top {

enum class Panel : uint8_t { kAll, kGraphs, kProcesses, kSessions };

struct View {
  // Unset = by id.
  std::optional<Measure> sort;
  bool descending = false;
  // Only what has it somewhere in its row.
  std::string filter;
  // What is being typed behind '/'.
  std::optional<std::string> typing;
  // Empty = all.
  std::set<uint32_t> devices;
  std::string job;
  Measure graph = Measure::kUtilization;
  Panel panel = Panel::kAll;
  // Rows of the lists that are scrolled away.
  int scroll = 0;
  // The how manieth process's hottest kernels are shown in place of the graphs; they go round.
  std::optional<int> process;
  bool paused = false;
  bool help = false;
  bool ascii = false;
  int64_t interval_ms = 1000;
};

enum class Effect : uint8_t { kNone, kDraw, kRedraw, kQuit };

// Changes `view` by the key.
Effect Press(const KeyPress& press, View* view);

// "hbm", "temp:asc", "id:desc" of --sort.
Status ParseSort(std::string_view text, View* view);
// "util", "id"
std::string_view SortWord(const View& view);

inline constexpr int64_t kMinIntervalMs = 100;
inline constexpr int64_t kMaxIntervalMs = 10'000;

}  // namespace profd::client::top
