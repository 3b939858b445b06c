#include "sim/msprofiler/control_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>

#include "base/clock.h"
#include "sim/msprofiler/msprofiler.h"

namespace profd::sim::aclprof {
namespace {

struct MetricGroup {
  int metrics;
  std::string_view name, events;
  // Of the vector cores; empty: the same.
  std::string_view vector_name = {}, vector_events = {};
};
// Of a chip with separate cores, whose PipeUtilization is the extended one on the cube cores.
constexpr std::array<MetricGroup, 9> kGroups = {{
    {kArithmetic, "ArithmeticUtilization", "0x49,0x4a,0x4b,0x4c,0x4d,0x4e,0x4f"},
    {kPipe, "PipeUtilizationExct", "0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55", "PipeUtilization",
     "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55"},
    {kMemory, "Memory", "0x15,0x16,0x31,0x32,0xf,0x10,0x12,0x13"},
    {kMemoryL0, "MemoryL0", "0x1b,0x1c,0x21,0x22,0x27,0x28,0x29,0x2a"},
    {kResource, "ResourceConflictRatio", "0x64,0x65,0x66"},
    {kMemoryUb, "MemoryUB", "0x10,0x13,0x37,0x38,0x3d,0x3e,0x43,0x44"},
    {kL2Cache, "L2Cache", "0x500,0x502,0x504,0x506,0x508,0x50a"},
    {kPipeExecute, "PipelineExecuteUtilization", "0x12c,0x49,0x4a,0x9,0x302,0xc,0xd,0x303"},
    {kMemoryAccess, "MemoryAccess", "0x32,0x3d,0x3e,0x206,0x20c,0x50c,0x50d,0x50e"},
}};

const MetricGroup* GroupOf(int metrics) {
  const auto* found = std::ranges::find(kGroups, metrics, &MetricGroup::metrics);
  return found == kGroups.end() ? nullptr : found;
}

std::string Date(int64_t wall_ns) {
  const auto seconds = static_cast<time_t>(wall_ns / kNsPerSecond);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", fmt::localtime(seconds), wall_ns % kNsPerSecond / 1000);
}

std::string TimesJson(const std::string& date_begin, const std::string& date_end, const std::string& begin,
                      const std::string& end, int64_t raw_ns) {
  return fmt::format(
      R"({{"collectionDateBegin":"{}","collectionDateEnd":"{}","collectionTimeBegin":"{}","collectionTimeEnd":"{}","clockMonotonicRaw":"{}"}})",
      date_begin, date_end, begin, end, raw_ns);
}

const char* OnOff(bool on) { return on ? "on" : "off"; }

}  // namespace

int EventCount(int metrics) {
  const MetricGroup* const group = GroupOf(metrics);
  return group == nullptr ? 0 : static_cast<int>(std::ranges::count(group->events, ',')) + 1;
}

std::string InfoJson(const ControlFacts& facts) {
  const bool host = facts.device == kHostId;
  const std::string frequency = facts.host_mhz > 0 ? fmt::format("{:.6f}", facts.host_mhz) : "";
  const std::string device =
      host ? ""
           : fmt::format(
                 R"({{"id":{},"env_type":3,"ctrl_cpu_id":"ARMv8_Cortex_A55","ctrl_cpu_core_num":1,"ctrl_cpu_endian_little":1,)"
                 R"("ts_cpu_core_num":1,"ai_cpu_core_num":6,"ai_core_num":24,"ai_cpu_core_id":2,"ai_core_id":0,)"
                 R"("aicpu_occupy_bitmap":252,"ctrl_cpu":"0,1","ai_cpu":"2,3,4,5,6,7","aiv_num":48,)"
                 R"("hwts_frequency":"{:g}","aic_frequency":"{}","aiv_frequency":"{}"}})",
                 facts.device, kDeviceMhz, kAicoreMhz, kAicoreMhz);
  return fmt::format(
      R"({{"version":"1.0","jobInfo":"NA","OS":"Linux","hostname":"sim","hwtype":"","devices":"{}","platform":"",)"
      R"("platform_version":"5","pid":"{}","pid_name":"sim","upTime":"1.0 1.0","memoryTotal":1583221744,"cpuNums":192,)"
      R"("sysClockFreq":100,"cpuCores":4,"netCardNums":1,"rank_id":-1,"drvVersion":467732,"cannVersion":"sim",)"
      R"("CPU":[{{"Id":0,"Name":"sim","Frequency":"{}","Logical_CPU_Count":"192","Type":"TaishanV110"}}],)"
      R"("netCard":[{{"netCardName":"eth0","speed":10000}}],"DeviceInfo":[{}]}})",
      facts.device, ::getpid(), frequency, device);
}

std::string SampleJson(const ControlFacts& facts) {
  const MetricGroup* const group = (facts.bits & kAicoreMetrics) != 0 ? GroupOf(facts.metrics) : nullptr;
  const std::string_view metrics = group == nullptr ? "" : group->name;
  const std::string_view events = group == nullptr ? "" : group->events;
  const bool apart = group != nullptr && !group->vector_name.empty();
  const std::string_view vector_metrics = apart ? group->vector_name : metrics;
  const std::string_view vector_events = apart ? group->vector_events : events;
  const char* const level = (facts.bits & kTaskTime) != 0 ? "l1" : "l0";
  return fmt::format(
      R"({{"devices":"{}","result_dir":"{}","prof_level":"{}","taskTime":"{}","acl":"{}","runtimeApi":"{}","hcclTrace":"{}",)"
      R"("aicpuTrace":"{}","l2CacheTaskProfiling":"{}","l2CacheTaskProfilingEvents":"0xF6,0xFB,0xFC,0xBF,0x90,0x91,0x9C,0x9D",)"
      R"("ts_fw_training":"{}","msproftx":"{}","ai_core_profiling":"{}","ai_core_profiling_mode":"task-based",)"
      R"("ai_core_metrics":"{}","ai_core_profiling_events":"{}","aiv_profiling":"{}","aiv_profiling_mode":"task-based",)"
      R"("aiv_metrics":"{}","aiv_profiling_events":"{}","llc_profiling":"read","hbm_profiling_events":"read,write",)"
      R"("host_disk_freq":50,"profMode":"app"}})",
      facts.device, facts.folder, level, OnOff((facts.bits & kTaskTimeL0) != 0), OnOff((facts.bits & kAclApi) != 0),
      OnOff((facts.bits & kRuntimeApi) != 0), OnOff((facts.bits & kHccl) != 0), OnOff((facts.bits & kAicpu) != 0),
      OnOff((facts.bits & kL2) != 0), OnOff((facts.bits & kTrainingTrace) != 0), OnOff((facts.bits & kMsproftx) != 0),
      OnOff(group != nullptr), metrics, events, OnOff(group != nullptr), vector_metrics, vector_events);
}

std::string StartInfo(int64_t wall_ns, int64_t raw_ns) {
  return TimesJson(Date(wall_ns), "", std::to_string(wall_ns / 1000), "", raw_ns);
}
std::string EndInfo(int64_t wall_ns, int64_t raw_ns) {
  return TimesJson("", Date(wall_ns), "", std::to_string(wall_ns / 1000), raw_ns);
}

std::string HostStartLog(int device, int64_t raw_ns, uint64_t host_count) {
  const std::string section = device == kHostId ? "[Host]" : fmt::format("[Device{}]", device);
  return fmt::format("{}\nclock_monotonic_raw: {}\ncntvct: {}\ncntvct_diff: 0\n", section, raw_ns, host_count);
}
std::string DevStartLog(int64_t raw_ns, uint64_t device_count) {
  return fmt::format("clock_monotonic_raw: {}\ncntvct: {}\n", raw_ns, device_count);
}

}  // namespace profd::sim::aclprof
