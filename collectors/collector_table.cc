#include <algorithm>
#include <array>
#include <vector>

#include "base/nearest.h"
#include "collectors/collector.h"
#include "collectors/collector_hint.h"
#include "collectors/collector_list.h"

namespace profd {

std::span<const CollectorEntry> Collectors() {
  // Copies of constants of other files, which are initialised before anything runs (constinit).
  // That the order is right is the test's to say: their names are not known at compile time here.
#define PROFD_ENTRY(entry) entry,
  static const std::array kCollectors = {PROFD_COLLECTORS(PROFD_ENTRY)};
#undef PROFD_ENTRY
  return kCollectors;
}

const CollectorEntry* FindCollector(std::string_view name) {
  std::span<const CollectorEntry> all = Collectors();
  auto found = std::ranges::lower_bound(all, name, {}, [](const CollectorEntry& entry) { return entry.spec->name; });
  return found != all.end() && found->spec->name == name ? &*found : nullptr;
}

std::vector<std::string> CheckSettings(const CollectorSettings& settings) {
  std::vector<std::string> problems;
  for (const CollectorEntry& entry : Collectors()) {
    const auto items = settings.find(entry.spec->settings);
    if (entry.check_settings == nullptr || items == settings.end()) continue;
    for (const std::string& problem : entry.check_settings(items->second)) {
      problems.push_back("metrics." + items->first + ": " + problem);
    }
  }
  return problems;
}

std::string CollectorHint(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CollectorEntry& entry : Collectors()) names.push_back(entry.spec->name);
  return DidYouMean(name, names);
}

}  // namespace profd
