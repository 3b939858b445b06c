// Events as both timelines show them: a slice or an instant on a thread of a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/dump_info.h"
#include "export/event.h"
#include "export/trace/layout.h"

namespace profd::exporting {

struct Slice {
  enum class Kind : uint8_t { kSlice, kInstant, kFlowStart, kFlowStep };
  Kind kind = Kind::kSlice;
  const ProcessSpec* process = nullptr;
  int64_t tid = 0;
  std::string thread;  // its name
  // In the native trace: the row below the process or the device, and which one of them.
  std::string track;
  int track_order = 0;
  std::string name;
  std::string category;  // empty: none
  // Of what a process did: the flow from a call to what it launched, and what is at which end of it.
  // kAround: of a call around the one it leads from.
  enum class FlowEnd : uint8_t { kNone, kFrom, kAround, kTo };
  FlowEnd flow_end = FlowEnd::kNone;
  std::string flow;
  std::optional<int64_t> mark;  // a mark that a device has, too: its connection
  int64_t t_ns = 0;
  int64_t dur_ns = 0;
  // Texts and numbers; texts first.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, int64_t>> integers;
  std::vector<std::pair<std::string, double>> numbers;
};

// Outer slices before the ones they hold. `dump` has the names of its processes.
std::vector<Slice> SlicesOf(const Event& event, const DumpInfo& dump);

}  // namespace profd::exporting
