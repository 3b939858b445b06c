#include <array>

#include "base/text.h"
#include "proto/options/options.h"

namespace profd::options {
namespace {

// driver-abi 2.3, 2.4: what is behind the options, of the chips that it distinguishes. For
// checks without a node; a daemon reads its devices' channel lists instead.
struct Chip {
  int id;
  std::string_view name;
  bool io;
  bool interconnection;
  bool caches;
};
constexpr auto kChips = std::to_array<Chip>({
    {0, "Ascend310", true, false, false},
    {1, "Ascend910", true, true, true},
    {4, "Ascend310P", false, true, true},
    {5, "Ascend910B", true, true, true},
    {7, "Ascend310B", true, false, true},
    {15, "Ascend950", true, true, true},
});

}  // namespace

std::optional<NodeSupport> SupportOfChip(std::string_view name_as_written) {
  constexpr std::string_view kPrefix = "ASCEND";
  const std::string upper = UpperCase(name_as_written);
  std::string_view name = upper;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  // driver-abi 2.3: an A3 (910_93, 910C) looks like a 910B.
  if (name == "910C" || name == "910_93") name = "910B";
  for (const Chip& chip : kChips) {
    if (chip.name.substr(kPrefix.size()) != name) continue;
    NodeSupport support{
        .chip_ids = {chip.id}, .chip_names = {std::string(chip.name)}, .lacking = {}};
    if (!chip.io) support.lacking["sys_io_sampling_freq"] = "it has no NIC or RoCE channel";
    if (!chip.interconnection) {
      support.lacking["sys_interconnection_freq"] = "it has no HCCS or PCIe channel";
    }
    if (!chip.caches) {
      support.lacking["llc_profiling"] = "its last level cache has no sampling channel";
      support.lacking["l2"] = "it has no L2 cache channel";
    }
    return support;
  }
  return std::nullopt;
}

std::vector<std::string_view> ChipNames() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kChips));
  for (const Chip& chip : kChips) names.push_back(chip.name);
  return names;
}

}  // namespace profd::options
