// What the in-process profilers of the node's training processes recorded in the last seconds: the frames of
// their rings in an arena of fixed size (RecorderRing), the oldest leaves first, and beside it what is known
// of each process while anything of it is held: whose it is, its names, how its collector is getting on.
// Control strand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/replay.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/recorder/recorder_ring.h"
#include "daemon/session/session_activity.h"

namespace profd {

// The order of the recorder, beside those of sessions.
inline constexpr std::string_view kRecorderSession = "flight-recorder";

class ActivityHistory {
 public:
  // How long a record may stay in its process: it runs all the time, so it shall cost little.
  static constexpr uint32_t kFlushMs = 2000;
  static constexpr size_t kMaxProcesses = 1024;
  static constexpr size_t kMaxNamesBytes = size_t{16} << 20;  // of all processes together
  static constexpr size_t kMaxMissing = 64;  // of a process, reason and kind; when there are more, the last one is extended

  // `level`: recorder.activity, not "off".
  static Result<std::unique_ptr<ActivityHistory>> Create(const RecorderRing::Options& options,
                                                         std::string_view level, int64_t now_ns);

  attach::CollectKinds kinds() const { return kinds_; }
  attach::SessionNotice Notice() const;

  // False: it belongs to no job, or there are too many; nothing shall be requested from it.
  bool Join(const TrainingProcess& process);
  bool Has(uint64_t attach_id) const { return processes_.contains(attach_id); }
  void OnReport(uint64_t attach_id, const attach::CollectorReport& report, int64_t now_ns);
  void OnGone(uint64_t attach_id, bool in_good_order, int64_t now_ns);
  void Take(const ActivityBatch& batch, int64_t now_ns);
  // Lets go what is too old, and who has gone and has nothing left.
  void Expire(int64_t now_ns);

  // A process with something in the past, or that is here now.
  struct Process {
    TrainingProcess facts;
    std::optional<attach::CollectorReport> report;
    ActivityNameTable names;
    size_t names_bytes = 0;
    int64_t last_ns = 0;  // when its last block was read
    int64_t gone_ns = 0;  // 0 = it is here
    bool in_good_order = false;  // or nothing was collected in it when it went
    // When another profiler ran in it, or it left kinds out; while that lasts, its to_ns is 0.
    std::vector<MissingTime> missing;
    bool collects() const;
    ManifestProcess Describe() const;
  };
  // For another thread: nothing of it changes.
  struct Past {
    std::map<uint64_t, Process> processes;  // by attach_id
    std::shared_ptr<BlockSource> blocks;    // of all processes
    int64_t held_from_ns = 0;
    int64_t read_ns = 0;  // the time of the call
  };
  // What was read after `from_ns`, of those that `wanted` accepts.
  Past Read(int64_t from_ns, const std::function<bool(const TrainingProcess&)>& wanted, int64_t now_ns) const;

  // Processes that are here and collect; those that do not.
  size_t collecting() const;
  std::string Problem() const;  // why processes do not collect; empty: all that are here do
  uint64_t names_refused() const { return names_refused_; }
  RecorderRing::Stats stats() const { return ring_->stats(); }

 private:
  ActivityHistory(std::shared_ptr<RecorderRing> ring, std::string_view level, int64_t max_age_ns);
  static void Follow(Process* process, const MissingTime& one, bool is_missing);
  void Learn(Process* process, const ActivityFrame& frame);
  void LearnName(Process* process, uint32_t id, std::string_view text);
  void Append(uint64_t attach_id, uint64_t records, int64_t now_ns);

  const std::shared_ptr<RecorderRing> ring_;
  const RecorderRing::RouteId route_;
  const size_t block_bytes_;
  const int64_t max_age_ns_;
  attach::CollectKinds kinds_;
  std::map<uint64_t, Process> processes_;  // by attach_id
  size_t names_bytes_ = 0;
  uint64_t names_refused_ = 0;
  std::vector<std::byte> block_;  // being put together
};

// A past, batch by batch.
class ActivityPast final : public ActivitySource {
 public:
  explicit ActivityPast(ActivityHistory::Past past);
  const ActivityBatch* Next() override;
  int64_t HeldFrom() const override { return past_->held_from_ns; }
  std::vector<MissingTime> Missing() const override;
  const std::map<uint64_t, ActivityHistory::Process>& processes() const { return past_->processes; }

 private:
  bool Parse(const ReplayBlock& block);
  void NoteEvicted(int64_t until_ns);

  const std::shared_ptr<const ActivityHistory::Past> past_;  // the batches' names are in it
  std::vector<ActivityFrame> frames_;
  ActivityBatch batch_;
  int64_t last_ns_ = 0;                 // when the last block was read
  std::optional<MissingTime> evicted_;  // before it could be handed out
};

// Writes a past into a dump, on the writer's thread, bit by bit so that other sessions get their turn.
class ActivityReplay : public std::enable_shared_from_this<ActivityReplay> {
 public:
  ActivityReplay(std::shared_ptr<WriterSession> dump, attach::CollectKinds kinds,
                 ActivityHistory::Past past, int64_t start_ns, int64_t end_ns);
  // `done` runs on the writer's thread.
  void Run(DumpWriter& writer, std::function<void()> done);
  SessionActivity::Count CountOf(ActivityFileId file) const { return activity_.CountOf(file); }
  std::string BusyText() const { return activity_.BusyText(); }

 private:
  void End();

  SessionActivity activity_;
  ActivityPast past_;
  const int64_t end_ns_;
};

}  // namespace profd
