#include "dump/control_files.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using Json = nlohmann::ordered_json;

// One line, and valid UTF-8 whatever the node or the caller called things.
std::string OneLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json DeviceInfoJson(const DeviceFacts& device, bool task_records) {
  const int64_t aivector = device.aivector_mhz > 0 ? device.aivector_mhz : device.aicore_mhz;
  Json info;
  info["id"] = device.id;
  info["env_type"] = device.env_type;
  info["ctrl_cpu_id"] = "";
  info["ctrl_cpu_core_num"] = device.ctrl_cpus.size();
  info["ctrl_cpu_endian_little"] = 1;
  info["ts_cpu_core_num"] = device.ts_cpu_num;
  info["ai_cpu_core_num"] = device.ai_cpus.size();
  info["ai_core_num"] = device.ai_core_num;
  info["ai_cpu_core_id"] = device.ai_cpus.empty() ? 0 : device.ai_cpus.front();
  info["ai_core_id"] = 0;
  info["aicpu_occupy_bitmap"] = device.ai_cpu_bitmap;
  info["ctrl_cpu"] = fmt::format("{}", fmt::join(device.ctrl_cpus, ","));
  info["ai_cpu"] = fmt::format("{}", fmt::join(device.ai_cpus, ","));
  info["aiv_num"] = device.ai_vector_num;
  info["hwts_frequency"] = MhzText(device.counter_hz);
  info["aic_frequency"] = fmt::format("{}", device.aicore_mhz);
  // See InfoJson in the header for the one key that may be absent.
  if (device.chip_id != static_cast<int>(abi::kChip910B) || task_records) {
    info["aiv_frequency"] = fmt::format("{}", aivector);
  }
  return info;
}

// Without a chip it knows the analyser exports nothing, and without the clocks nothing of the other devices
// either (dump-format 1.4). A device that is lost reports none of them.
DeviceFacts OfNodesChip(DeviceFacts device, const NodeFacts& node) {
  device.chip_id = node.chip_id;
  if (device.counter_hz <= 0) device.counter_hz = node.counter_hz;
  if (device.aicore_mhz <= 0) device.aicore_mhz = node.aicore_mhz;
  return device;
}

Json CpuJson(const NodeFacts& node) {
  std::vector<HostCpu> cpus = node.cpus;
  if (cpus.empty()) cpus.push_back({0, node.machine, node.logical_cpus, node.machine});
  Json list = Json::array();
  for (const HostCpu& cpu : cpus) {
    Json one;
    one["Id"] = cpu.id;
    one["Name"] = cpu.name;
    one["Frequency"] = MhzText(node.host_counter_hz);
    one["Logical_CPU_Count"] = fmt::format("{}", cpu.logical_cpus);
    one["Type"] = cpu.type;
    list.push_back(std::move(one));
  }
  return list;
}

// What the vendor's collector writes when nothing is switched on; the order is its own
// (driver-abi 5.4). Strings and numbers are of the types it uses, defaults are its defaults.
constexpr const char* kSampleDefaults = R"({
"dvpp_sampling_interval":20,"aicore_sampling_interval":10,"acl":"","runtimeApi":"off",
"aicpuTrace":"","runtimeTrace":"","hcclTrace":"","msprof":"off","msproftx":"off",
"mstxDomainInclude":"","mstxDomainExclude":"","taskTrace":"off","taskTime":"off","aicoreShape":"",
"taskMemory":"off","prof_level":"off","profLevel":"off","geApi":"off","job_id":"","app":"","ts_task_track":"",
"ts_task_time":"","ts_cpu_usage":"","ts_timeline":"","ts_memcpy":"","ts_keypoint":"",
"ai_vector_status":"","taskTsfw":"off","ts_fw_training":"","hwts_log":"","hwts_log1":"",
"l2CacheTaskProfiling":"","l2CacheTaskProfilingEvents":"","hccsProfiling":"off","hccsInterval":20,
"pcieProfiling":"off","pcieInterval":20,"ubProfiling":"off","ubInterval":20,"roceInterval":10,
"nicInterval":10,"llc_profiling":"read","msprof_llc_profiling":"off","llc_profiling_events":"",
"llc_interval":20,"pcSampling":"off","instrProfiling":"off","instrProfilingFreq":1000,
"memProfiling":"off","memInterval":20,"appMemProfiling":"on","ddr_profiling":"off",
"ddr_profiling_events":"","ddr_interval":20,"ddr_master_id":0,"hbmProfiling":"off",
"hbm_profiling_events":"read,write","hbmInterval":20,"profiling_period":-1,"host_sys":"",
"host_sys_pid":-1,"host_disk_profiling":"off","host_osrt_profiling":"off",
"host_numa_profiling":"off","host_platform_profiling":"off","host_disk_freq":50,"stars_acsq_task":"","taskBlock":"",
"taskBlockShink":"","sysLp":"off","sysLpFreq":10000,"aicScale":"all","ccuInstr":"off",
"msprofBinPid":0,"delayTime":"","durationTime":"","profMode":"","qosProfiling":"off",
"qosEvents":"","hostSysUsage":"","hostProfilingSamplingInterval":20,
"hostAllPidCpuProfiling":"off","hostAllPidMemProfiling":"off","result_dir":"","storageLimit":"",
"profiling_mode":"def_mode","devices":"","ai_ctrl_cpu_profiling_events":"",
"ts_cpu_profiling_events":"","app_dir":"","app_parameters":"","app_location":"","app_env":"",
"ai_core_profiling":"off","ai_core_profiling_mode":"task-based","ai_core_profiling_events":"",
"ai_core_metrics":"","ai_core_status":"","ai_core_lpm":"off","aiv_profiling":"off",
"aiv_sampling_interval":10,"aiv_profiling_events":"","aiv_metrics":"",
"aiv_profiling_mode":"task-based","isCancel":false,"profiling_options":"","jobInfo":"",
"npuEvents":"","ntsMetrics":"","ntsPmuEvents":"","cpu_profiling":"off","hscb":"off",
"aiCtrlCpuProfiling":"off","tsCpuProfiling":"off","cpu_sampling_interval":20,
"sys_profiling":"off","sys_sampling_interval":100,"pid_profiling":"off",
"pid_sampling_interval":100,"hardware_mem":"off","hardware_mem_sampling_interval":20000,
"memServiceflow":"","io_profiling":"off","io_sampling_interval":10,
"interconnection_profiling":"off","interconnection_sampling_interval":20,"dvpp_profiling":"off",
"ai_core_profiling_metrics":"","aiv_profiling_metrics":"","ts_cpu_hot_function":"",
"nicProfiling":"off","roceProfiling":"off","hostProfiling":false,"host_cpu_profiling":"off",
"host_mem_profiling":"off","host_network_profiling":"off","pureCpu":"off"})";

int IntervalMs(int hz) { return 1000 / std::clamp(hz, 1, 1000); }

void SetHardwareMemory(Json& json, const SampleOptions& options) {
  if (options.hardware_mem_hz <= 0) return;
  // The vendor keeps this one in us; its channels never run faster than every 10 ms
  // (driver-abi 4.1).
  const int us = 1'000'000 / options.hardware_mem_hz;
  const int ms = us > 10'000 ? us / 1000 : 10;
  json["hardware_mem"] = "on";
  json["hardware_mem_sampling_interval"] = us;
  json["msprof_llc_profiling"] = "on";
  json["llc_profiling_events"] = json["llc_profiling"];
  json["memProfiling"] = "on";
  json["ddr_profiling"] = "on";
  json["ddr_profiling_events"] = "read,write";
  json["hbmProfiling"] = "on";
  for (const char* key : {"llc_interval", "ddr_interval", "hbmInterval", "memInterval"}) {
    json[key] = ms;
  }
  if (!json["qosEvents"].get_ref<const std::string&>().empty()) json["qosProfiling"] = "on";
}

void SetLinks(Json& json, const SampleOptions& options) {
  if (options.io_hz > 0) {
    for (const char* key : {"io_profiling", "nicProfiling", "roceProfiling"}) json[key] = "on";
    for (const char* key : {"io_sampling_interval", "nicInterval", "roceInterval"}) {
      json[key] = IntervalMs(options.io_hz);
    }
  }
  if (options.interconnect_hz > 0) {
    for (const char* key : {"interconnection_profiling", "hccsProfiling", "pcieProfiling"}) {
      json[key] = "on";
    }
    for (const char* key : {"interconnection_sampling_interval", "hccsInterval", "pcieInterval"}) {
      json[key] = IntervalMs(options.interconnect_hz);
    }
  }
  if (options.dvpp_hz > 0) {
    json["dvpp_profiling"] = "on";
    json["dvpp_sampling_interval"] = IntervalMs(options.dvpp_hz);
  }
}

std::string CpuMem(bool cpu, bool mem) {
  if (cpu && mem) return "cpu,mem";
  return cpu ? "cpu" : mem ? "mem" : "";
}

void SetHost(Json& json, const SampleOptions& options) {
  json["host_sys"] = CpuMem(options.host_sys_cpu, options.host_sys_mem);
  json["host_sys_pid"] = options.host_sys_pid;
  json["hostSysUsage"] = CpuMem(options.host_usage_cpu, options.host_usage_mem);
  if (options.host_usage_hz > 0) {
    json["hostProfilingSamplingInterval"] = IntervalMs(options.host_usage_hz);
  }
  if (options.host_sys_cpu) json["host_cpu_profiling"] = "on";
  if (options.host_sys_mem) json["host_mem_profiling"] = "on";
  if (options.host_usage_cpu) json["hostAllPidCpuProfiling"] = "on";
  if (options.host_usage_mem) json["hostAllPidMemProfiling"] = "on";
  if (options.host_disk) json["host_disk_profiling"] = "on";
  json["host_disk_freq"] = options.host_disk_hz > 0 ? options.host_disk_hz : 50;
  json["hostProfiling"] = options.host_sys_cpu || options.host_sys_mem || options.host_usage_cpu ||
                          options.host_usage_mem || options.host_disk ||
                          json["host_network_profiling"] == "on";
}

struct SampleKey {
  std::string_view option;
  std::string_view key;
};
// What the vendor's collector switches on for an option of the application (driver-abi 4.2).
constexpr auto kApplicationKeys = std::to_array<SampleKey>({
    {"task_trace", "taskTrace"},
    {"task_time", "taskTime"},
    {"training_trace", "ts_fw_training"},
    {"training_trace", "ts_keypoint"},
    {"hccl", "hcclTrace"},
    {"aicpu", "aicpuTrace"},
    {"aic_metrics", "ai_core_profiling"},
    {"l2", "l2CacheTaskProfiling"},
    {"msproftx", "msproftx"},
    {"runtime_api", "runtimeApi"},
    {"ACL_PROF_ACL_API", "acl"},
});

void SetApplication(Json& json, const SampleOptions& options) {
  for (const SampleKey& known : kApplicationKeys) {
    if (options.application.contains(std::string(known.option))) {
      json[std::string(known.key)] = "on";
    }
  }
  auto value = [&options](const char* key) {
    auto found = options.application.find(key);
    return found == options.application.end() ? std::string() : found->second;
  };
  // Two names of one switch.
  const std::string level = value("task_time").empty() ? value("task_trace") : value("task_time");
  if (!level.empty()) {
    json["taskTrace"] = json["taskTime"] = "on";
    // Readers take profLevel first (dump-format 1.5). Of a session that records no tasks it is "off", as the option.
    json["prof_level"] = json["profLevel"] = level;
  }
  json["ai_core_metrics"] = value("aic_metrics");
  if (!options.asked.empty()) json["profiling_options"] = 
        Json(options.asked).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "2026-01-01 08:00:00.000000", local time.
std::string DateText(int64_t wall_ns) {
  const tm local = fmt::localtime(static_cast<time_t>(wall_ns / kNsPerSecond));
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", local, wall_ns / 1000 % 1'000'000);
}

std::string TimeInfo(int64_t wall_ns, int64_t raw_ns, bool begin) {
  const std::string date = DateText(wall_ns);
  const std::string micros = fmt::format("{}", wall_ns / 1000);
  Json json;
  json["collectionDateBegin"] = begin ? date : "";
  json["collectionDateEnd"] = begin ? "" : date;
  json["collectionTimeBegin"] = begin ? micros : "";
  json["collectionTimeEnd"] = begin ? "" : micros;
  json["clockMonotonicRaw"] = fmt::format("{}", raw_ns);
  return OneLine(json);
}

}  // namespace

std::string MhzText(double hz) {
  if (!(hz > 0)) return {};
  std::string text = fmt::format("{:.6f}", hz / 1e6);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string InfoJson(const NodeFacts& node, const SessionFacts& session,
                     const DeviceFacts* device_or_null) {
  const DeviceFacts* device = device_or_null;
  DeviceFacts assumed;
  if (device != nullptr && device->chip_id < 0) {
    assumed = OfNodesChip(*device, node);
    device = &assumed;
  }
  Json json;
  json["jobInfo"] = session.job_id;
  json["version"] = "1.0";
  json["OS"] = node.os;
  json["hostname"] = node.hostname;
  json["hwtype"] = node.machine;
  json["devices"] = fmt::format("{}", device ? device->id : kVendorHostId);
  json["platform"] = "";
  json["platform_version"] = fmt::format("{}", device ? device->chip_id : node.chip_id);
  json["pid"] = fmt::format("{}", session.pid);
  json["pid_name"] = session.pid_name;
  json["upTime"] = node.uptime;
  json["memoryTotal"] = node.memory_total_kb;
  json["cpuNums"] = node.logical_cpus;
  json["sysClockFreq"] = node.clock_ticks_hz;
  json["cpuCores"] = node.cpu_cores;
  json["netCardNums"] = node.net_cards.size();
  json["rank_id"] = session.rank;
  json["drvVersion"] = node.hal_api_version;
  json["cannVersion"] = node.cann_version;
  json["CPU"] = CpuJson(node);
  Json cards = Json::array();
  for (const NetCard& card : node.net_cards) {
    Json one;
    one["netCardName"] = card.name;
    one["speed"] = card.speed_mbps;
    cards.push_back(std::move(one));
  }
  json["netCard"] = std::move(cards);
  json["DeviceInfo"] = Json::array();
  if (device) {
    json["DeviceInfo"].push_back(DeviceInfoJson(*device, session.options.task_records));
  }
  return OneLine(json);
}

std::string SampleJson(const SessionFacts& session, int device) {
  const SampleOptions& options = session.options;
  Json json = Json::parse(kSampleDefaults, nullptr, false);
  json["devices"] = fmt::format("{}", device);
  json["job_id"] = session.session_id;
  json["jobInfo"] = session.job_id;
  json["result_dir"] = session.result_dir;
  json["msprofBinPid"] = session.pid;
  if (options.storage_limit_mb > 0) {
    json["storageLimit"] = fmt::format("{}MB", options.storage_limit_mb);
  }
  if (options.duration_s > 0) json["durationTime"] = fmt::format("{}", options.duration_s);
  for (const auto& [key, field] : options.collectors) {
    std::visit([&json, &name = key](const auto& value) { json[name] = value; }, field);
  }
  SetHardwareMemory(json, options);
  SetLinks(json, options);
  SetHost(json, options);
  SetApplication(json, options);
  return OneLine(json);
}

std::string StartInfo(int64_t wall_ns, int64_t raw_ns) { return TimeInfo(wall_ns, raw_ns, true); }
std::string EndInfo(int64_t wall_ns, int64_t raw_ns) { return TimeInfo(wall_ns, raw_ns, false); }

std::string HostStartLog(const DumpClocks& clocks, int device) {
  std::string section = device == kVendorHostId ? "[Host]" : fmt::format("[Device{}]", device);
  return fmt::format("{}\nclock_monotonic_raw: {}\ncntvct: {}\ncntvct_diff: 0\n", section,
                     clocks.host_ns, clocks.host_count);
}

std::string DevStartLog(const DumpClocks& clocks) {
  return fmt::format("clock_monotonic_raw: {}\ncntvct: {}\n", clocks.device_ns,
                     clocks.device_count);
}

std::string ControlDone(uint64_t bytes) { return fmt::format("filesize:{}\n", bytes); }

std::string SliceDone(uint64_t bytes) {
  return fmt::format("filesize:{}\nstarttime:0\nendtime  :0\n", bytes);
}

std::optional<uint64_t> SizeOfDone(std::string_view text) {
  constexpr std::string_view kSize = "filesize:";
  uint64_t bytes = 0;
  if (!text.starts_with(kSize) || !text.ends_with('\n')) return std::nullopt;
  if (!ParseNumber(Trim(text.substr(kSize.size(), text.find('\n') - kSize.size())), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace profd
