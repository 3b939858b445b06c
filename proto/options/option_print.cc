#include <fmt/format.h>

#include "base/text.h"
#include "proto/options/option_value.h"
#include "proto/options/options.h"
#include "proto/options/presets.h"

namespace profd::options {
namespace {

constexpr size_t kWidth = 100;

void Comment(std::string* out, std::string_view text) {
  std::string line = "  //";
  for (std::string_view word; NextPart(&text, ' ', &word);) {
    if (line.size() + 1 + word.size() > kWidth) {
      *out += line + '\n';
      line = "  //";
    }
    line += fmt::format(" {}", word);
  }
  *out += line + '\n';
}

bool IsNumeric(const Option& option) {
  return option.type == Type::kFrequency || option.type == Type::kCycles;
}

// What is the same in every cell of a Markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string Code(std::string_view text) { return fmt::format("`{}`", text); }

std::string WithUnit(const Option& option) {
  if (!IsNumeric(option)) return RangeText(option);
  return fmt::format("{} {}", RangeText(option), option.unit);
}

constexpr std::string_view kIntroduction =
    R"(<!-- Printed by `print_options --doc` from proto/options/option_table.cc; do not edit. -->
# Profiling options

The vendor's options keep their names, ranges and meanings. One table and one validator stand behind
every way of giving them:

- `profctl start`, `run` and `check` flags: the key with dashes (`--sys-io-sampling-freq 50`);
- the `PROFILING_OPTIONS` JSON as it is: `--options-json TEXT|FILE|-`, or `--options-env` for the
  environment variable, or the field `options_json` of the contract;
- typed fields of `ProfilingOptions` (`proto/profd/v1/options.proto`);
- the `ACL_PROF_*` switches of PyTorch's profiler: `--acl NAME=VALUE`, or the field `acl_switches`.

`profctl options` lists them for the node's chips; `profctl check` validates a request without starting
anything.

)";

constexpr std::string_view kRules = R"(
## Rules

- Numbers are JSON numbers or strings of digits. A fraction is an error.
- Values are case-sensitive; blanks around them, and around the items of a list, are ignored.
- A key that is unknown or given twice in one JSON, a value of the wrong JSON type, a number out of
  range and an empty item of a list are errors. The JSON is one object of at most 64 KiB.
- The same option given in several ways must have the same value in all of them.
- All problems are reported at once, each with key, value, what is allowed and what to do; nothing
  starts (`profctl` exits with 3).
- A valid option that the chip does not support is a separate error ("not supported on Ascend910: ...").
  `--best-effort` turns these, and only these, into warnings: the option is then off.
- `task_trace` and `task_time` are two names of one switch: different values are an error; `on` is
  `l1`.
- An explicit `task_trace` turns `training_trace` on, unless that is given too; `training_trace=off`
  beside `task_trace=on` is an error.
- `hccl` is deprecated: accepted with a warning, `task_trace` decides.
- `aicpu` with any other value than on and off counts as off, with a warning.
- Where `storage_limit` has removed data, the vendor's analyser reads only the last slice of DVPP and
  RoCE (and of `host_disk`); `profctl` reads every slice.
- `llc_profiling` needs `sys_hardware_mem_freq` (or the collector `llc` requested by name),
  `host_sys_usage_freq` needs `host_sys_usage`, `host_sys` needs a process: a job or a pid.
- `instr_profiling_freq` cannot be combined with explicit `training_trace`, `task_trace`, `hccl`, `aicpu`,
  `fp_point`, `bp_point`, `aic_metrics`, `l2`, `task_time` and `runtime_api`; those that are on by
  default are then off.
- Rates become periods of `1000 / Hz` in integer milliseconds, at least the channel's minimum; the
  effective rate is in the answer and in the manifest.
- Options with the source `application` need an attached process that reports them; otherwise the
  session's outcome is `needs_process`.
- `output` is used by the client: `profctl run` fetches the dump into it as the calling user, and so does
  `profctl fetch` after `start`. A relative path is relative to the caller's working directory.

## ACL_PROF_* switches

Values are `on` and `off` (`True` and `False` are the same). Where one of them is given, the others have
these defaults, unless the option that they equal is given, and what they turn on is recorded as if it
had been requested, as far as the session can; without any of them the defaults of the options above
apply. `ACL_PROF_ACL_API` and `TORCH_CALL_STACK`, which equal no option, may also be keys of
`PROFILING_OPTIONS`, without these defaults.

)";

constexpr std::string_view kErrors = R"(
## Examples of errors

)";

std::string OptionRow(const Option& option) {
  std::string notes(option.conflicts);
  if (option.chips.empty()) {
    return fmt::format("| {} | {} | {} | {} | {} | {} | every chip | {} |\n", Code(option.key),
                       TypeName(option.type), Cell(WithUnit(option)), Cell(DefaultText(option)),
                       OriginName(option.origin), Cell(option.effect), Cell(notes));
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", Code(option.key),
                     TypeName(option.type), Cell(WithUnit(option)), Cell(DefaultText(option)),
                     OriginName(option.origin), Cell(option.effect), Cell(option.chips),
                     Cell(notes));
}

// As the validator words them, so that the document cannot lag behind.
std::string ErrorExamples() {
  CheckRequest request;
  CheckResult result;
  std::vector<Problem> problems;
  ParseJson(R"({"sys_io_sampling_freq": 0, "sys_io_sampling_freq": 5, "l2": true,
 "task_trace": "on", "training_trace": "off", "llc_profiling": "read",
 "aic_metrics": "Custom:0x49,,0x8", "sys_hardware_mem": 50})",
            &request.given, &problems);
  NodeSupport node{.chip_ids = {1}, .chip_names = {"Ascend910"}, .lacking = {}};
  request.given.push_back({.key = "instr_profiling_freq", .value = "1000"});
  request.given.push_back({.key = "storage_limit", .value = "199MB"});
  request.node = &node;
  result = Check(request);
  problems.insert(problems.end(), result.problems.begin(), result.problems.end());
  ParseJson("{\"l2\": \"on\",}", &request.given, &problems);
  std::string text = "```\n";
  for (const Problem& problem : problems) text += Describe(problem) + '\n';
  return text + "```\n";
}

}  // namespace

std::string OptionsProto() {
  std::string out =
      "// The vendor's profiling options as typed fields; printed from the option table\n"
      "// (proto/options/option_table.cc) by `print_options --proto`. An unset field was not "
      "requested.\n"
      "syntax = \"proto3\";\n\npackage profd.v1;\n\nmessage ProfilingOptions {\n";
  bool first = true;
  for (const Option& option : Table()) {
    if (!first) out += '\n';
    first = false;
    std::string effect(option.effect);
    effect[0] = ToUpper(effect[0]);
    Comment(&out, effect + ".");
    Comment(&out,
            fmt::format("Type: {}, from the {}. Values: {}. Default: {}.", TypeName(option.type),
                        OriginName(option.origin), WithUnit(option), DefaultText(option)));
    if (!option.conflicts.empty()) Comment(&out, fmt::format("Rules: {}.", option.conflicts));
    if (!option.chips.empty()) Comment(&out, fmt::format("Chips: {}.", option.chips));
    out += fmt::format("  optional {1} {0} = {2};\n", option.key,
                       IsNumeric(option) ? "uint32" : "string", option.field);
  }
  return out + "}\n";
}

std::string OptionsDocument() {
  std::string out(kIntroduction);
  out +=
      "| key | type | values | default | source | turns on | chips | rules |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Option& option : Table()) out += OptionRow(option);
  out +=
      "\n## Presets\n\n"
      "`--preset NAME` (`profctl start`, `run`, `check`) requests several options at once. Options given by "
      "name\noverride it; what the chip lacks is left out with a warning, as with "
      "`--best-effort`.\n\n"
      "| preset | for | options |\n|---|---|---|\n";
  for (const Preset& preset : Presets()) {
    std::string options;
    for (const auto& [key, value] : preset.options) {
      options += fmt::format("{}`{}={}`", options.empty() ? "" : ", ", key, value);
    }
    out += fmt::format("| {} | {} | {} |\n", Code(preset.name), preset.what, options);
  }
  out += kRules;
  out += "| switch | default | equals | what |\n|---|---|---|---|\n";
  for (const AclSwitch& known : AclSwitches()) {
    out += fmt::format("| {} | {} | {} | {} |\n", Code(known.name), known.default_value,
                       known.equals.empty() ? "" : Code(known.equals), known.effect);
  }
  out +=
      "\n## AI Core metric types (aiCoreMetricsType)\n\n"
      "| number | aic_metrics | columns |\n|---|---|---|\n";
  for (const MetricsType& type : MetricsTypes()) {
    out += fmt::format(
        "| {} | {} | {} |\n", type.number == 0xff ? "0xFF" : std::to_string(type.number),
        type.metrics == "none" ? "none: nothing is collected" : Code(type.metrics), type.columns);
  }
  out += kErrors;
  return out + ErrorExamples();
}

}  // namespace profd::options
