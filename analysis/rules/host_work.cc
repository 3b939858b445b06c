#include "analysis/rules/host_work.h"

#include "base/text.h"

namespace profd::analysis {

HostWork HostWorkOf(std::string_view name) {
  if (HoldsIgnoringCase(name, "dataloader")) return HostWork::kDataloader;
  if (name == "gc" || name.starts_with("gc ") || name.starts_with("gc.") || HoldsIgnoringCase(name, "garbage")) return HostWork::kGc;
  if (name.starts_with("compile ")) return HostWork::kCompile;
  return HostWork::kNone;
}

}  // namespace profd::analysis
