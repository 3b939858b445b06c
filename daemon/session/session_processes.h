// What a session has to do with training processes: it notifies them of itself, counts their steps, takes their marks,
// kernels and files, and waits for the last of these at its end. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strand.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/replay.h"
#include "daemon/node/node_access.h"
#include "daemon/session/launching_threads.h"
#include "daemon/session/session_activity.h"
#include "daemon/session/session_collect.h"
#include "daemon/session/session_early.h"
#include "daemon/session/session_files.h"
#include "daemon/session/session_job.h"
#include "daemon/session/session_marks.h"
#include "daemon/session/session_plan.h"
#include "daemon/session/session_schedule.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SessionProcesses final : public std::enable_shared_from_this<SessionProcesses>, private SessionJob::Listener {
 public:
  // The session.
  class Listener {
   public:
    virtual v1::Session::State state() const = 0;
    virtual bool stopping() const = 0;
    // These three do not come in the middle of the job directory's own doing: the step to start at has begun; the last
    // step has ended, or no process is left that counts them; another process of the job has attached.
    virtual void OnStartStep() = 0;
    virtual void OnWantsToEnd(const std::string& reason) = 0;
    virtual void OnProcessCame() = 0;
    // What is handed over at the end: some of it arrived; all has, or as much as will arrive.
    virtual void OnHandingOver() = 0;
    virtual void OnHandedOver() = 0;
    // For the session's client.
    virtual void Warn(std::string text) = 0;

   protected:
    ~Listener() = default;
  };

  // References outlive the object.
  struct Deps {
    Strand& control;
    const Host& host;
    const NodeProcesses& processes;
    JobDirectory* jobs_or_null = nullptr;
    FileCopier* copier_or_null = nullptr;
    RecorderHistory* history_or_null = nullptr;
  };
  struct Request {
    const v1::SessionSpec& spec;
    const SessionPlan& plan;
    std::string session_id;
    DumpOwner owner;
    SessionTargets targets;
    bool resumed = false;     // a daemon before this one had begun it
    uint32_t steps_done = 0;  // in its time
  };

  SessionProcesses(const Deps& deps, Request request);
  SessionProcesses(const SessionProcesses&) = delete;
  SessionProcesses& operator=(const SessionProcesses&) = delete;

  // Events from now on.
  void Watch(std::weak_ptr<Listener> listener);
  // Notifies the processes that the session begins with a step of theirs.
  void Arm();
  // The session runs: they are notified, and their marks and records go into `dump` (null: nowhere).
  void Begin(std::shared_ptr<WriterSession> dump, std::vector<SessionMarks::Device> devices, int64_t start_raw_ns);
  // Every second.
  void Tick();
  // A device that a process brought.
  void AddDevice(SessionMarks::Device device);
  // Takes the last marks and requests the last records; OnHandedOver follows where some are awaited.
  void End();
  // What began after this is none of the session's.
  void SetEnd(int64_t end_raw_ns);
  // What is not here by now is missing.
  void Finish();
  // No more events.
  void Leave();

  // Null: the request names no job and no process.
  SessionJob* job() { return job_.get(); }
  const SessionJob* job() const { return job_.get(); }
  const SessionCollect& collect() const { return collect_; }
  uint32_t steps_done() const { return steps_.done(); }
  // The last records or files are awaited, files at most so long.
  bool awaits_last() const { return handing_over_; }
  int64_t HandOverNs() const;

  // The processes and their steps, as a manifest and a client have them.
  void Describe(Manifest* manifest) const;
  void Fill(v1::SessionStatus* out) const;
  // What became of each option of the application.
  void FillOptions(v1::SessionStatus* out) const;
  // The same at the session's end, but for what is counted.
  std::vector<v1::Outcome> OptionOutcomes() const;
  // Those that processes served so far, and of them those whose marks or stacks are in the dump (any thread, like EditManifest).
  std::vector<std::string> Served() const;
  std::vector<std::string> Written() const;
  // Any thread, once the last mark is written.
  void EditManifest(Manifest* manifest) const;
  // Where the files of the vendor's profiler are at last.
  void SetPlaced(std::vector<ManifestProcessFiles> placed);

 private:
  struct ProcessReports;  // of the processes' marks and reports, for the outcomes

  void Post(std::function<void(Listener&)> call);
  // SessionJob::Listener:
  void OnStep(const TrainingProcess& process, int64_t step, bool begin, bool last) override;
  void OnMarks(const TrainingProcess& process, const MarkBatch& batch) override;
  void OnActivity(const ActivityBatch& batch) override;
  void OnActivityGivenUp(const TrainingProcess& process, const Status& why) override;
  void OnCollector(const TrainingProcess& process, const attach::CollectorReport& report) override;
  bool OnFiles(const TrainingProcess& process, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory) override;
  void OnGone(const TrainingProcess& process, uint64_t attach_id, bool in_good_order) override;
  void OnCome() override;
  bool WantsRings() const override;
  void EndUnlessCounted();
  void CountStep(const Mark& mark);
  void CountEarlySteps(const SessionEarly& early);
  void MakeFiles();
  void ReplayActivity();
  void TakePastActivity(size_t batches);
  bool AllHandedOver() const;
  void WhenHandedOver();
  ProcessReports Reports(v1::Session::State state) const;
  std::vector<std::string> OptionKeys() const;
  void FillOption(const std::string& key, const ProcessReports& seen, v1::Outcome* out) const;
  void Count(const std::string& option, const ProcessReports& seen, v1::Outcome* out) const;

  const Deps deps_;
  const v1::SessionSpec& spec_;
  const SessionPlan& plan_;
  const DumpOwner owner_;
  const bool resumed_;
  std::weak_ptr<Listener> session_;
  std::unique_ptr<SessionJob> job_;
  LaunchingThreads launchers_;
  StepCounter steps_;
  SessionCollect collect_;
  std::unique_ptr<SessionEarly> early_;  // until the marks are taken; null without a dump, and with a past
  std::shared_ptr<WriterSession> dump_;
  int64_t start_raw_ns_ = 0;
  std::unique_ptr<SessionMarks> marks_;
  std::unique_ptr<SessionActivity> activity_;      // null without a dump; with aclprof only for what is missing
  std::unique_ptr<ActivitySource> past_activity_;  // what is not in `activity_` yet of the time before the request
  std::shared_ptr<SessionFiles> files_;            // null where none will come
  bool taking_marks_ = false;
  bool start_step_seen_ = false;
  std::pair<pid_t, int64_t> start_step_{0, 0};  // which, of whom
  bool handing_over_ = false;                   // the processes were asked for their last records
  bool activity_ended_ = false;
  std::unique_ptr<Timer> hand_over_deadline_;
  int64_t hand_over_until_ns_ = 0;
};

}  // namespace profd
