#include "daemon/session/aclprof_plan.h"

#include <algorithm>

namespace profd {
namespace {

// The vendor's acl_prof.h: dataTypeConfig, aclprofAicoreMetrics.
constexpr uint64_t kAicoreMetrics = 0x4;
constexpr uint64_t kCommunication = 0x20;
constexpr uint64_t kTaskTimeL0 = 0x800;
// With communication: the option `hccl` is deprecated, and operators' tasks govern its records (PROFILING_OPTIONS).
constexpr uint64_t kTaskTimeL1 = 0x802 | kCommunication;

struct OptionBits {
  std::string_view option;
  uint64_t bits;
};
constexpr OptionBits kOptionBits[] = {
    {"task_time", kTaskTimeL1}, {"task_trace", kTaskTimeL1},    {"training_trace", 0x40},
    {"hccl", kCommunication},   {"runtime_api", 0x100},         {"aicpu", 0x8},
    {"l2", 0x10},               {"aic_metrics", kAicoreMetrics}, {"msproftx", 0x80},
    {"ACL_PROF_ACL_API", 0x1},
};
struct MetricsName {
  std::string_view name;
  uint32_t metrics;
};
constexpr MetricsName kMetricsNames[] = {
    {"ArithmeticUtilization", 0}, {"PipeUtilization", 1},       {"Memory", 2},  {"MemoryL0", 3},
    {"ResourceConflictRatio", 4}, {"MemoryUB", 5},              {"L2Cache", 6},
};
constexpr uint32_t kNoMetrics = 0xFF;

uint64_t BitsOf(std::string_view option) {
  const auto* found = std::ranges::find(kOptionBits, option, &OptionBits::option);
  return found == std::end(kOptionBits) ? 0 : found->bits;
}

// Custom registers have no place in aclprof's interface.
uint32_t MetricsOf(std::string_view value) {
  const auto* found = std::ranges::find(kMetricsNames, value, &MetricsName::name);
  return found == std::end(kMetricsNames) ? kNoMetrics : found->metrics;
}

}  // namespace

bool NeedsAclprof(std::string_view option, std::string_view value) {
  if (option == "aic_metrics") return MetricsOf(value) != kNoMetrics;
  return value == "on" && (option == "aicpu" || option == "l2" || option == "training_trace");
}

std::optional<attach::AclprofRequest> AclprofRequestOf(const std::map<std::string, std::string>& options,
                                                   uint64_t storage_limit_mb) {
  attach::AclprofRequest request;
  for (const auto& [option, value] : options) {
    if (option == "aic_metrics") {
      request.metrics = MetricsOf(value);
      if (request.metrics != kNoMetrics) request.bits |= kAicoreMetrics;
    } else if (value != "off") {
      request.bits |= value == "l0" ? kTaskTimeL0 : BitsOf(option);
    }
  }
  if (request.bits == 0) return std::nullopt;
  if (storage_limit_mb > 0) request.config["storage_limit"] = std::to_string(storage_limit_mb) + "MB";
  return request;
}

bool Serves(const attach::AclprofRequest& request, std::string_view option) {
  // They name operators, which come with the tasks.
  if (option == "fp_point" || option == "bp_point") option = "task_time";
  uint64_t bits = BitsOf(option);
  if (bits == kTaskTimeL1) bits = kTaskTimeL0;
  return bits != 0 && (request.bits & bits) == bits;
}

}  // namespace profd
