// The profiling options: THE table of keys, and the one validator behind all the ways an option can
// be given (typed field, PROFILING_OPTIONS JSON, ACL_PROF_* switch, profctl flag). Pure functions;
// strings are untrusted, every problem is reported at once, nothing is started or opened here. Source
// of the facts: the vendor's PROFILING_OPTIONS and ACL_PROF_* documentation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace profd::options {

enum class Type : uint8_t {
  kSwitch,     // on, off
  kChoice,     // one of `choices`
  kLevel,      // on, off, l0, l1
  kFrequency,  // integer min..max, Hz
  kCycles,     // integer min..max, device clock cycles
  kSize,       // "<n>MB", n in min..max
  kList,       // items of `choices`, comma-separated
  kMetrics,    // aic_metrics
  kText,       // operator name
  kPath,
};

// The source of what the option turns on.
enum class Origin : uint8_t { kDevice, kHost, kApplication, kClient };

struct Option {
  std::string_view key;  // "sys_io_sampling_freq"
  Type type;
  Origin origin;
  int field;  // number in v1.ProfilingOptions
  uint32_t min = 0;
  uint32_t max = 0;
  std::string_view choices = {};        // "read,write"
  std::string_view default_value = {};  // "" = off / unset
  std::string_view unit = {};
  std::string_view effect = {};     // what it turns on, one line
  std::string_view conflicts = {};  // what it needs or excludes, one line
  std::string_view chips = {};      // where it is not the same on every chip, one line
  bool deprecated = false;
};

// In the order of the documentation.
std::span<const Option> Table();
const Option* Find(std::string_view key);
// "1..100", "on, off", "read, write", ...
std::string RangeText(const Option& option);
// "switch", "choice", "frequency", ...
std::string_view TypeName(Type type);
// "device", "host", "application", "client"
std::string_view OriginName(Origin origin);
// How the default reads: "off", "PipeUtilization", "automatic", ...
std::string DefaultText(const Option& option);

enum class OptionSyntax : uint8_t { kField, kJson, kAclSwitch, kFlag };

// One option as it was given. `value` is the text of the value; numbers in decimal.
struct OptionInput {
  std::string key;
  std::string value;
  OptionSyntax via = OptionSyntax::kField;
  // Gives way to what was requested: the defaults of the switches.
  bool by_default = false;
};

// What the node can do, as far as options depend on it. Without one (`nullptr`) nothing is refused
// as unsupported: the check is about the options themselves.
struct NodeSupport {
  std::vector<int> chip_ids;            // driver-abi 2.3; of all devices concerned, no duplicates
  std::vector<std::string> chip_names;  // "Ascend910B", parallel to chip_ids
  // Can something of this option run on the node? Empty text = yes; otherwise why not ("this chip
  // has no NIC or RoCE channel"). Keyed by option; options that are missing here are supported.
  std::map<std::string, std::string, std::less<>> lacking;
};

// Why nothing of the option can be had on the node; empty = it can. (A single value of one that can may
// still be impossible, as L2Cache of aic_metrics.)
std::string WhyUnsupported(const Option& option, const NodeSupport& node);

struct Effective {
  std::string key;
  // Canonical: "l1" for task_time=on, "200MB", "50"; "off" for what can be off and is, "" for a
  // text, path or size that is not set.
  std::string value;
  std::string asked;       // as given; empty = default or implied
  std::string note;        // "implied by task_trace", "deprecated: task_trace governs"
  bool was_asked = false;  // asked for, be it with an empty text
  bool by_switch = false;  // on by a default of the switches, one of which was given: awaited, too
};

// The validated options. Lookup of a key that is not in the table is a programming error (empty).
class OptionSet {
 public:
  // Canonical value; "" when off or unset.
  const std::string& Text(std::string_view key) const;
  // A frequency, cycles or size in its unit; 0 when off.
  uint32_t Number(std::string_view key) const;
  bool On(std::string_view key) const;
  // Was it asked for explicitly (in any way)?
  bool Asked(std::string_view key) const;
  bool ListHas(std::string_view key, std::string_view item) const;
  // Every option of the table, in its order; behind them the switches that no option stands for (ACL_API,
  // TORCH_CALL_STACK), if they were given.
  std::vector<Effective> effective;

  const Effective* Get(std::string_view key) const;
};

struct CheckRequest {
  std::vector<OptionInput> given;
  const NodeSupport* node = nullptr;
  bool best_effort = false;  // kUnsupported becomes a warning and the option is off
  bool has_process = true;   // a job or pid is named (host_sys needs one)
  // A collector requested by name that makes an option do something without its frequency ("llc").
  std::vector<std::string> collectors;
};

struct CheckResult {
  OptionSet options;
  std::vector<Problem> problems;  // empty = valid
  std::vector<std::string> warnings;
  bool ok() const { return problems.empty(); }
};

CheckResult Check(const CheckRequest& request);

inline constexpr std::string_view kNeedsProcess = "needs an attached process that reports it";
// Registers of one's own for aic_metrics: right, and recorded in no session.
inline constexpr std::string_view kNoRegisters =
    "only aclprof measures it, whose interface has no custom registers; use a group of metrics, or run the job under "
    "msprof --aic-metrics=Custom:... and export its PROF directory";
bool NamesRegisters(std::string_view key, std::string_view value);
// From inside the application, be it an option or one of the switches that are none.
bool IsApplication(std::string_view key);
// Of the application's those that are on and were asked for, or are defaults of the switches, in the table's order.
std::vector<std::string> AwaitedOptions(const OptionSet& set);

// What is known of a chip without asking its driver, for checks without a node; nullopt for a name
// that is not a chip's. Takes "Ascend910B" and "910B".
std::optional<NodeSupport> SupportOfChip(std::string_view name);
// "Ascend910", "Ascend910B", ...
std::vector<std::string_view> ChipNames();

inline constexpr size_t kMaxJsonBytes = 64 * 1024;
// More problems of one text than this are only counted.
inline constexpr size_t kMaxProblems = 24;

// PROFILING_OPTIONS: one JSON object of at most kMaxJsonBytes. Appends what it holds; wrong syntax,
// types, duplicated or unknown keys are problems (with line and column for syntax).
void ParseJson(std::string_view text_untrusted, std::vector<OptionInput>* given,
               std::vector<Problem>* problems);

// ACL_PROF_* / TORCH_CALL_STACK / aiCoreMetricsType by name to options. Unknown names and values
// are problems. Only what is given counts: the defaults of the switches apply when `with_defaults`.
void FromAclSwitches(const std::map<std::string, std::string>& switches, bool with_defaults,
                     std::vector<OptionInput>* given, std::vector<Problem>* problems,
                     std::vector<std::string>* warnings);

// Names of the switches, for help texts.
struct AclSwitch {
  std::string_view name;
  std::string_view default_value;
  std::string_view equals;  // "task_time=l1"
  std::string_view effect;
};
std::span<const AclSwitch> AclSwitches();
// The two switches no option stands for: their value is carried as an option of their name.
bool IsCarriedSwitch(std::string_view name);

// aiCoreMetricsType: what each number means and the columns it yields.
struct MetricsType {
  uint32_t number;
  std::string_view metrics;  // value of aic_metrics; "none" for 0xFF
  std::string_view columns;  // blank-separated
};
std::span<const MetricsType> MetricsTypes();

// Printed from the table.
std::string OptionsProto();     // proto/profd/v1/options.proto
std::string OptionsDocument();  // docs/options.md

}  // namespace profd::options
