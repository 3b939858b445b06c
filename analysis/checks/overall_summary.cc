#include <fmt/format.h>

#include "analysis/checks/check.h"
#include "analysis/views/views.h"

namespace profd::analysis {

std::optional<Finding> CheckOverall(const CheckInput& input) {
  const Json overall = OverallView(input.rank);
  if (!overall.is_object()) return std::nullopt;
  const auto ms = [&overall](const char* name) { return overall[name].get<double>(); };
  const double whole = ms("e2e_ms");
  Finding finding;
  finding.title = "Where the time went";
  finding.evidence = fmt::format("{:.3f} ms from end to end: computing {:.3f} ms, communication that nothing covers {:.3f} ms, free {:.3f} ms",
                                 whole, ms("computing_ms"), ms("uncovered_communication_ms"), ms("free_ms"));
  finding.columns = {"part", "duration_ms", "ratio"};
  for (const char* part : {"computing_ms", "uncovered_communication_ms", "free_ms", "e2e_ms"}) {
    const std::string name(part);
    finding.rows.push_back({name.substr(0, name.size() - 3), ms(part), whole > 0 ? Json(ms(part) / whole) : Json()});
  }
  if (ms("free_ms") > 0) finding.advice.push_back("Free time is the host's: look at the checks of schedule and of the data loader.");
  if (ms("uncovered_communication_ms") > 0) finding.advice.push_back("Communication that computing does not cover: look at the checks of communication, and at who is waited for.");
  return finding;
}

}  // namespace profd::analysis
