// The flight recorder: keeps the last seconds of the configured channels and collectors in memory
// (RecorderRing), writes them into dumps of their own on request or on a trigger, and gives sessions
// their past. Claims its channels through the arbiter like any session and retries what is busy.
//
// Lives on the control strand; taps and sinks append from the threads that read.
#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/poll_engine.h"
#include "daemon/config/daemon_config.h"
#include "daemon/data/channel_router.h"
#include "daemon/data/replay.h"
#include "daemon/dumps/dump_retention.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/jobs/session_calls.h"
#include "daemon/recorder/activity_history.h"
#include "daemon/recorder/clock_track.h"
#include "daemon/recorder/recorder_ring.h"
#include "daemon/recorder/trigger_watch.h"
#include "daemon/session/dump_requests.h"
#include "daemon/session/session_records.h"

namespace profd {

class SelfMetrics;

namespace v1 {
class DumpRecorderRequest;
class Recorder;
}  // namespace v1

class RecorderPollSink;
class RecorderDump;

// What a dump of the recorder shall hold and say.
struct RecorderDumpRequest {
  uint32_t uid = 0;
  uint32_t gid = 0;
  pid_t pid = 0;
  int64_t last_ns = 0;  // 0 = all that is held
  std::vector<int> devices = {};
  std::string job_id = {};
  std::string label = {};
  std::string reason = {};   // in words, for the manifest
  std::string counted = {};  // "request" or ToString(TriggerKind)
  std::function<bool(const TrainingProcess&)> may_hold = nullptr;  // whose activity; null = none
};

// Labels of triggers' dumps begin so: they are known again by it after a restart.
inline constexpr std::string_view kTriggerLabel = "trigger: ";

// Why the recorder holds `held_ns` and no more, for a warning. `most_ns`: recorder.seconds; `evicted_early`: for the lack
// of memory.
std::string_view LimitOfPast(int64_t held_ns, int64_t most_ns, bool evicted_early);
// Whether a dump may reach back so far.
Status CheckLast(const v1::DumpRecorderRequest& request_untrusted);

class FlightRecorder final : public RecorderHistory, private JobWatcher {
 public:
  struct Deps {
    SessionDeps session;  // what sessions work with; history_or_null is not looked at
    ChannelRouter& router;
    const prometheus::Collectable& self_metrics;  // for triggers on them
    DumpRemover& dumps;
  };
  using SessionReply = SessionCalls::Reply;

  static Result<std::unique_ptr<FlightRecorder>> Create(const Deps& deps,
                                                        const DaemonConfig& config);
  ~FlightRecorder() override;

  // Claims and starts what is configured. `records` and `dumps` list and remove its dumps; `jobs_or_null` null: nothing
  // attaches here. They outlive the control strand's tasks.
  void Begin(SessionRecords& records, DumpRequests& dumps, JobDirectory* jobs_or_null);
  // Gives everything back, and completes the dumps under way; no more dumps.
  void End(std::function<void()> done);
  void Configure(const DaemonConfig& config);  // reloadable keys
  // About once a second.
  void Tick();
  // A live check has found something: a trigger.
  void OnAdvice(std::string_view check, const std::string& what, const std::string& job_id);

  void Dump(const Peer& peer, const v1::DumpRecorderRequest& request_untrusted,
            SessionReply reply);
  // What Node.recorder says.
  void Describe(v1::Recorder* out);

  void UpdateMetrics(SelfMetrics* self);

  // RecorderHistory:
  int64_t Reach() override;
  bool Records(uint16_t collector) const override;
  bool ClockAt(int device, int64_t host_ns, ClockPair* out) const override;
  std::shared_ptr<BlockSource> HostSince(uint16_t collector, int64_t from_ns) override;
  double HostHz(uint16_t collector) const override;
  std::unique_ptr<ActivitySource> ActivitySince(int64_t from_ns,
                                                const std::function<bool(const TrainingProcess&)>& wanted) override;
  bool RecordsActivity() const override { return activity_ != nullptr; }

 private:
  friend class RecorderDump;
  // One channel of a device, or what one collector writes about one device or the host.
  struct Route {
    CollectorIndex collector = 0;
    int device = kHostDevice;
    uint32_t channel = 0;  // 0: no driver channel
    double hz = 0;
  };
  // One collector on one device, or on the host.
  struct Claimed {
    WantedCollector wanted;
    int device = kHostDevice;
    std::optional<ChannelArbiter::ClaimId> claim;
    std::optional<PollEngine::Handle> poller;
    std::shared_ptr<RecorderPollSink> sink;
    std::string problem;
  };

  struct Stats {
    RecorderRing::Stats ring;
    int64_t held_ns = 0;
    size_t recording = 0;  // channels and collectors that deliver
    size_t failing = 0;
  };
  Stats stats();

  FlightRecorder(const Deps& deps, const DaemonConfig& config, std::shared_ptr<RecorderRing> ring,
                 std::unique_ptr<ActivityHistory> activity_or_null);
  RecorderRing::RouteId AddRoute(const Route& route);
  ChannelOptions OptionsOf(const WantedCollector& wanted) const;
  void AddChannels(const WantedCollector& wanted);
  void AddPoller(const WantedCollector& wanted);
  void ClaimDevice(int device);
  bool Owns(const Claimed& one, const Route& route) const;
  void Claim(Claimed& one);
  std::string ProblemOf(const Claimed& one) const;
  // `ready` (may be null) runs for each device when its clocks have been read, or could not be.
  void ReadClocks(const std::function<void(int device)>& ready);
  // recorder_triggers.cc
  void SetTriggers();
  void WatchJobs();
  void JoinActivity(const TrainingProcess& process);
  // JobWatcher:
  void OnAttached(const TrainingProcess& process) override;
  void OnDetached(const TrainingProcess& process, bool in_good_order) override;
  void OnCrashed(const TrainingProcess& process) override;
  bool Wants(uint64_t attach_id) const override;
  void OnMarks(const MarkBatch& batch) override;
  void OnActivity(const ActivityBatch& batch) override;
  void OnCollector(uint64_t attach_id, const attach::CollectorReport& report) override;
  void DescribeActivity(int64_t now_ns, v1::Recorder* out) const;
  void LookAtTriggers(int64_t now_ns);
  void VisitSelfMetrics(const std::function<void(const SeriesSample&)>& take) const;
  void Fire(const std::vector<Firing>& firings);
  void EvictTriggerDumps();
  // recorder_dump.cc
  Result<std::vector<int>> DevicesFor(const Peer& peer, const v1::DumpRecorderRequest& request);
  void Write(RecorderDumpRequest wanted, SessionReply reply);

  Deps deps_;
  DaemonConfig config_;
  const std::shared_ptr<RecorderRing> ring_;
  const std::unique_ptr<ActivityHistory> activity_;  // null: not recorded
  SessionRecords* records_ = nullptr;
  DumpRequests* dump_requests_ = nullptr;
  JobDirectory* jobs_ = nullptr;
  std::shared_ptr<void> watching_;
  std::vector<Route> routes_;  // by RecorderRing::RouteId
  std::vector<std::unique_ptr<RingTap>> taps_;
  std::vector<Claimed> claimed_;
  std::map<int, ClockTrack> clocks_;  // kHostDevice: the host's
  int64_t next_clocks_ns_ = 0;
  int64_t next_claims_ns_ = 0;
  std::vector<int> devices_;  // that are recorded
  bool ended_ = false;
  TriggerWatch watch_;
  int64_t cool_until_ns_ = 0;
  bool triggered_ = false;  // a dump for a trigger is being written
  std::map<uint32_t, int> writing_;  // dumps under way, by uid
  std::function<void()> when_written_;  // End waits for them
  std::map<std::string, uint64_t> dumps_;
  uint64_t suppressed_ = 0;
};

}  // namespace profd
