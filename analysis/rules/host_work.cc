#include "analysis/rules/host_work.h"

#include <algorithm>

#include "base/text.h"

namespace profd::analysis {
namespace {

bool HoldsIgnoringCase(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return ToLower(a) == b; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

}  // namespace

HostWork HostWorkOf(std::string_view name) {
  if (HoldsIgnoringCase(name, "dataloader")) return HostWork::kDataloader;
  if (name == "gc" || name.starts_with("gc ") || name.starts_with("gc.") || HoldsIgnoringCase(name, "garbage")) return HostWork::kGc;
  if (name.starts_with("compile ")) return HostWork::kCompile;
  return HostWork::kNone;
}

}  // namespace profd::analysis
