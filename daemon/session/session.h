// One request being carried out: clocks, dump, collectors; then waiting; then the same backwards.
// scheduled -> starting -> running -> stopping -> done | failed | interrupted (its end took longer than it may: the
// dump is completed later). Lives on the control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log_limit.h"
#include "base/strand.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/replay.h"
#include "daemon/node/node_access.h"
#include "daemon/session/channel_arbiter.h"
#include "daemon/session/peer.h"
#include "daemon/session/session_plan.h"
#include "daemon/session/session_processes.h"
#include "daemon/session/session_schedule.h"
#include "daemon/session/session_statistics.h"
#include "profd/v1/profd.pb.h"

namespace profd {

// What every session works with. References outlive all sessions.
struct SessionDeps {
  Strand& control;
  const Host& host;
  MetricStore& store;
  ChannelArbiter& arbiter;
  PollEngine& pollers;
  DumpWriter& writer;
  const NodeFacts& node;
  const NodeDevices& devices;
  const NodeProcesses& processes;
  Manifest manifest_base;  // versions
  int64_t stop_deadline_ns = 10 * kNsPerSecond;
  RecorderHistory* history_or_null = nullptr;  // null: no flight recorder here
  JobDirectory* jobs_or_null = nullptr;
  FileCopier* copier_or_null = nullptr;
};

// A session that continues under a new daemon.
struct Continuation {
  bool started = false;  // it had begun; otherwise its start is still to come
  int64_t started_wall_ns = 0;  // of the first segment
  int64_t left_ms = 0;          // of its duration, if it has one
  uint32_t steps_done = 0;
  SessionStatistics statistics = {};  // of the segments before
};

// sample.json's account of what is collected.
SampleOptions SampleFactsOf(const SessionPlan& plan, std::span<const DeviceInfo> known);

class Session final : public std::enable_shared_from_this<Session>, private SessionProcesses::Listener {
 public:
  struct Owner {
    uint32_t uid = 0;
    uint32_t gid = 0;
    pid_t pid = 0;
  };

  // What is collected, when, and of which processes.
  struct Request {
    v1::SessionSpec spec;  // as it was admitted
    SessionPlan plan;
    ProcessId starter;  // pid 0: no process renews the lease by being alive
    SessionTargets targets;
    std::optional<Continuation> continues;
    // The same request for other processes and devices; null: its devices stay as they are.
    std::function<Result<SessionPlan>(const SessionTargets&)> plan_for = nullptr;
  };

  Session(const SessionDeps& deps, std::string id, Owner owner, Request request,
          std::function<void(Session&)> on_change);
  ~Session();

  // `started` runs once: Ok when the session is running (or waits for the start it was requested for),
  // the reason when it is not (state failed).
  void Start(std::function<void(const Status&)> started);
  // Ends it; legal in every state. Callbacks given to WhenFinished run when the dump is complete, or after
  // stop_deadline_ns: it is interrupted then, and its dump is completed later.
  void Stop(std::string reason);
  // Stop of a session whose start was not answered: it leaves no dump.
  void Withdraw(std::string reason);
  void WhenFinished(std::function<void()> finished);
  // Of one that is interrupted: the dump is complete.
  void WhenClosed(std::function<void(Session&)> closed);

  // About once a second: end conditions that are watched rather than waited for, and what the devices
  // use.
  void Tick(const std::map<int, DeviceReading>& readings);

  const std::string& id() const { return id_; }
  const Owner& owner() const { return owner_; }
  const SessionPlan& plan() const { return plan_; }
  v1::Session::State state() const override { return state_; }
  bool finished() const { return IsOver(state_); }
  void Fill(v1::Session* out) const;

  const v1::SessionSpec& spec() const { return spec_; }
  const ProcessId& starter() const { return starter_; }
  // It is over without having run: its dump is worth nothing, and removed with what it recorded.
  bool discards_dump() const { return finished() && (!ran_ || withdrawn_); }
  bool withdrawn() const { return withdrawn_; }
  // When it will have ended by its own request; 0 = not known.
  int64_t KnownEndWallNs() const;
  uint64_t written_bytes() const { return dump_ != nullptr ? dump_->bytes() : dump_bytes_; }
  uint64_t queued_bytes() const { return dump_ != nullptr ? dump_->queued_bytes() : 0; }
  const std::string& reason() const { return reason_; }
  bool stopping() const override { return stop_requested_; }
  int64_t start_wall_ns() const { return start_wall_ns_; }
  int64_t start_raw_ns() const { return start_raw_ns_; }
  // Of the dump being written; empty before it is made, and without one.
  const std::string& dump_path() const { return dump_path_; }
  uint32_t steps_done() const { return processes_->steps_done(); }
  const SessionStatistics& statistics() const { return statistics_; }
  uint64_t end_pid_start() const { return end_pid_start_; }
  // Null when it is about no process.
  const SessionJob* job() const { return std::as_const(*processes_).job(); }
  // Its segments that earlier daemons did not live to end, each as it was found; oldest first.
  const std::vector<v1::SessionStatus>& past() const { return past_; }
  // A dump of its own was found, or is there no more.
  void AddPast(v1::SessionStatus segment);
  void ForgetPast(const std::string& dump_path);
  // What the manifest of its dump would have contained, had the end been written; null: it was.
  const Manifest* unended() const {
    return dump_ != nullptr && dump_->unended() ? &*dump_->unended() : nullptr;
  }
  // How long it lasts from now on unless renewed; unset = it has no lease.
  std::optional<uint64_t> RenewLease();

 private:
  struct Row {
    CollectorIndex collector = 0;
    int device = kHostDevice;
    bool named = false;
    std::optional<ChannelArbiter::ClaimId> claim;
    std::optional<PollEngine::Handle> poller;
    std::shared_ptr<class SessionPollSink> sink;
    ClaimAnswer answer;  // of pollers and of rows that never started; final answers of all
    std::vector<const DumpFeed*> feeds;
  };

  void SetState(v1::Session::State state);
  void Begin();
  void SetStart();
  // session_terms.cc: starts to come, and what it is tied to.
  void Schedule();
  void WaitForStart();
  void Prepare(int64_t left_ns);
  void Launch();
  bool StillWanted();
  // Of its processes.
  void OnStartStep() override;
  void OnWantsToEnd(const std::string& reason) override { Stop(reason); }
  void OnProcessCame() override { JoinDevices(); }
  void OnHandingOver() override { on_change_(*this); }
  void OnHandedOver() override { OnReleased(); }
  void Warn(std::string text) override { warnings_.push_back(std::move(text)); }
  void DescribeManifest(Manifest* out) const;
  void GatherClocks();
  void OpenDump();
  void StartCollectors();
  void StartChannels(const PlannedCollector& planned);
  void StartChannel(const PlannedCollector& planned, int device, std::function<void()> settled);
  void StartPoller(const PlannedCollector& planned);
  void Settle();
  void OnSettled();
  void Running();
  void FailStart(Status status);
  void ReleaseAll();
  void OnReleased();
  // Of the row's channels, once they are released.
  void NoteGarbage(size_t row, const ChannelArbiter::GarbageBytes& bytes);
  void CloseDump();
  void OnClosed(const Status& status);
  void BoundEnd();
  void CutOff();
  void Conclude(v1::Session::State state);
  void Recorrelate(const char* when, std::function<void()> done);
  ClaimAnswer AnswerOf(const Row& row) const;
  std::vector<Problem> Unstarted() const;
  void TakeStatistics();
  void LogRemoved(bool last);
  SessionDumpOptions DumpOptions() const;
  size_t ExpectedFiles() const;
  std::map<int, std::optional<DumpClocks>> ClocksForDump() const;
  SampleOptions SampleFacts() const;
  ManifestDevice Described(const DeviceInfo& device) const;
  SessionMarks::Device MarksOf(const DeviceInfo& device) const;
  // session_join.cc: devices of processes that come while it runs.
  void JoinDevices();
  void Join(int device, const SessionPlan& plan, const Result<ClockPair>& clocks);
  void OnJoined();
  // session_history.cc: a session that begins with what the flight recorder holds.
  Status BeginInHistory();
  void TakePastClocks();
  void FillRows(v1::SessionStatus* out) const;
  void FillSegments(v1::SessionStatus* out) const;
  void ForgetRecorded(v1::SessionStatus* out) const;
  int64_t LeftMs() const;
  void NoteOutcomes();
  void WriteOutcomes(Manifest& manifest, const std::vector<Row>& rows) const;

  const SessionDeps& deps_;
  const std::string id_;
  const Owner owner_;
  const v1::SessionSpec spec_;
  SessionPlan plan_;  // as it was made, but for devices that join
  const ProcessId starter_;
  std::function<void(Session&)> on_change_;
  v1::Session::State state_ = v1::Session::STATE_SCHEDULED;
  std::string reason_;
  Status failure_;
  std::vector<Row> rows_;
  std::map<int, ClockPair> clocks_;
  std::set<int> clockless_;  // devices whose clocks could not be read so far
  ClockPair host_clock_;
  size_t pending_ = 0;
  bool stop_requested_ = false;
  int64_t stop_raw_ns_ = 0;
  bool released_ = false;
  bool closing_ = false;
  bool dump_over_ = false;
  std::shared_ptr<WriterSession> dump_;
  std::string dump_path_;
  uint64_t dump_bytes_ = 0;
  int64_t start_wall_ns_ = 0;
  int64_t start_raw_ns_ = 0;
  int64_t ordered_wall_ns_ = 0;  // not 0: the start above lies in the past, this is when it was requested
  int64_t end_wall_ns_ = 0;
  int64_t next_clock_ns_ = 0;
  uint64_t end_pid_start_ = 0;
  std::vector<std::string> warnings_;
  std::function<void(const Status&)> started_;
  std::vector<std::function<void()>> finished_;
  std::function<void(Session&)> closed_;
  std::unique_ptr<Timer> duration_;
  std::unique_ptr<Timer> stop_deadline_;  // for the collectors
  std::unique_ptr<Timer> end_deadline_;   // for all of it
  std::shared_ptr<SessionProcesses> processes_;
  SessionStatistics statistics_;
  LogLimit removals_logged_;
  uint64_t removed_logged_ = 0;  // records
  Lease lease_;
  std::unique_ptr<Timer> wait_;  // for the start
  bool prepared_ = false;   // the dump of a start to come is made or being made
  bool opening_ = false;    // a dump is being made
  const std::optional<Continuation> continues_;
  std::vector<v1::SessionStatus> past_;
  bool ran_ = false;
  bool withdrawn_ = false;
  const std::function<Result<SessionPlan>(const SessionTargets&)> plan_for_;
  std::set<int> joined_;  // devices that joined, or were refused
  size_t joining_ = 0;    // answers that are awaited
};

}  // namespace profd
