// The small files that describe a dump to the vendor's analyser: info.json, sample.json,
// start_info, end_info, host_start.log, dev_start.log (dump-format 1.3-1.7, driver-abi 5.4, 5.5).
// Pure functions from plain structs to text. JSON is always one line: readers take the first line
// only, and a missing key makes whole exports fail.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "driver/abi/channel_format.h"

namespace profd {

// What the vendor calls the host's device id.
inline constexpr int kVendorHostId = 64;

struct HostCpu {
  int id = 0;
  std::string name;
  int logical_cpus = 0;
  std::string type;  // "ARMv8", "x86_64"
};

struct NetCard {
  std::string name;
  int64_t speed_mbps = 0;
};

// What is known of the node, once per daemon.
struct NodeFacts {
  std::string hostname = {};
  std::string os = {};       // "Linux-6.1.0-...": kernel and release
  std::string machine = {};  // "aarch64"
  std::string uptime = {};   // the line of /proc/uptime
  int64_t memory_total_kb = 0;
  int logical_cpus = 0;
  int cpu_cores = 0;
  int64_t clock_ticks_hz = 100;  // sysconf(_SC_CLK_TCK)
  std::vector<HostCpu> cpus = {};     // one per socket
  std::vector<NetCard> net_cards = {};
  // Of the counter behind host_start.log's cntvct, as the driver reports it; 0 = unknown, then
  // kHostCounter timestamps of the dump are ns.
  double host_counter_hz = 0;
  uint32_t hal_api_version = 0;  // 0xMMmmpp
  std::string cann_version = {};
  std::string profd_version = {};
  // platform_version of the host's own info.json: the chip of the node's NPUs. A node without any
  // gets the one with which the analyser exports every host channel.
  int chip_id = 5;
  // The clocks of that chip, for devices that report none (driver-abi 2.3); 0 = not known.
  double counter_hz = 0;
  int64_t aicore_mhz = 0;
  // The kernel does not report the speed of the cards; it is assumed.
  bool net_speed_assumed = false;
};

struct DeviceFacts {
  int id = 0;        // logical id: the N of device_N
  int chip_id = -1;  // platform_version; -1: not known, then the node's
  double counter_hz = 0;
  int64_t aicore_mhz = 0;
  int64_t aivector_mhz = 0;  // 0 = as aicore_mhz
  int ai_core_num = 0;
  int ai_vector_num = 0;
  int env_type = 0;
  std::vector<int> ctrl_cpus = {};  // ids
  std::vector<int> ai_cpus = {};
  int ts_cpu_num = 1;
  uint64_t ai_cpu_bitmap = 0;
};

// The clocks of host and device read together (driver-abi 5.5).
struct DumpClocks {
  int64_t host_ns = 0;  // CLOCK_MONOTONIC_RAW of the host
  uint64_t host_count = 0;
  int64_t device_ns = 0;  // CLOCK_MONOTONIC_RAW of the device; host_ns where the driver has none
  uint64_t device_count = 0;  // 0 where the driver has none
  int64_t uncertainty_ns = 0;  // width of the bracket the device was read in
  bool operator==(const DumpClocks&) const = default;
  // Did the driver report what such timestamps count?
  bool Has(abi::TimeKind kind) const {
    if (kind == abi::TimeKind::kDeviceMonotonicNs) return device_ns != host_ns;
    return kind != abi::TimeKind::kDeviceCounter || device_count != 0;
  }
};

// The options in force, as a vendor collector would have noted them. 0 and empty = off.
struct SampleOptions {
  int hardware_mem_hz = 0;
  int io_hz = 0;
  int interconnect_hz = 0;
  int dvpp_hz = 0;
  bool host_sys_cpu = false;            // host_sys: the job's own processes
  bool host_sys_mem = false;
  int host_sys_pid = -1;
  bool host_usage_cpu = false;  // host_sys_usage: the system and all processes
  bool host_usage_mem = false;
  int host_usage_hz = 0;
  bool host_disk = false;
  int host_disk_hz = 50;
  uint64_t storage_limit_mb = 0;
  int64_t duration_s = 0;
  // Of what was asked for, the part whose data come from inside the application, as carried out;
  // and everything that was asked for, as it was given. By the names of PROFILING_OPTIONS.
  std::map<std::string, std::string> application;
  std::map<std::string, std::string> asked;
  // What the collectors that run say of themselves, by key.
  std::map<std::string, std::variant<std::string, int64_t>> collectors;
  bool task_records = false;         // task tracks are in the dump: see InfoJson
};

// One session's order, as far as control files show it.
struct SessionFacts {
  std::string session_id;
  int pid = 0;  // the session's target, or the daemon's own
  std::string pid_name;
  std::string job_id;
  int rank = -1;
  std::string result_dir;  // where the dump lies
  std::vector<int> devices;
  SampleOptions options;
  int64_t start_wall_ns = 0;  // CLOCK_REALTIME and CLOCK_MONOTONIC_RAW of one and the same instant
  int64_t start_raw_ns = 0;
};

// info.json; null device = the host's.
//
// All keys of dump-format 1.4, but for one: on chip 5, `aiv_frequency` is left out of a dump that
// holds samples only. The analyser's native device stage needs it and gives up without it; with it,
// that stage and the Python parser both write AI Core frequencies to one table and every row appears
// twice (dump-format note D, trap 5). No other export reads the key, and the stage has nothing else
// to do in such a dump. With task records in the dump the stage is needed and the key is there.
std::string InfoJson(const NodeFacts& node, const SessionFacts& session,
                     const DeviceFacts* device_or_null);
// sample.json, all 136 keys; device kVendorHostId = the host's.
std::string SampleJson(const SessionFacts& session, int device);
// start_info, end_info.
std::string StartInfo(int64_t wall_ns, int64_t raw_ns);
std::string EndInfo(int64_t wall_ns, int64_t raw_ns);
// host_start.log; device kVendorHostId = "[Host]".
std::string HostStartLog(const DumpClocks& clocks, int device);
std::string DevStartLog(const DumpClocks& clocks);
// The .done beside a control file; and beside a data slice (with its two constant time lines).
std::string ControlDone(uint64_t bytes);
std::string SliceDone(uint64_t bytes);
// The size that a .done states, of the vendor's too; none: it states none, or is incomplete.
std::optional<uint64_t> SizeOfDone(std::string_view text);

// MHz as text: "50", "38.4"; empty for 0.
std::string MhzText(double hz);

// How CollectHostFacts reads the machine; injectable for tests.
struct HostFactSources {
  std::function<Result<std::string>(std::string_view path)> read;  // "/proc/meminfo" -> content
  std::function<std::vector<std::string>(std::string_view path)> list;  // names in a directory
  std::string machine;                                                  // as uname -m
  int64_t clock_ticks_hz = 100;                                         // sysconf(_SC_CLK_TCK)
};
// Files below `proc` and `sys` ("/proc", "/sys").
HostFactSources SystemFactSources(std::string proc, std::string sys);
// Never fails: what cannot be read stays at its default. The driver's part (host_counter_hz,
// versions) is the caller's.
NodeFacts CollectHostFacts(const HostFactSources& sources);

}  // namespace profd
