#include "daemon/session/option_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/session/collector_plan.h"
#include "daemon/session/option_plan.h"
#include "profd/v1/profd.pb.h"
#include "proto/options/options_message.h"
#include "proto/problems/problem_message.h"

namespace profd {

void ListOptions(const Host& host, v1::ListOptionsResponse* out) {
  const options::NodeSupport support = SupportOf(host.devices, Collectors(), ProbeOn(host));
  for (const std::string& chip : support.chip_names) out->add_chips(chip);
  for (const options::Option& option : options::Table()) ToWire(option, &support, out->add_options());
}

void CheckOptions(const Host& host, double max_hz,
                  const v1::CheckOptionsRequest& request_untrusted,
                  v1::CheckOptionsResponse* out) {
  const options::NodeSupport support = SupportOf(host.devices, Collectors(), ProbeOn(host));
  options::CheckResult result = CheckOptionsOf(request_untrusted.spec(), support);
  for (Problem& problem : CheckUserRates(result.options, max_hz)) {
    result.problems.push_back(std::move(problem));
  }
  const v1::SessionSpec& spec = request_untrusted.spec();
  CollectorPlanner planner({Collectors(), result.options, {}, max_hz,
                            [&result](Problem problem) { result.problems.push_back(std::move(problem)); }});
  planner.AddByName({spec.collectors().data(), static_cast<size_t>(spec.collectors_size())});
  for (const Problem& problem : result.problems) {
    ToWire(problem, out->add_problems());
  }
  for (const std::string& warning : result.warnings) out->add_warnings(warning);
  std::vector<std::string> awaited = AwaitedOptions(result.options);
  std::erase_if(awaited, [&](const std::string& key) { return options::NamesRegisters(key, result.options.Text(key)); });
  if (!awaited.empty() && !AimsOf(result.options).node && spec.collectors().empty()) {
    out->add_warnings(fmt::format("{}: {}; without one a session of these options alone is refused",
                                  fmt::join(awaited, ", "), kNeedsProcess));
  }
  RoundRates(host.devices, Collectors(), &result.options.effective);
  const std::map<std::string, std::string> application = ApplicationOptions(result.options);
  for (options::Effective& effective : result.options.effective) {
    if (application.contains(effective.key)) {
      AddNote(options::NamesRegisters(effective.key, effective.value) ? options::kNoRegisters : kNeedsProcess, &effective);
    }
    ToWire(effective, out->add_effective_options());
  }
}

}  // namespace profd
