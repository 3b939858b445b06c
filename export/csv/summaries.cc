#include "export/csv/summaries.h"

#include <vector>

namespace profd::exporting::csv {

std::span<const SummaryKind> SummaryKinds() {
  static const std::vector<SummaryKind> all = [] {
    std::vector<SummaryKind> kinds;
    for (std::span<const SummaryKind> part : {LinkSummaries(), NetworkSummaries(), MemorySummaries(), AicoreSummaries(),
                                              HostSummaries(), ActivitySummaries()}) {
      kinds.insert(kinds.end(), part.begin(), part.end());
    }
    return kinds;
  }();
  return all;
}

}  // namespace profd::exporting::csv
