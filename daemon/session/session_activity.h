// What the in-process profilers of a session's processes recorded, on its way into the dump
// (dump/activity_files.h): from the records of the processes' rings to those of the files, with names that
// mean the same in all of them. Control strand; what is lost on the way is counted.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/data/dump_writer.h"
#include "daemon/data/host_file_buffer.h"
#include "daemon/data/replay.h"
#include "daemon/jobs/job_directory.h"
#include "dump/activity_files.h"

namespace profd {

inline constexpr std::string_view kActivityNamesCollector = "activity_names";

// Strings of all processes of a session, numbered from 1. Bounded: strings beyond the limits have one number together,
// that of attach::kTooManyNames.
class SessionNames {
 public:
  static constexpr size_t kMaxNames = 131'072;
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  // Null: only the limits of one session count.
  explicit SessionNames(std::shared_ptr<UserMemory> memory_or_null = nullptr, uint32_t uid = 0)
      : held_(std::move(memory_or_null), uid) {}

  struct Process {
    std::vector<uint32_t> ids;    // by the ring's; 0 = not yet asked for
    std::set<uint32_t> nameless;  // the ring's, numbered before their string arrived
  };
  // Valid until it is forgotten.
  Process& ProcessOf(uint64_t attach_id) { return processes_[attach_id]; }
  // The number of one of its names, be the text known by now or not.
  uint32_t IdOf(Process& process, uint32_t ring_id, const ActivityNameTable& names) {
    if (ring_id < process.ids.size() && process.ids[ring_id] != 0) return process.ids[ring_id];
    return Assign(process, ring_id, names);
  }
  // Strings have become known.
  void Learn(uint64_t attach_id, const ActivityNameTable& names);
  void Forget(uint64_t attach_id);
  // Numbers and strings that are new since the last call.
  std::vector<std::pair<uint32_t, std::string>> TakeFresh() { return std::exchange(fresh_, {}); }
  uint64_t refused() const { return refused_; }

 private:
  uint32_t Assign(Process& process, uint32_t ring_id, const ActivityNameTable& names);
  uint32_t Add(std::string_view text);
  uint32_t TooMany();

  std::unordered_map<uint64_t, Process> processes_;
  std::unordered_map<std::string, uint32_t> texts_;
  std::vector<std::pair<uint32_t, std::string>> fresh_;
  uint32_t last_ = 0;
  size_t bytes_ = 0;
  uint64_t refused_ = 0;
  HeldMemory held_;
};

// Where records of these kinds go.
std::set<ActivityFileId> FilesOfKinds(attach::CollectKinds kinds);

class SessionActivity {
 public:
  // `kinds`: that the session requested. What other sessions requested of the same process is left out, and so is what
  // began before `start_raw_ns`.
  SessionActivity(std::shared_ptr<WriterSession> dump, attach::CollectKinds kinds, int64_t start_raw_ns,
                  std::shared_ptr<UserMemory> memory_or_null = nullptr, uint32_t uid = 0);

  void Take(const ActivityBatch& batch);
  // For one process another start than the session's.
  void SetStart(pid_t pid, int64_t start_raw_ns) { starts_[pid] = start_raw_ns; }
  int64_t StartOf(pid_t pid) const;
  // Kinds of the request that the process leaves out from now on, to stay within its share of a core.
  void OnLeftOut(uint64_t attach_id, attach::CollectKinds kinds, int64_t now_raw_ns);
  // The process's profiler is another's from now on, or the application forbids it; or not any more.
  void OnBusy(uint64_t attach_id, bool busy, int64_t now_raw_ns);
  // As far as it is of the session's time and kinds; how much that is, in ns.
  int64_t AddMissing(const MissingTime& missing);
  // How long one process had no records for this, the longest so far; empty = none had that.
  std::string BusyText() const;
  // CPU time that collecting took in a process.
  uint64_t CostOf(pid_t pid) const;
  // What begins later is none of this session's.
  void SetEnd(int64_t end_raw_ns) { end_raw_ns_ = end_raw_ns; }
  // The same, while processes still hand over. When the records in a lost buffer began is not known: those of buffers
  // that a process reports until it has handed over are the session's.
  void Stop(int64_t end_raw_ns) {
    SetEnd(end_raw_ns);
    stopped_ = true;
  }
  // What the process reports from now on is of others.
  void OnHandedOver(uint64_t attach_id) { handed_over_.insert(attach_id); }
  // Not in good order (crashed, killed): what it had not handed over is missing since its last record.
  void OnGone(uint64_t attach_id, bool in_good_order, int64_t now_raw_ns);
  // No more of its ring is read: what comes after the last record is missing.
  void OnGivenUp(uint64_t attach_id) { rings_[attach_id].given_up = true; }
  // The process is here, and its last records have not arrived in time.
  void OnNotHandedOver(uint64_t attach_id, int64_t now_raw_ns);
  // No more records arrive; passes on what is there.
  void End(int64_t now_raw_ns);

  struct Count {
    uint64_t records = 0;
    uint64_t bytes = 0;
    LossLedger::Amount lost;
  };
  // In the dump, and lost before.
  Count CountOf(ActivityFileId file) const;
  // That names were beyond the limits, of processes and of the session; empty = none was.
  std::string NamesText() const;
  static void EditManifest(Manifest* manifest);

 private:
  struct Ring {
    uint64_t dropped = 0;   // records dropped, by the process's count
    uint64_t reported = 0;  // of them, those whose time the ring has reported
    int64_t last_ns = 0;    // of the last frame
    bool given_up = false;
    std::map<attach::CollectKind, int64_t> left_out = {};  // since when
    int64_t busy_since_ns = 0;                     // 0: it is not
    int64_t busy_ns = 0;                           // before that
  };
  HostFileBuffer& BufferOf(ActivityFileId file);
  // What a batch will bring, at most.
  void Expect(const ActivityBatch& batch);
  template <class Record>
  void TakeFrame(const ActivityBatch& batch, const ActivityFrame& frame);
  void TakeLosses(const ActivityBatch& batch, const ActivityFrame& frame, Ring* ring);
  void Lose(std::optional<ActivityFileId> file, const ManifestLoss& loss);
  void EndBusy(Ring& ring, int64_t now_raw_ns);
  void EndRing(Ring& ring, int64_t now_raw_ns);
  void FlushNames();
  void Flush();

  const std::shared_ptr<WriterSession> dump_;
  const int64_t start_raw_ns_;
  std::map<pid_t, int64_t> starts_;
  int64_t end_raw_ns_ = std::numeric_limits<int64_t>::max();
  bool stopped_ = false;
  std::set<uint64_t> handed_over_;  // by attach_id
  std::array<bool, kActivityFiles> wanted_{};
  std::array<bool, 4> levels_{};  // of API calls, by attach::ApiLevel
  std::array<std::unique_ptr<HostFileBuffer>, kActivityFiles> buffers_;  // null before the first record
  std::unique_ptr<HostFileBuffer> names_buffer_;
  SessionNames names_;
  std::map<uint64_t, Ring> rings_;  // by attach_id
  int64_t busy_ns_ = 0;  // of the process that was busy longest
  std::map<pid_t, uint64_t> cost_ns_;
  std::map<pid_t, uint64_t> names_refused_;
  std::string line_;
};

}  // namespace profd
