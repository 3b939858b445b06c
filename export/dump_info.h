// What a PROF directory contains about itself, ours or the vendor's collector's: control files, manifest,
// and which data files there are. Everything in it is untrusted; what is missing or broken becomes a
// problem with the file's name, and the rest is used.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/manifest.h"
#include "dump/reader.h"
#include "export/activity_names.h"
#include "export/clock_map.h"

namespace profd::exporting {

// What a framework's own profiler leaves, in a dump or beside it (operators/framework.h).
inline constexpr std::string_view kFrameworkFolder = "FRAMEWORK";
inline constexpr std::string_view kFrameworkInfo = "profiler_info";  // .json, or _<rank>.json

// One logical data file: `hbm.data` of device 0 with all its slices.
struct DataFile {
  std::string base;  // "hbm.data", "4242-CpuUsage.data", "marks.tsv"
  struct Slice {
    std::string path;  // below the dump
    uint64_t bytes = 0;
    uint64_t number = 0;
    bool compressed = false;  // `.zst`
    uint64_t missing = 0;     // bytes that were written behind these
  };
  std::vector<Slice> slices;  // by number
  uint64_t bytes = 0;
};

// host/, device_<N>/ or our own folder in host/.
struct Place {
  enum class Kind : uint8_t { kHost, kDevice, kOwn };
  Kind kind = Kind::kHost;
  int device = -1;
  std::string dir;
  int chip = -1;  // platform_version; -1 = unknown
  std::string record_version;  // info.json version: "2.0" has other HBM, LLC and npu_mem records
  ClockFacts clock;
  bool has_cpu = false;  // info.json CPU; without a Frequency `clock.host_hz` is 0, which is a value
  bool has_sample = false;  // sample.json
  int64_t aicore_mhz = 0;
  int64_t ai_cores = 0;   // cube cores, or all
  int64_t aiv_cores = 0;  // vector cores
  std::vector<int> ctrl_cpus;
  std::vector<int> ai_cpus;
  std::string llc_mode = "read";  // sample.json llc_profiling
  std::vector<std::string> qos_events;
  // Read during the session, by time; none without a manifest.
  std::vector<DumpClocks> clock_pairs;
  double host_disk_hz = 0;
  std::string aicore_mode;     // "task-based", "sample-based"; empty as the first
  std::string aiv_mode;        // of aiVectorCore.data; empty: as aicore_mode
  std::string aicore_metrics;  // metric group
  std::vector<uint32_t> aicore_events;
  std::string aiv_metrics;
  std::vector<uint32_t> aiv_events;
  std::vector<uint32_t> l2_events;  // l2CacheTaskProfilingEvents
  std::string prof_level;  // "l0", "l1", ...; of operator-level data
  std::vector<DataFile> files;
};

struct DumpInfo {
  std::string path;  // as given
  std::string name;  // PROF_...
  std::optional<Manifest> manifest;  // absent: the vendor's collector wrote it, or it cannot be read
  std::string hostname;
  int64_t pid = 0;
  std::string job_id;
  std::optional<int> rank;
  int chip = -1;
  int64_t memory_total_kb = 0;
  int64_t cpu_count = 0;
  int64_t clock_ticks_hz = 100;
  struct Card {
    std::string name;
    int64_t speed_mbps = 0;
  };
  std::vector<Card> cards;
  std::vector<Place> places;
  ActivityNames activity_names;
  // Files that are not decoded here, with the reason; what is wrong with control files.
  struct Problem {
    std::string file;
    std::string what;
    bool broken = false;  // false: unknown or not ours, skipped; or the dump has it elsewhere
  };
  std::vector<Problem> problems;
  uint64_t bytes = 0;  // of the data files

  const std::string& NodeName() const { return hostname.empty() ? name : hostname; }
  const Place* Find(Place::Kind kind, int device) const;
  // Of which the dump's clock is: the host, or the first device there is. Null: neither.
  const Place* ClockPlace() const;
  // Of a device (-1: the host): the session's, else that of the only process that has it; none where
  // processes of several ranks share it.
  std::optional<int> RankOf(int device) const;
  // Every rank that has the device.
  std::vector<int> RanksOf(int device) const;
  // Whether some of it may be of one of `ranks`; those of none are of all.
  bool HasRankOf(const std::set<int>& ranks) const;
  // "rank 1, train.py, pid 4242"; `rank` is what a mark has of its process.
  std::string ProcessName(int64_t pid, std::optional<int> rank) const;
};

// A run of several processes is a dump of profd's, which has their steps, and one of each process (dump-format rule 1).
bool AreOfOneSession(const DumpInfo& one, const DumpInfo& other);

class Dump {
 public:
  // kNotFound / kInvalidArgument naming the path when it is not a PROF directory.
  static Result<Dump> Open(const std::string& path);
  const DumpInfo& info() const { return info_; }
  const DumpReader& reader() const { return reader_; }
  // What another dump or a file beside has about it, unless it has it itself.
  void TakeRank(int rank);
  // Puts its times on another machine's clock, which is behind its own by so much.
  void MoveClock(int64_t ahead_ns);

 private:
  Dump(DumpReader reader, DumpInfo info) : reader_(std::move(reader)), info_(std::move(info)) {}
  DumpReader reader_;
  DumpInfo info_;
};

// A session's dump has the ranks of the directories that the vendor's profiler left beside it.
void ShareRanks(std::vector<Dump>* dumps);

}  // namespace profd::exporting
