// profd_manifest.json: what a dump holds, how it was made and what is missing, in our own words
// beside the vendor's files. Schema: docs/dumps.md. Written when the session starts, replaced
// atomically on demand and at the end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dump/control_files.h"
#include "dump/loss_reason.h"

namespace profd {

inline constexpr int kManifestVersion = 1;
inline constexpr std::string_view kManifestFile = "profd_manifest.json";
// The next one, until it is on the disk; a crash may leave it.
inline constexpr std::string_view kNextManifest = ".profd_manifest.json.next";
inline constexpr size_t kMaxManifestBytes = 32u << 20;
inline constexpr size_t kMaxManifestGaps = 1000;  // per channel; further ones are only counted

enum class DumpState : uint8_t { kRunning, kDone, kFailed, kInterrupted };
std::string_view ToString(DumpState state);

// Records lost between two points of a channel.
struct ManifestGap {
  int64_t host_ns = 0;        // CLOCK_MONOTONIC_RAW when the loss was noticed
  uint64_t lost_records = 0;  // 0 = unknown
  LossReason reason = LossReason::kUnknown;
  int64_t from_ns = 0;  // the last instant before it of which all is there; 0 = unknown
  bool operator==(const ManifestGap&) const = default;
};

struct ManifestLoss {
  LossReason reason = LossReason::kUnknown;
  uint64_t records = 0;
  uint64_t bytes = 0;
  int64_t from_ns = 0;  // all losses for this reason lie between these two; 0 = unknown
  int64_t to_ns = 0;
  bool operator==(const ManifestLoss&) const = default;
};

// A poll of a polled collector that did not take place.
inline bool IsNotRead(LossReason reason) { return reason == LossReason::kLate || reason == LossReason::kOverBudget; }

// Records that were received and lost on the way, as a session counts them: neither those that were there
// and were evicted, nor polls that did not take place.
inline bool IsDropped(const ManifestLoss& loss) {
  return loss.reason != LossReason::kAged && !IsNotRead(loss.reason);
}

// What a limit removed again: complete slices, the oldest first. Under `dropped` too, as "aged".
struct ManifestAged {
  uint64_t slices = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
  int64_t from_ns = 0;  // when the removed data had been recorded; 0 = unknown
  int64_t to_ns = 0;
  bool operator==(const ManifestAged&) const = default;
};

// What became of one collector on one device, channel by channel. Host collectors have device -1
// and channel 0.
struct ManifestChannel {
  std::string collector = {};
  int device = -1;
  uint32_t channel = 0;
  std::string file = {};    // base name in data/: "hbm.data"; empty without a file
  std::string state = {};   // "running", "finished", "unsupported", "denied", "busy", "failed"
  std::string detail = {};  // why, when it did not run
  double hz_asked = 0;
  double hz_effective = 0;  // 0 = event driven
  double channel_hz = 0;    // what the driver's channel ran at; above hz_effective when thinned
  uint64_t records = 0;  // in the dump: what was aged is not counted
  uint64_t bytes = 0;
  ManifestAged aged = {};
  std::vector<ManifestLoss> dropped = {};
  uint64_t garbage_bytes = 0;
  bool thinned = false;
  uint64_t thinned_records = 0;  // left out on purpose
  uint64_t readings = 0;  // of a polled collector: how often it read what it reads; 0 = unknown
  // What was read before `past_until_ns` is from the flight recorder, at its rate; 0 = nothing does.
  double past_hz = 0;
  int64_t past_until_ns = 0;
  bool rebased = false;
  int64_t rebase_us = 0;
  std::vector<ManifestGap> gaps = {};
  uint64_t gap_count = 0;  // including those beyond kMaxManifestGaps

  void AddGap(ManifestGap gap);
  // `host_ns`: when it was lost; 0 = unknown.
  void AddLoss(LossReason reason, uint64_t lost_records, uint64_t lost_bytes,
               int64_t host_ns = 0);
  // A slice recorded from `from_ns` to `to_ns` is gone: counts it in `aged`, `dropped` and `gaps`
  // (one gap, which grows). `records` and `bytes` are the caller's.
  void AddAged(uint64_t aged_records, uint64_t aged_bytes, int64_t from_ns, int64_t to_ns);
  bool operator==(const ManifestChannel&) const = default;
};

struct ManifestClock {
  int device = 0;
  std::string when = {};  // "start", "periodic", "stop"
  DumpClocks clocks = {};
  bool operator==(const ManifestClock&) const = default;
};

// What an NPU used from the session's start to its end. Not set = it was not read in that time.
struct ManifestUse {
  std::optional<double> energy_joules;
  std::optional<uint64_t> peak_memory_bytes;
  std::optional<double> mean_utilization_ratio;  // 0..1, of the AI Cores
  std::optional<uint64_t> ecc_corrected;
  std::optional<uint64_t> ecc_uncorrected;
  bool operator==(const ManifestUse&) const = default;
};

struct ManifestDevice {
  int id = 0;
  int physical_id = 0;
  std::string chip = {};
  int chip_id = -1;  // -1: not known
  std::string uuid = {};
  double counter_hz = 0;
  int64_t aicore_mhz = 0;
  int64_t joined_raw_ns = 0;  // it joined a session that was running; 0 = there from the start
  std::string local_cpus = {};  // of its NUMA node, as the kernel lists them ("0-31"); empty = not known
  std::optional<ManifestUse> use = {};
  bool operator==(const ManifestDevice&) const = default;
};

struct ManifestOption {
  std::string key;
  std::string value;  // as carried out; "off" or empty = not
  std::string asked;  // as asked for; empty = the default
  std::string note;   // its result where that is not plain, or why it was refused
  // Of an option of the application, once the session ended: its outcome (as Outcome of the contract has it), and why.
  std::string result = {};
  std::string detail = {};
  bool operator==(const ManifestOption&) const = default;
};

struct ManifestFile {
  std::string path = {};  // relative to the dump; a compressed slice's ends in .zst
  uint64_t bytes = 0;
  std::optional<uint64_t> records = {};  // of data files
  std::optional<uint32_t> crc32c = {};   // of the file as it is; absent = not computed
  // "closed", "compressed", "recovered" (ended by another daemon than the one that began it); "" = unknown
  std::string state = {};
  uint64_t raw_bytes = 0;  // of a compressed slice, before; and its check sum
  uint32_t raw_crc32c = 0;
  int64_t first_ns = 0;  // of a slice: between these its data were read; 0 = unknown
  int64_t last_ns = 0;
  int pid = 0;  // not 0: the vendor's profiler in this process wrote it
  bool operator==(const ManifestFile&) const = default;
};

// A training process the session acted on.
struct ManifestProcess {
  int pid = 0;
  std::optional<int> rank;
  bool attached = false;
  std::vector<int> devices;  // it uses
  std::string command;       // the program's name
  std::string cpus = {};     // that its first thread may run on, as the kernel lists them; empty = not known
  std::string launch_cpus = {};  // the same of the thread that launched most of its kernels
  // What collected inside it: the vendor's interface, its last state, why, its version; empty = nothing did.
  std::string provider = {};
  std::string collector_state = {};  // as ProcessCollector of the contract has it
  std::string collector_detail = {};
  std::string collector_version = {};
  uint64_t collector_cpu_ns = 0;  // CPU time that collecting took in it; 0 = not known
  int64_t joined_raw_ns = 0;      // it attached while the session ran; 0 = it was there from the start
  bool operator==(const ManifestProcess&) const = default;
};

// The files that the vendor's profiler left in a process, and where they are.
struct ManifestProcessFiles {
  int pid = 0;
  std::optional<int> rank = {};
  // "merged": among the dump's own. "beside": a PROF directory beside the dump's own. "apart": below host/profd/.
  std::string layout = {};
  std::string directory = {};  // a PROF directory's name, or a path below the dump's
  std::string state = {};      // "copying", "complete", "partial", "failed", "interrupted"
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t refused = 0;  // files and folders that are not in the dump
  uint64_t refused_bytes = 0;
  struct Example {
    std::string path;  // of the process's directory
    std::string why;
    bool operator==(const Example&) const = default;
  };
  std::vector<Example> examples = {};  // of those, and of files that stay apart
  std::string problem = {};
  bool operator==(const ManifestProcessFiles&) const = default;
};

struct Manifest {
  int version = kManifestVersion;
  std::string profd_version = {};
  std::string build = {};
  uint32_t hal_api_version = 0;
  std::string driver_version = {};
  std::string dcmi_version = {};

  DumpState state = DumpState::kRunning;
  std::string reason = {};  // why it ended
  // A session that continues after an interruption has one dump per segment, numbered from 1.
  int segment = 1;
  std::string continues = {};     // the dump before this one; empty = this is the first
  uint64_t limit_bytes = 0;  // what the dump may hold; 0 = no limit
  std::string limit_action = {};  // "age": the oldest slices go, "end": the session ends
  uint64_t aged_for_space = 0;  // of the channels' aged records, those that went as the volume was nearly full
  std::string session_id = {};
  uint32_t uid = 0;
  uint32_t gid = 0;
  int pid = 0;
  std::string job_id = {};
  std::optional<int> rank = {};
  std::string label = {};
  std::map<std::string, std::string> requested = {};  // collectors the request meant
  std::map<std::string, std::string> effective = {};  // collectors of the plan
  std::vector<ManifestOption> options = {};           // every option in force
  std::map<std::string, std::string> metadata = {};   // the caller's own
  std::vector<ManifestProcess> processes = {};
  uint32_t expected_ranks = 0;             // that the session is about; 0 = not known
  std::optional<int64_t> start_step = {};  // the step it was requested to start at
  uint32_t steps = 0;                 // and how many it was requested to last; 0 = not tied to steps
  uint32_t steps_done = 0;
  uint64_t marks = 0;  // of the processes, in marks.tsv
  uint64_t dropped_marks = 0;
  int64_t start_wall_ns = 0;
  int64_t start_raw_ns = 0;
  int64_t end_wall_ns = 0;  // 0 = not yet
  int64_t end_raw_ns = 0;
  int64_t stop_raw_ns = 0;  // when its channels were stopped; the slowest stop is over at the end

  std::string hostname = {};
  std::string os = {};
  std::string machine = {};
  double host_counter_hz = 0;
  std::vector<ManifestDevice> devices = {};
  std::vector<ManifestChannel> channels = {};
  std::vector<ManifestClock> clocks = {};
  std::vector<std::string> warnings = {};
  std::vector<ManifestProcessFiles> process_files = {};
  std::vector<ManifestFile> files = {};
  uint64_t data_bytes = 0;
  void AddWarning(std::string text);  // unless it is there
  // The driver's by its number, others (0) by their collector; null: there is none.
  ManifestChannel* FindChannel(int device, uint32_t channel, std::string_view collector);
  bool operator==(const Manifest&) const = default;
};

// What a manifest says of a device without a "start" pair.
std::string UnknownClocksText(int device);
// And of one whose "start" pair has no clock or no counter of it (DumpClocks::Has), as of drivers that do not have them.
std::string UnknownClockText(int device);
std::string UnknownCounterText(int device);
// Gives `device`, if it has later pairs only, the "start" pair that its first one leads to when both clocks are counted
// back to the start of the session, and says so in place of UnknownClocksText. False: it has one, has none at all, or its
// clocks began after the session.
bool CountClocksBack(int device, Manifest* manifest);

// Pretty-printed JSON, ending in a newline. Text that is not UTF-8 is repaired, not refused.
std::string Serialize(const Manifest& manifest);
// Unknown fields are ignored, missing ones keep their default; a wrong type, a version from the
// future or more than kMaxManifestBytes is an error.
Result<Manifest> ParseManifest(std::string_view text_untrusted);

}  // namespace profd
