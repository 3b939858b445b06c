#include "proto/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "proto/options/option_value.h"

namespace profd::options {
namespace {

const std::string& NoText() {
  static const std::string kNone;
  return kNone;
}

bool HasOff(Type type) { return type != Type::kText && type != Type::kPath && type != Type::kSize; }

// Which task_trace and task_time, two names of one switch, are checked under.
std::string_view OtherName(std::string_view key) {
  if (key == "task_trace") return "task_time";
  if (key == "task_time") return "task_trace";
  return {};
}

std::string_view ViaName(OptionSyntax via) {
  switch (via) {
    case OptionSyntax::kJson:
      return "PROFILING_OPTIONS";
    case OptionSyntax::kAclSwitch:
      return "ACL switch";
    case OptionSyntax::kField:
    case OptionSyntax::kFlag:
      break;
  }
  return "option";
}

// What may not run beside instr_profiling_freq.
constexpr auto kExcludedByInstr =
    std::to_array<std::string_view>({"training_trace", "task_trace", "hccl", "aicpu", "fp_point",
                                     "bp_point", "aic_metrics", "l2", "task_time", "runtime_api"});

std::string ChipName(const NodeSupport& node, size_t i) {
  return i < node.chip_names.size() ? node.chip_names[i] : fmt::format("chip {}", node.chip_ids[i]);
}

// What is known of one key while it is checked.
struct State {
  const Option* option = nullptr;
  bool mentioned = false;      // by a source other than the defaults, right or wrong
  bool asked = false;          // mentioned, and with a value that is right
  bool by_switch = false;      // of the switches' defaults
  std::string canonical = {};  // "" = not given
  std::string asked_text = {};
  std::string note = {};
  std::string warning = {};
  OptionSyntax via = OptionSyntax::kField;

  bool On() const { return !canonical.empty() && canonical != "off"; }
};

class Checker {
 public:
  explicit Checker(const CheckRequest& request) : request_(request) {
    for (const Option& option : Table()) states_.push_back({.option = &option});
  }

  CheckResult Run() {
    // Requested options first: defaults give way to it.
    for (const OptionInput& given : request_.given) {
      if (!given.by_default) Take(given);
    }
    for (const OptionInput& given : request_.given) {
      if (given.by_default) TakeDefault(given);
    }
    for (State& state : states_) {
      if (!state.warning.empty()) result_.warnings.push_back(state.warning);
    }
    CheckTaskSwitch();
    CheckSupport();
    CheckTraining();
    CheckNeeds();
    CheckInstr();
    CheckDeprecated();
    CheckRegisters();
    FillEffective();
    if (left_out_ > 0) {
      result_.problems.push_back({.kind = left_out_kind_, .text = fmt::format("and {} more problems", left_out_), .left_out = left_out_});
    }
    return std::move(result_);
  }

 private:
  State& At(std::string_view key) {
    return *std::ranges::find_if(states_, [key](const State& state) { return state.option->key == key; });
  }

  void Report(Problem::Kind kind, std::string_view key, std::string_view value,
              std::string_view what) {
    Add(MakeProblem(kind, key, value, what));
  }

  void Add(Problem problem) {
    if (result_.problems.size() < kMaxProblems) return result_.problems.push_back(std::move(problem));
    ++left_out_;
    if (problem.kind != Problem::Kind::kUnsupported) left_out_kind_ = Problem::Kind::kInvalid;
  }

  void Take(const OptionInput& given);
  void TakeCarried(const OptionInput& given);
  void TakeDefault(const OptionInput& given);
  void CheckTaskSwitch();
  void CheckSupport();
  std::string WhyUnsupported(const State& state) const;
  void CheckTraining();
  void CheckNeeds();
  void CheckInstr();
  void CheckDeprecated();
  void CheckRegisters();
  void FillEffective();
  Effective EffectiveOf(const State& state) const;

  const CheckRequest& request_;
  size_t left_out_ = 0;
  Problem::Kind left_out_kind_ = Problem::Kind::kUnsupported;
  std::vector<State> states_;
  std::vector<Effective> carried_;
  CheckResult result_;
};

// The meaning of a switch without an option.
void Checker::TakeCarried(const OptionInput& given) {
  auto same = std::ranges::find(carried_, given.key, &Effective::key);
  const std::string value(OnOff(TrimValue(Type::kSwitch, given.value)));
  if (value.empty()) {
    return Report(Problem::Kind::kInvalid, given.key, given.value,
                  "must be on or off; use one of these, or omit it");
  }
  if (same == carried_.end()) {
    carried_.push_back({.key = given.key,
                        .value = value,
                        .asked = given.by_default ? "" : value,
                        .note = {},
                        .was_asked = !given.by_default,
                        .by_switch = given.by_default});
  } else if (!given.by_default && same->value != value) {
    Report(Problem::Kind::kConflict, given.key, given.value,
           fmt::format("differs from {} given as well; give the switch once, or the same value in every way (allowed: on, off)",
                       Quoted(same->value)));
  }
}

void Checker::Take(const OptionInput& given) {
  if (IsCarriedSwitch(given.key)) return TakeCarried(given);
  const Option* option = Find(given.key);
  if (option == nullptr) {
    return Add(UnknownOption(given.key, given.value));
  }
  State& state = At(given.key);
  std::string_view value = TrimValue(option->type, given.value);
  state.mentioned = true;
  std::string warning;
  // Only ACL_PROF_AICORE_METRICS and aiCoreMetricsType can say "no events".
  bool none = option->type == Type::kMetrics && given.via == OptionSyntax::kAclSwitch && value == "none";
  Result<std::string> canonical = none ? std::string("off") : Canonical(*option, value, &warning);
  if (!canonical.ok()) {
    return Report(Problem::Kind::kInvalid, given.key, given.value, canonical.status().message());
  }
  if (state.asked && state.canonical != *canonical) {
    return Report(Problem::Kind::kConflict, given.key, given.value,
                  fmt::format("differs from {} given as {}, this one as {}; give the option once, "
                              "or the same value in every way (allowed: {})",
                              Quoted(state.asked_text), ViaName(state.via), ViaName(given.via),
                              RangeText(*option)));
  }
  state.asked = true;
  state.canonical = *canonical;
  state.asked_text = std::string(value);
  state.via = given.via;
  if (!warning.empty()) state.warning = state.note = warning;
}

void Checker::TakeDefault(const OptionInput& given) {
  if (given.via == OptionSyntax::kAclSwitch && IsCarriedSwitch(given.key)) return TakeCarried(given);
  const Option* option = Find(given.key);
  if (option == nullptr) return;
  State& state = At(given.key);
  std::string_view other = OtherName(given.key);
  if (state.mentioned || (!other.empty() && At(other).mentioned)) return;
  std::string ignored;
  Result<std::string> canonical =
      given.value == "none" ? std::string("off") : Canonical(*option, given.value, &ignored);
  if (!canonical.ok()) return;
  state.canonical = *canonical;
  state.by_switch = state.On();
}

void Checker::CheckTaskSwitch() {
  State& trace = At("task_trace");
  State& time = At("task_time");
  if (trace.asked && time.asked && trace.canonical != time.canonical) {
    Report(Problem::Kind::kConflict, "task_time", time.asked_text,
           fmt::format("differs from task_trace = {}; both name one switch (on (= l1), off, l0, "
                       "l1): give one of them, or both the same value",
                       Quoted(trace.asked_text)));
  }
  // A name that was not given follows the other.
  if (!trace.asked && (time.asked || !time.canonical.empty())) trace.canonical = time.canonical;
  if (!time.asked && (trace.asked || !trace.canonical.empty())) time.canonical = trace.canonical;
}

// options.md: 910 is chip 1.
std::string Checker::WhyUnsupported(const State& state) const {
  const NodeSupport& node = *request_.node;
  std::string why = options::WhyUnsupported(*state.option, node);
  if (!why.empty() || state.option->key != "aic_metrics" || state.canonical != "L2Cache") return why;
  for (size_t i = 0; i < node.chip_ids.size(); ++i) {
    if (node.chip_ids[i] != 1) continue;
    return fmt::format("not supported on {}: L2Cache events do not exist there", ChipName(node, i));
  }
  return "";
}

void Checker::CheckSupport() {
  if (request_.node == nullptr) return;
  for (State& state : states_) {
    bool by_default = state.canonical.empty() && !state.option->default_value.empty();
    if (!state.On() && !by_default) continue;
    std::string why = WhyUnsupported(state);
    if (why.empty()) continue;
    if (state.asked && !request_.best_effort) {
      Report(Problem::Kind::kUnsupported, state.option->key, state.asked_text,
             why + fmt::format("; omit it, or use best effort (allowed elsewhere: {})",
                               RangeText(*state.option)));
      continue;
    }
    if (state.asked) {
      result_.warnings.push_back(
          fmt::format("{} = {}: {}; it is off", state.option->key, Quoted(state.asked_text), why));
    }
    state.canonical = "off";
    state.note = why;
  }
}

void Checker::CheckTraining() {
  State& trace = At("task_trace");
  State& training = At("training_trace");
  if (!trace.asked) return;
  if (trace.canonical == "l1" && training.asked && training.canonical == "off" &&
      training.note.empty()) {
    Report(
        Problem::Kind::kConflict, "training_trace", training.asked_text,
        fmt::format("task_trace = {} needs training_trace on; set it to on, omit it, or use "
                    "task_trace off",
                    Quoted(trace.asked_text)));
  }
  if (trace.On() && !training.mentioned && training.note.empty()) {
    training.canonical = "on";
    training.note = "implied by task_trace";
  }
}

void Checker::CheckNeeds() {
  const auto needs = [this](std::string_view key, bool is_met, std::string_view what) {
    const State& state = At(key);
    if (state.asked && state.On() && !is_met) Report(Problem::Kind::kConflict, key, state.asked_text, what);
  };
  needs("llc_profiling", At("sys_hardware_mem_freq").mentioned || std::ranges::count(request_.collectors, "llc") > 0,
        "does nothing without sys_hardware_mem_freq (1..100 Hz) or the collector llc; set one of "
        "them, or omit llc_profiling");
  needs("host_sys_usage_freq", At("host_sys_usage").mentioned,
        "does nothing without host_sys_usage (cpu, mem, or both); set that too, or omit "
        "host_sys_usage_freq");
  needs("host_sys", request_.has_process,
        "needs a process (cpu and mem are measured for the job's own processes): name a job or a pid, or omit "
        "host_sys; host_sys_usage covers the complete system");
}

void Checker::CheckInstr() {
  State& instr = At("instr_profiling_freq");
  if (!instr.On()) return;
  for (std::string_view key : kExcludedByInstr) {
    State& other = At(key);
    if (other.On() && other.asked) {
      Report(
          Problem::Kind::kConflict, key, other.asked_text,
          fmt::format("cannot run beside instr_profiling_freq = {} (300..30000 cycles); omit one "
                      "of the two",
                      Quoted(instr.asked_text)));
    } else if (other.On() || (other.canonical.empty() && !other.option->default_value.empty())) {
      // By default or by the switches' defaults it would be on.
      other.canonical = "off";
      other.note = "off: instr_profiling_freq excludes it";
    }
  }
}

void Checker::CheckDeprecated() {
  for (State& state : states_) {
    if (!state.option->deprecated || !state.asked) continue;
    result_.warnings.push_back(fmt::format("{} = {}: {}; use task_trace or task_time instead",
                                           state.option->key, Quoted(state.asked_text),
                                           state.option->conflicts));
    if (state.note.empty()) state.note = state.option->conflicts;
  }
}

void Checker::CheckRegisters() {
  const State& metrics = At("aic_metrics");
  if (!NamesRegisters(metrics.option->key, metrics.canonical)) return;
  result_.warnings.push_back(fmt::format("{} = {}: is not recorded: {}", metrics.option->key, Quoted(metrics.asked_text), kNoRegisters));
}

Effective Checker::EffectiveOf(const State& state) const {
  const Option& option = *state.option;
  Effective out{.key = std::string(option.key),
                .value = state.canonical,
                .asked = Shown(state.asked_text),
                .note = state.note,
                .was_asked = state.asked,
                .by_switch = state.by_switch};
  if (out.value.empty() && !state.asked) out.value = option.default_value;
  if (out.value.empty() && HasOff(option.type)) out.value = "off";
  if (!HasOff(option.type) && out.value == "off" && !state.asked) out.value.clear();
  return out;
}

void Checker::FillEffective() {
  for (const State& state : states_) result_.options.effective.push_back(EffectiveOf(state));
  for (Effective& carried : carried_) result_.options.effective.push_back(std::move(carried));
}

}  // namespace

std::string WhyUnsupported(const Option& option, const NodeSupport& node) {
  if (auto lacking = node.lacking.find(option.key);
      lacking != node.lacking.end() && !lacking->second.empty()) {
    if (node.chip_names.empty()) return lacking->second;
    return fmt::format("not supported on {}: {}", fmt::join(node.chip_names, ", "), lacking->second);
  }
  if (option.key != "instr_profiling_freq") return "";
  // options.md: A2 is the 910B, chip 5.
  for (size_t i = 0; i < node.chip_ids.size(); ++i) {
    if (node.chip_ids[i] != 5) {
      return fmt::format("not supported on {}: Ascend910B (A2) only", ChipName(node, i));
    }
  }
  return "";
}

CheckResult Check(const CheckRequest& request) { return Checker(request).Run(); }

bool NamesRegisters(std::string_view key, std::string_view value) { return key == "aic_metrics" && value.starts_with("Custom:"); }

bool IsApplication(std::string_view key) {
  const Option* option = Find(key);
  return option != nullptr ? option->origin == Origin::kApplication : IsCarriedSwitch(key);
}

std::vector<std::string> AwaitedOptions(const OptionSet& set) {
  std::vector<std::string> result;
  for (const Effective& effective : set.effective) {
    const bool wanted = effective.was_asked || effective.by_switch;
    if (IsApplication(effective.key) && wanted && !effective.value.empty() && effective.value != "off") result.push_back(effective.key);
  }
  return result;
}

const Effective* OptionSet::Get(std::string_view key) const {
  auto found = std::ranges::find(effective, key, &Effective::key);
  return found == effective.end() ? nullptr : &*found;
}

const std::string& OptionSet::Text(std::string_view key) const {
  const Effective* found = Get(key);
  if (found == nullptr) return NoText();
  const Option* option = Find(key);
  bool off = found->value == "off" && (option == nullptr || HasOff(option->type));
  return off ? NoText() : found->value;
}

uint32_t OptionSet::Number(std::string_view key) const {
  const std::string& text = Text(key);
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool OptionSet::On(std::string_view key) const { return !Text(key).empty(); }

bool OptionSet::Asked(std::string_view key) const {
  const Effective* found = Get(key);
  return found != nullptr && found->was_asked;
}

bool OptionSet::ListHas(std::string_view key, std::string_view item) const {
  std::vector<std::string_view> items = SplitList(Text(key));
  return std::ranges::find(items, item) != items.end();
}

}  // namespace profd::options
