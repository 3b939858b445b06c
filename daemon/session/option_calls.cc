#include "daemon/session/option_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/session/collector_plan.h"
#include "daemon/session/option_plan.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"
#include "proto/problems/problem_message.h"

namespace profd {
namespace {

using options::Option;

}  // namespace

void ListOptions(const Host& host, v1::ListOptionsResponse* out) {
  const options::NodeSupport support = SupportOf(host.devices, Collectors(), ProbeOn(host));
  for (const std::string& chip : support.chip_names) out->add_chips(chip);
  for (const Option& option : options::Table()) {
    v1::OptionInfo& info = *out->add_options();
    info.set_key(std::string(option.key));
    info.set_type(EnumOf<v1::OptionInfo::Type>(options::TypeName(option.type)));
    info.set_range(options::RangeText(option));
    info.set_default_value(options::DefaultText(option));
    info.set_unit(std::string(option.unit));
    info.set_effect(std::string(option.effect));
    info.set_conflicts(std::string(option.conflicts));
    info.set_source(EnumOf<v1::OptionInfo::Source>(options::OriginName(option.origin)));
    info.set_reason(options::WhyUnsupported(option, support));
    info.set_supported(info.reason().empty());
  }
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
