#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "proto/options/options.h"

namespace profd::options {
namespace {

// spec: options.md "Keys"; the ranges are the vendor's.
constexpr auto kTable = std::to_array<Option>({
    {.key = "output",
     .type = Type::kPath,
     .origin = Origin::kClient,
     .field = 1,
     .choices = "absolute path, or relative to the caller's working directory; none of "
                "\\n \\f \\r \\b \\t \\v U+007F",
     .effect = "where the caller gets the dump; created when missing",
     .conflicts =
         "wins over ASCEND_WORK_PATH (then $ASCEND_WORK_PATH/profiling_data); without both "
         "the dump stays below the daemon's dump root"},
    {.key = "storage_limit",
     .type = Type::kSize,
     .origin = Origin::kHost,
     .field = 2,
     .min = 200,
     .max = 4294967295u,
     .unit = "MB",
     .effect =
         "upper bound of the dump: where it is reached, or the volume nearly full, the oldest data go; "
         "the session ends cleanly where nothing may go, and on Ascend310",
     .conflicts = "unset = 90 % of the space free on the volume when the session starts; a bare "
                  "number is MB"},
    {.key = "training_trace",
     .type = Type::kSwitch,
     .origin = Origin::kApplication,
     .field = 3,
     .effect = "iteration trace: forward and backward, gradient aggregation",
     .conflicts =
         "becomes on when task_trace is requested and training_trace is not mentioned; off "
         "beside task_trace=on is an error"},
    {.key = "task_trace",
     .type = Type::kLevel,
     .origin = Origin::kApplication,
     .field = 4,
     .default_value = "l1",
     .effect = "l0: launch and execution time of operators; l1 (= on): plus operator information",
     .conflicts = "one switch with task_time, values must agree; on needs training_trace"},
    {.key = "task_time",
     .type = Type::kLevel,
     .origin = Origin::kApplication,
     .field = 5,
     .default_value = "l1",
     .effect = "l0: launch and execution time of operators; l1 (= on): plus operator information",
     .conflicts = "one switch with task_trace, values must agree"},
    {.key = "hccl",
     .type = Type::kSwitch,
     .origin = Origin::kApplication,
     .field = 6,
     .effect = "collective communication records",
     .conflicts = "deprecated: task_trace governs",
     .deprecated = true},
    {.key = "aicpu",
     .type = Type::kSwitch,
     .origin = Origin::kApplication,
     .field = 7,
     .effect = "AI CPU task detail: execution and data copy times",
     .conflicts = "any other value counts as off, with a warning"},
    {.key = "fp_point",
     .type = Type::kText,
     .origin = Origin::kApplication,
     .field = 8,
     .choices = "operator name, or empty = find automatically",
     .effect = "where forward starts: name of the first forward operator",
     .conflicts = "dynamic shapes need it set"},
    {.key = "bp_point",
     .type = Type::kText,
     .origin = Origin::kApplication,
     .field = 9,
     .choices = "operator name, or empty = find automatically",
     .effect = "where backward ends: name of the last backward operator",
     .conflicts = "dynamic shapes need it set"},
    {.key = "aic_metrics",
     .type = Type::kMetrics,
     .origin = Origin::kApplication,
     .field = 10,
     .min = 0x1,
     .max = 0x6e,
     .choices = "ArithmeticUtilization,PipeUtilization,Memory,MemoryL0,MemoryUB,"
                "ResourceConflictRatio,L2Cache",
     .default_value = "PipeUtilization",
     .effect = "AI Core and AI Vector PMU events",
     .conflicts = "ACL_PROF_AICORE_METRICS=off switches it off; aclprof has no custom registers",
     .chips = "L2Cache not on Ascend910; AI Vector on Ascend910B (A2) only"},
    {.key = "l2",
     .type = Type::kSwitch,
     .origin = Origin::kApplication,
     .field = 11,
     .effect = "L2 cache sampling; makes dumps large"},
    {.key = "msproftx",
     .type = Type::kSwitch,
     .origin = Origin::kApplication,
     .field = 12,
     .effect = "marks and ranges reported by user programs and frameworks"},
    {.key = "runtime_api",
     .type = Type::kSwitch,
     .origin = Origin::kApplication,
     .field = 13,
     .effect = "runtime API calls, including host-device and device-device copies"},
    {.key = "sys_hardware_mem_freq",
     .type = Type::kFrequency,
     .origin = Origin::kDevice,
     .field = 14,
     .min = 1,
     .max = 100,
     .unit = "Hz",
     .effect = "HBM, DDR, LLC, QoS, device, application and component memory, acc PMU, SoC "
               "bandwidth",
     .chips = "what the chip has of them"},
    {.key = "llc_profiling",
     .type = Type::kChoice,
     .origin = Origin::kDevice,
     .field = 15,
     .choices = "read,write",
     .default_value = "read",
     .effect = "which LLC events",
     .conflicts = "needs sys_hardware_mem_freq",
     .chips = "chips with an LLC channel"},
    {.key = "sys_io_sampling_freq",
     .type = Type::kFrequency,
     .origin = Origin::kDevice,
     .field = 16,
     .min = 1,
     .max = 100,
     .unit = "Hz",
     .effect = "NIC, RoCE",
     .chips = "chips with a NIC or RoCE channel"},
    {.key = "sys_interconnection_freq",
     .type = Type::kFrequency,
     .origin = Origin::kDevice,
     .field = 17,
     .min = 1,
     .max = 50,
     .unit = "Hz",
     .effect = "HCCS, PCIe, inter-die and inter-chip bandwidth",
     .chips = "what the chip has of them"},
    {.key = "dvpp_freq",
     .type = Type::kFrequency,
     .origin = Origin::kDevice,
     .field = 18,
     .min = 1,
     .max = 100,
     .unit = "Hz",
     .effect = "DVPP engines",
     .chips = "chips with DVPP channels"},
    {.key = "instr_profiling_freq",
     .type = Type::kCycles,
     .origin = Origin::kDevice,
     .field = 19,
     .min = 300,
     .max = 30000,
     .unit = "cycles",
     .effect = "AI Core and AI Vector bandwidth and latency",
     .conflicts = "excludes training_trace, task_trace, hccl, aicpu, fp_point, bp_point, "
                  "aic_metrics, l2, task_time, runtime_api",
     .chips = "Ascend910B (A2) only"},
    {.key = "host_sys",
     .type = Type::kList,
     .origin = Origin::kHost,
     .field = 20,
     .choices = "cpu,mem",
     .effect = "CPU and memory of the job's own processes",
     .conflicts = "needs a process: the job's registered one, or a pid"},
    {.key = "host_sys_usage",
     .type = Type::kList,
     .origin = Origin::kHost,
     .field = 21,
     .choices = "cpu,mem",
     .effect = "CPU and memory of the system and of all processes"},
    {.key = "host_sys_usage_freq",
     .type = Type::kFrequency,
     .origin = Origin::kHost,
     .field = 22,
     .min = 1,
     .max = 50,
     .default_value = "50",
     .unit = "Hz",
     .effect = "rate of host_sys_usage",
     .conflicts = "needs host_sys_usage"},
});

constexpr auto kSwitches = std::to_array<AclSwitch>({
    {"ACL_PROF_ACL_API", "on", "", "AscendCL API records, from the application"},
    {"ACL_PROF_TASK_TIME", "on", "task_time=l1", "execution time of AI Core operators"},
    {"ACL_PROF_AICORE_METRICS", "on", "aic_metrics",
     "aiCoreMetricsType counts only while this is on"},
    {"ACL_PROF_AICPU", "on", "aicpu=on", "begin and end of AI CPU tasks"},
    {"ACL_PROF_L2CACHE", "off", "l2=on", "L2 cache; makes dumps large"},
    {"ACL_PROF_HCCL_TRACE", "on", "hccl=on", "collective communication"},
    {"ACL_PROF_TRAINING_TRACE", "off", "training_trace=on", "iteration trace"},
    {"TORCH_CALL_STACK", "off", "", "ranges of a model's modules and sampled call stacks, by profd's Python package"},
    {"aiCoreMetricsType", "1", "aic_metrics", "0..5, or 0xFF for none: see the next table"},
});

constexpr auto kMetricsTypes = std::to_array<MetricsType>({
    {0, "ArithmeticUtilization",
     "mac_fp16_ratio mac_int8_ratio vec_fp32_ratio vec_fp16_ratio vec_int32_ratio vec_misc_ratio"},
    {1, "PipeUtilization",
     "vec_ratio mac_ratio scalar_ratio mte1_ratio mte2_ratio mte3_ratio icache_miss_rate"},
    {2, "Memory",
     "ub_read_bw ub_write_bw l1_read_bw l1_write_bw l2_read_bw l2_write_bw main_mem_read_bw "
     "main_mem_write_bw"},
    {3, "MemoryL0",
     "scalar_ld_ratio scalar_st_ratio l0a_read_bw l0a_write_bw l0b_read_bw l0b_write_bw "
     "l0c_read_bw l0c_write_bw"},
    {4, "ResourceConflictRatio",
     "vec_bankgroup_cflt_ratio vec_bank_cflt_ratio vec_resc_cflt_ratio mte1_iq_full_ratio "
     "mte2_iq_full_ratio mte3_iq_full_ratio cube_iq_full_ratio vec_iq_full_ratio iq_full_ratio"},
    {5, "MemoryUB", "ub_read_bw_vector ub_write_bw_vector ub_read_bw_scalar ub_write_bw_scalar"},
    {0xff, "none", ""},
});

std::string WithBlanks(std::string_view list) {
  std::string text;
  for (char c : list) {
    text += c;
    if (c == ',') text += ' ';
  }
  return text;
}

}  // namespace

std::span<const Option> Table() { return kTable; }
std::span<const AclSwitch> AclSwitches() { return kSwitches; }
std::span<const MetricsType> MetricsTypes() { return kMetricsTypes; }

const Option* Find(std::string_view key) {
  auto found = std::ranges::find(kTable, key, &Option::key);
  return found == kTable.end() ? nullptr : &*found;
}

bool IsCarriedSwitch(std::string_view name) {
  return std::ranges::any_of(kSwitches, [name](const AclSwitch& known) {
    return known.name == name && known.equals.empty();
  });
}

std::string RangeText(const Option& option) {
  switch (option.type) {
    case Type::kSwitch:
      return "on, off";
    case Type::kLevel:
      return "on (= l1), off, l0, l1";
    case Type::kFrequency:
    case Type::kCycles:
      return fmt::format("{}..{}", option.min, option.max);
    case Type::kSize:
      return fmt::format("<n>MB, n in {}..{}", option.min, option.max);
    case Type::kList:
      return WithBlanks(option.choices) + ", or both (cpu,mem)";
    case Type::kMetrics:
      return fmt::format("{}, or Custom: and 1..8 registers in 0x{:X}..0x{:X} (Custom:0x49,0x8)",
                         WithBlanks(option.choices), option.min, option.max);
    case Type::kChoice:
      return WithBlanks(option.choices);
    case Type::kText:
    case Type::kPath:
      return std::string(option.choices);
  }
  return "";
}

std::string_view TypeName(Type type) {
  constexpr std::array<std::string_view, 10> kNames = {"switch", "choice", "level", "frequency", "cycles",
                                                      "size", "list", "choice", "text", "path"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view OriginName(Origin origin) {
  constexpr std::array<std::string_view, 4> kNames = {"device", "host", "application", "client"};
  return kNames[static_cast<size_t>(origin)];
}

std::string DefaultText(const Option& option) {
  if (option.type == Type::kLevel) return "on (= l1)";
  if (!option.default_value.empty()) return std::string(option.default_value);
  switch (option.type) {
    case Type::kText:
      return "empty";
    case Type::kSize:
      return "unset";
    case Type::kPath:
      return "$ASCEND_WORK_PATH/profiling_data if set, else the daemon's dump root";
    default:
      return "off";
  }
}

}  // namespace profd::options
