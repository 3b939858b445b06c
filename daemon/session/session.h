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

#include "base/strand.h"
#include "daemon/collect/poll_engine.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/replay.h"
#include "daemon/node/node_access.h"
#include "daemon/session/channel_arbiter.h"
#include "daemon/session/peer.h"
#include "daemon/session/session_clocks.h"
#include "daemon/session/session_collectors.h"
#include "daemon/session/session_output.h"
#include "daemon/session/session_plan.h"
#include "daemon/session/session_processes.h"
#include "daemon/session/session_segments.h"
#include "daemon/session/session_statistics.h"
#include "daemon/session/session_terms.h"
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
  int64_t since_wall_ns = 0;    // where its data begins, if before that
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
  void Tick(const std::map<int, DeviceValues>& latest);

  const std::string& id() const { return id_; }
  const Owner& owner() const { return owner_; }
  const SessionPlan& plan() const { return plan_; }
  v1::Session::State state() const override { return state_; }
  bool finished() const { return IsFinal(state_); }
  void Fill(v1::Session* out) const;

  const v1::SessionSpec& spec() const { return spec_; }
  // It is over without having run: its dump is worth nothing, and removed with what it recorded.
  bool discards_dump() const { return finished() && (!ran_ || withdrawn_); }
  bool withdrawn() const { return withdrawn_; }
  // When it will have ended by its own request; 0 = not known.
  int64_t KnownEndWallNs() const;
  const std::string& reason() const { return reason_; }
  bool stopping() const override { return stop_requested_; }
  const SessionClocks& clocks() const { return *clocks_; }
  const SessionOutput& output() const { return output_; }
  uint32_t steps_done() const { return processes_->steps_done(); }
  const SessionStatistics& statistics() const { return statistics_; }
  SessionTerms& terms() { return terms_; }
  const SessionTerms& terms() const { return terms_; }
  // Null when it is about no process.
  const SessionJob* job() const { return std::as_const(*processes_).job(); }
  // Its segments that earlier daemons did not live to end.
  PastSegments& past() { return past_; }
  const PastSegments& past() const { return past_; }

 private:
  void SetState(v1::Session::State state);
  void Begin();
  Status BeginInHistory();
  // Starts to come.
  void Schedule();
  void WaitForStart();
  void Launch();
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
  void OnSettled();
  void Running();
  void FailStart(Status status);
  void ReleaseAll();
  void OnReleased();
  void CloseDump();
  void OnClosed(const Status& status);
  void BoundEnd();
  void CutOff();
  void Conclude(v1::Session::State state);
  void TakeStatistics();
  SessionDumpOptions DumpOptions() const;
  size_t ExpectedFiles() const;
  std::map<int, std::optional<DumpClocks>> ClocksForDump() const;
  SampleOptions SampleFacts() const;
  ManifestDevice Described(const DeviceInfo& device) const;
  static SessionMarks::Device MarksOf(const DeviceInfo& device, const ClockPair& clock);
  // session_join.cc: devices of processes that come while it runs.
  void JoinDevices();
  void Join(int device, const SessionPlan& plan, const Result<ClockPair>& clocks);
  void OnJoined();
  void ForgetRecorded(v1::SessionStatus* out) const;
  int64_t LeftMs() const;
  void NoteOutcomes();

  const SessionDeps& deps_;
  const std::string id_;
  const Owner owner_;
  const v1::SessionSpec spec_;
  SessionPlan plan_;  // as it was made, but for devices that join
  const std::function<Result<SessionPlan>(const SessionTargets&)> plan_for_;
  const std::optional<Continuation> continues_;
  std::function<void(Session&)> on_change_;
  v1::Session::State state_ = v1::Session::STATE_SCHEDULED;
  std::string reason_;
  Status failure_;
  std::vector<std::string> warnings_;
  bool stop_requested_ = false;
  bool ran_ = false;
  bool withdrawn_ = false;
  const std::shared_ptr<SessionClocks> clocks_;
  SessionTerms terms_;
  SessionOutput output_;
  SessionCollectors collectors_;
  std::shared_ptr<SessionProcesses> processes_;
  SessionStatistics statistics_;
  PastSegments past_;
  std::set<int> joined_;  // devices that joined, or were refused
  size_t joining_ = 0;    // answers that are awaited
  std::function<void(const Status&)> started_;
  std::vector<std::function<void()>> finished_;
  std::function<void(Session&)> closed_;
  std::unique_ptr<Timer> timer_;          // for the start, then for the end of the duration
  std::unique_ptr<Timer> stop_deadline_;  // for the collectors
  std::unique_ptr<Timer> end_deadline_;   // for all of it
};

}  // namespace profd
