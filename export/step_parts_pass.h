// Reads the steps of a dump's devices and what ran there, before the export itself: a step's row needs both.
#pragma once

#include <functional>
#include <memory>

#include "export/decoder.h"
#include "export/dump_info.h"
#include "export/step_parts.h"

namespace profd::exporting {

struct StepPartsOrder {
  const Dump* dump = nullptr;
  const DecoderSpec* (*find)(std::string_view base, Place::Kind kind, int chip) = nullptr;
  std::function<ClockMap(const Place&)> clock;
  std::function<bool()> cancelled;
};

// Null: the dump has no whole steps, or nothing of what ran in them.
std::unique_ptr<StepPartFinder> FindStepParts(const StepPartsOrder& order);

}  // namespace profd::exporting
