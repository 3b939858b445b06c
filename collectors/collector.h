// The collector interface: what a collector receives, what it may use, what it returns.
// Adding one = its folder, one line in collector_list.h, its metrics in metric_table.h. Nothing in
// daemon/ knows any collector by name.
//
// Two kinds:
//  * channel collectors only describe (which driver channels, with which parameters at a given rate)
//    and decode complete records that the pump has already framed; the daemon owns the channels.
//  * polled collectors read /proc, /sys or DCMI when they are called, at absolute times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collectors/process_names.h"
#include "collectors/series.h"

namespace profd {

class RootedFs;     // driver/rooted_fs.h
class DcmiService;  // driver/dcmi_service.h
class HccnReader;   // driver/hccn_reader.h

enum class CollectorSource : uint8_t { kChannel, kDcmi, kHost };

// One NPU as found at start-up; immutable afterwards.
struct DeviceInfo {
  int id = 0;             // logical id: what the HAL calls take
  int physical_id = 0;    // what /dev/davinciN and the `npu` label show
  int chip_id = -1;       // driver-abi 2.3; -1: not known
  std::string chip_name = {};  // "Ascend910B"
  std::string uuid = {};       // VDIE, empty if unknown
  std::vector<uint32_t> channels = {};  // ids listed by prof_drv_get_channels
  double counter_hz = 0;           // system counter frequency
  int64_t aicore_mhz = 0;          // rated
  // Streams of memory traffic that the hardware distinguishes, by MPAM id as the driver lists them, and their names.
  std::vector<uint8_t> mpam_ids = {};
  std::vector<std::string> mpam_names = {};
  Status usable = {};  // why nothing can be read of it, as of one that was lost when profd started
};

// Items of a key of [metrics] that one collector reads (CollectorSpec::settings), by that key.
using CollectorSettings = std::map<std::string, std::vector<std::string>, std::less<>>;

// Everything a collector may touch. References outlive every collector.
struct Host {
  const Clock& clock;
  const RootedFs& proc;
  const RootedFs& sys;
  DcmiService* dcmi_or_null;  // null: no libdcmi
  std::span<const DeviceInfo> devices;
  double host_counter_hz;  // frequency of Clock::CpuCounter as the driver reports it; 0 if unknown
  HccnReader* hccn_or_null = nullptr;  // null: a node without it (tests)
  CollectorSettings settings = {};
  const ProcessNames* process_names_or_null = nullptr;
  std::string dcmi_error = {};  // why there is no dcmi_or_null
  // By logical id; null: there is none.
  const DeviceInfo* FindDevice(int id) const {
    const auto found = std::ranges::find(devices, id, &DeviceInfo::id);
    return found == devices.end() ? nullptr : &*found;
  }
};

// What an option means to a collector. Sessions share a channel: the rates of both are met by the
// faster one, numbers and choices of both must be the same.
enum class OptionUse : uint8_t {
  kRate,    // turns the collector on, at this rate
  kPart,    // turns a part of it on, which has a rate of its own
  kNumber,  // turns it on; the number is not a rate
  kChoice,  // turns nothing on: chooses how it measures
};

// One of the vendor's options that concern a collector.
struct CollectorOption {
  std::string_view key = {};  // "sys_hardware_mem_freq"; empty = none
  OptionUse use = OptionUse::kRate;
  // Of an option that is a list, the item that is meant ("cpu"); of a choice, the one that counts
  // as 1.
  std::string_view item = {};
  // Numbers and choices: what a session with this value does that keeps another session off the
  // channel.
  std::string (*busy)(double value) = nullptr;
};
inline constexpr size_t kCollectorOptions = 2;

// Where the records of one channel are of several types: the option (by place in
// CollectorSpec::options) whose rate a type has.
struct RecordPart {
  uint8_t type = 0;
  uint8_t option = 0;
  bool thin = true;  // false: the type's rate is not known, all of it is kept
};

struct CollectorSpec {
  std::string_view name;     // "hbm": folder, option, log key, label `collector`
  CollectorSource source;
  std::string_view summary;  // one line for `profctl collectors`
  // That turn it on and set its rate; none = by name only.
  std::array<CollectorOption, kCollectorOptions> options = {};
  // In a session that names the collector without a rate. 0: it has none, and is only collected
  // where a name or an option requests it.
  double default_hz = 0;
  double max_hz;             // a faster request is refused, not clamped
  double always_on_hz = 0;   // rate outside sessions, for /metrics; 0 = only in sessions
  // Polled collectors: its dump data are files in the vendor's layout, written through RawSink.
  // Without them a session keeps its samples in our own samples file.
  bool vendor_files = false;
  // Runs beside whatever an option turns on at the device: it costs nothing while nothing changes,
  // and explains the other numbers.
  bool with_device_options = false;
  bool overview = false;  // of what a live overview of the NPUs shows (profctl top)
  std::span<const RecordPart> record_parts = {};
  std::string_view settings = {};  // key of [metrics] with items that the collector reads
};

// ---------------------------------------------------------------------------------------------
// Channel collectors

// What one driver channel of one device must be started with.
struct ChannelRequest {
  uint32_t channel = 0;
  uint32_t sample_period_ms = 0;      // prof_start_para.sample_period
  bool task_scheduler_owned = false;  // PROF_TS_TYPE instead of PROF_PERIPHERAL_TYPE
  std::vector<std::byte> user_data = {};   // copied by the driver during the call
  double effective_hz = 0;            // after rounding to the driver's period; 0 = event driven
};

// What a session requests from a channel collector; made and merged by channel_options.h.
struct ChannelOptions {
  double hz = 0;  // asked for
  // By place in CollectorSpec::options: the rate of a part (0: off), the number (0: not given), or
  // whether the choice is the item.
  std::array<double, kCollectorOptions> values = {};
  // Host counter frequency as the driver reports it (Host::host_counter_hz); 0 if unknown. Decides
  // in which unit npu_mem requests the timestamps of channel 142, so it must be the TimeBase's.
  double host_counter_hz = 0;
};

// Converts a record's timestamp into the host's CLOCK_MONOTONIC_RAW ns (driver-abi 5.5).
struct TimeBase {
  int64_t host_ns = 0;            // H: host clock when the pair was taken
  int64_t device_ns = 0;          // D: device clock then
  uint64_t device_count = 0;      // C: device counter then
  double device_counter_hz = 0;   // F
  uint64_t host_count = 0;        // host counter at host_ns
  double host_counter_hz = 0;
  int64_t channel_start_ns = 0;   // host clock when the channel was started
  int64_t FromDeviceNs(int64_t ns) const { return ns + host_ns - device_ns; }
  int64_t FromDeviceCount(uint64_t count) const {
    if (device_counter_hz <= 0) return host_ns;
    auto cycles = static_cast<double>(static_cast<int64_t>(count - device_count));
    return host_ns + static_cast<int64_t>(cycles * 1e9 / device_counter_hz);
  }
  int64_t FromHostCount(uint64_t count) const {
    if (host_counter_hz <= 0) return static_cast<int64_t>(count);  // already ns
    auto cycles = static_cast<double>(static_cast<int64_t>(count - host_count));
    return host_ns + static_cast<int64_t>(cycles * 1e9 / host_counter_hz);
  }
  int64_t FromMicrosSinceStart(uint64_t us) const {
    return channel_start_ns + static_cast<int64_t>(us) * 1000;
  }
};

// What a decoder or a polled collector hands back; reused, so that steady state allocates nothing.
class SampleBatch {
 public:
  void Emit(SeriesId series, int64_t time_ns, double value) {
    if (series != kNoSeries) samples_.push_back({series, time_ns, value});
  }
  std::span<const Sample> samples() const { return samples_; }
  // Takes its memory with the first use: most channels of a node never run.
  void Clear() {
    samples_.clear();
    samples_.reserve(1024);
  }
  // Takes back all but the first `count`.
  void Cut(size_t count) {
    samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(count), samples_.end());
  }

 private:
  std::vector<Sample> samples_;
};

// Decodes the records of one channel of one device. Called on one thread at a time. Input is complete
// records or complete lines (framed by the pump), still untrusted: a record that makes no sense is
// counted in bad_records() and skipped. Rates of cumulative counters come from consecutive records.
class ChannelDecoder {
 public:
  virtual ~ChannelDecoder() = default;
  virtual void Decode(std::span<const std::byte> records_untrusted, const TimeBase& time,
                      SampleBatch& out) = 0;
  // The channel was restarted: forget previous counters.
  virtual void Reset() = 0;
  uint64_t records() const { return records_; }
  uint64_t bad_records() const { return bad_records_; }

 protected:
  uint64_t records_ = 0;
  uint64_t bad_records_ = 0;
};

// ---------------------------------------------------------------------------------------------
// Polled collectors

struct Tick {
  int64_t due_ns = 0;    // CLOCK_MONOTONIC_RAW instant of the grid
  int64_t now_ns = 0;    // CLOCK_MONOTONIC_RAW at the call
  uint64_t missed = 0;   // grid points skipped since the last tick because we were late
};

// Where a polled collector's raw text goes in a dump, in the vendor's layout. A null sink (always-on
// instances) swallows everything.
class RawSink {
 public:
  virtual ~RawSink() = default;
  // Appends complete lines to the host file `file` ("host_cpu.data", "4242-CpuUsage.data"); the dump
  // adds ".slice_<k>". Never blocks; what does not fit is counted by the sink.
  virtual void WriteHostFile(std::string_view file, std::string_view lines) = 0;
  // False: no subscriber keeps what is written, so work that only text records need may be skipped.
  virtual bool Wanted() const { return true; }
  // Where `bytes` bytes of complete lines for `file` may be put instead of calling WriteHostFile, all of
  // them and before the sink is used again. Null: not here, call WriteHostFile.
  virtual char* Reserve(std::string_view /*file*/, size_t /*bytes*/) { return nullptr; }
};

struct PollOutput {
  SampleBatch& samples;
  RawSink& raw;
};

// Which processes a polled collector looks at.
struct ProcessScope {
  bool all = false;              // every process of the node
  std::vector<int> pids;         // roots: these and their descendants
  std::string job_id;            // and those whose environment names this job
  uint32_t only_uid = UINT32_MAX;  // restrict to processes of this uid (UINT32_MAX = no restriction)
  bool empty() const { return !all && pids.empty() && job_id.empty(); }
};

struct PollOptions {
  double hz = 1;
  bool system = true;       // node-wide values
  ProcessScope processes;   // per-process values
};

// One instance per user (always-on or session); lives and is polled on one strand. After its
// destructor nothing of it runs.
class PolledCollector {
 public:
  virtual ~PolledCollector() = default;
  // An error is counted and shown; the next tick follows all the same.
  virtual Status Poll(const Tick& tick, PollOutput& out) = 0;
};

// ---------------------------------------------------------------------------------------------
// The table

// Keys of sample.json (dump-format 2) with strings or numbers.
using SampleFields = std::map<std::string, std::variant<std::string, int64_t>>;

// One collector. Null functions belong to the other kind.
struct CollectorEntry {
  const CollectorSpec* spec = nullptr;
  // Can it run here? Ok, or the reason why not (kUnimplemented: chip or kernel lacks it). No side
  // effects. For channel collectors: on this device, whose chip the reason does not name (ProbeDevice does).
  Status (*probe_device)(const Host&, const DeviceInfo&) = nullptr;
  Status (*probe_host)(const Host&) = nullptr;
  // Channel collectors: the channels to start on this device (only listed ones), ...
  std::vector<ChannelRequest> (*plan)(const DeviceInfo&, const ChannelOptions&) = nullptr;
  // ... and a decoder for one of them.
  std::unique_ptr<ChannelDecoder> (*make_decoder)(const DeviceInfo&, uint32_t channel, SeriesRegistry&) = nullptr;
  // Polled collectors.
  Result<std::unique_ptr<PolledCollector>> (*make_poller)(const Host&, const PollOptions&,
                                                          SeriesRegistry&) = nullptr;
  // Its part of sample.json for a session that runs it on these devices. Null: follows from its options.
  SampleFields (*sample)(const ChannelOptions&, std::span<const DeviceInfo* const>) = nullptr;
  // What is wrong with items of its settings, one text each.
  std::vector<std::string> (*check_settings)(std::span<const std::string> items) = nullptr;
};

// probe_device, with the chip in front of what it lacks: "not supported on Ascend910: no channel 133". What a device lacks
// that cannot be read is not known.
inline Status ProbeDevice(const CollectorEntry& entry, const Host& host, const DeviceInfo& device) {
  if (!device.usable.ok()) return device.usable;
  Status status = entry.probe_device(host, device);
  if (status.code() != StatusCode::kUnimplemented) return status;
  return status.Annotate("not supported on " + (device.chip_name.empty() ? "this chip" : device.chip_name));
}

// make_poller of one that needs no more than its constructor is given: the host, the options if it takes them, the registry.
template <class Collector>
Result<std::unique_ptr<PolledCollector>> MakePollerOf(const Host& host, const PollOptions& options, SeriesRegistry& registry) {
  if constexpr (std::is_constructible_v<Collector, const Host&, const PollOptions&, SeriesRegistry&>) {
    return std::unique_ptr<PolledCollector>(std::make_unique<Collector>(host, options, registry));
  } else {
    return std::unique_ptr<PolledCollector>(std::make_unique<Collector>(host, registry));
  }
}

// THE list, sorted by name.
std::span<const CollectorEntry> Collectors();
// What collectors find wrong with their settings: "metrics.KEY: \"item\": ...".
std::vector<std::string> CheckSettings(const CollectorSettings& settings);
// Null if there is none of that name.
const CollectorEntry* FindCollector(std::string_view name);

}  // namespace profd
