#include <fmt/format.h>

#include <charconv>

#include "proto/options/option_value.h"
#include "proto/options/options.h"

namespace profd::options {
namespace {

constexpr std::string_view kMetricsSwitch = "ACL_PROF_AICORE_METRICS";
constexpr std::string_view kMetricsTypeName = "aiCoreMetricsType";

const MetricsType* FindMetricsType(std::string_view value) {
  bool hex = value.starts_with("0x") || value.starts_with("0X");
  std::string_view digits = hex ? value.substr(2) : value;
  uint32_t number = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hex ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size()) return nullptr;
  for (const MetricsType& type : MetricsTypes()) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

class Switches {
 public:
  Switches(std::vector<OptionInput>* given, std::vector<Problem>* problems)
      : given_(given), problems_(problems) {}

  void Take(const std::string& name, const std::string& value);
  void Finish(bool with_defaults, std::vector<std::string>* warnings);

 private:
  struct SwitchValue {
    const AclSwitch* known;
    std::string_view on_off;
  };
  void Refuse(std::string_view name, std::string_view value, std::string_view what) {
    if (problems_->size() >= kMaxProblems) {
      ++left_out_;
      return;
    }
    problems_->push_back(MakeProblem(Problem::Kind::kInvalid, name, value, what));
  }
  const SwitchValue* Find(std::string_view name) const {
    for (const SwitchValue& seen : seen_) {
      if (seen.known->name == name) return &seen;
    }
    return nullptr;
  }
  void Give(std::string_view key, std::string_view value, bool by_default) {
    given_->push_back({.key = std::string(key),
                       .value = std::string(value),
                       .via = OptionSyntax::kAclSwitch,
                       .by_default = by_default});
  }
  void GiveSwitch(const AclSwitch& known, std::string_view on_off, bool by_default);

  std::vector<OptionInput>* given_;
  std::vector<Problem>* problems_;
  size_t left_out_ = 0;
  std::vector<SwitchValue> seen_;
  const MetricsType* type_ = nullptr;
  bool type_mentioned_ = false;
};

void Switches::Take(const std::string& name, const std::string& raw) {
  std::string_view value = TrimValue(Type::kSwitch, raw);
  for (const AclSwitch& known : AclSwitches()) {
    if (known.name != name) continue;
    if (name == kMetricsTypeName) {
      type_mentioned_ = true;
      type_ = FindMetricsType(value);
      if (type_ == nullptr) {
        Refuse(name, raw,
               "must be 0..5, or 0xFF for none; give one of these, or leave it out for 1");
      }
      return;
    }
    std::string_view on_off = OnOff(value);
    seen_.push_back({&known, on_off});
    if (on_off.empty()) {
      Refuse(name, raw,
             fmt::format("must be on or off; use one of these, or omit it for {}",
                         known.default_value));
    }
    return;
  }
  std::string names;
  for (const AclSwitch& known : AclSwitches()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  Refuse(name, raw, fmt::format("is not a switch; must be one of {}", names));
}

// "task_time=l1": the value when on; off is off for all of them.
void Switches::GiveSwitch(const AclSwitch& known, std::string_view on_off, bool by_default) {
  if (known.equals.empty()) return Give(known.name, on_off, by_default);
  size_t equal = known.equals.find('=');
  if (equal == std::string_view::npos) return;  // the two of the metrics: Finish
  Give(known.equals.substr(0, equal), on_off == "on" ? known.equals.substr(equal + 1) : "off",
       by_default);
}

void Switches::Finish(bool with_defaults, std::vector<std::string>* warnings) {
  if (left_out_ > 0) {
    problems_->push_back({.kind = Problem::Kind::kInvalid, .text = fmt::format("and {} more problems", left_out_), .left_out = left_out_});
  }
  for (const AclSwitch& known : AclSwitches()) {
    const SwitchValue* seen = Find(known.name);
    if (seen != nullptr) {
      if (!seen->on_off.empty()) GiveSwitch(known, seen->on_off, /*by_default=*/false);
    } else if (with_defaults && known.name != kMetricsTypeName) {
      GiveSwitch(known, known.default_value, /*by_default=*/true);
    }
  }
  const SwitchValue* metrics = Find(kMetricsSwitch);
  if (metrics != nullptr && metrics->on_off == "off") {
    Give("aic_metrics", "none", /*by_default=*/false);
    if (type_mentioned_) {
      warnings->push_back(
          fmt::format("{} does not count while {} is off", kMetricsTypeName, kMetricsSwitch));
    }
  } else if (type_ != nullptr) {
    Give("aic_metrics", type_->metrics, /*by_default=*/false);
  } else if (!type_mentioned_ && (metrics != nullptr || with_defaults)) {
    Give("aic_metrics", "PipeUtilization", /*by_default=*/true);
  }
}

}  // namespace

void FromAclSwitches(const std::map<std::string, std::string>& switches, bool with_defaults,
                     std::vector<OptionInput>* given, std::vector<Problem>* problems,
                     std::vector<std::string>* warnings) {
  Switches reader(given, problems);
  for (const auto& [name, value] : switches) reader.Take(name, value);
  reader.Finish(with_defaults, warnings);
}

}  // namespace profd::options
