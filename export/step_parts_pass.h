// Reads the steps of a dump's devices and what ran there, before the export itself: a step's row needs both. What ran
// there MSPTI has recorded in the dump itself, or the vendor's aclprof in the dump and those of its session's processes
// beside it: their operators are read once more for that.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "export/decoder.h"
#include "export/dump_info.h"
#include "export/step_parts.h"

namespace profd::exporting {

struct StepPartsRequest {
  const Dump* dump = nullptr;
  std::span<const Dump> dumps;  // of the export, `dump` among them
  const DecoderSpec* (*find)(std::string_view base, Place::Kind kind, int chip) = nullptr;
  std::function<ClockMap(const Place&)> clock;
  std::function<bool()> cancelled;
  bool operators = true;  // false: only what MSPTI has recorded
};

// Null: the dump has no complete steps, or nothing of what ran in them.
std::unique_ptr<StepPartFinder> FindStepParts(const StepPartsRequest& request);

}  // namespace profd::exporting
