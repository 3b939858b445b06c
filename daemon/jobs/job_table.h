// The JobDirectory: processes that attached, those that fell silent, those that use a device without
// having attached; and the rounds in which the rings of attached ones are emptied. Lives on the control
// strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/strand.h"
#include "collectors/collector.h"
#include "daemon/jobs/activity_reader.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/jobs/ring_reader.h"
#include "daemon/jobs/step_clock.h"
#include "daemon/node/node_access.h"
#include "daemon/session/profiling_gate.h"

namespace profd {

class ThreadProbe;

class JobTable final : public JobDirectory {
 public:
  // What is to reach processes, or has happened to them. On the control strand; outlives the table.
  class Handler {
   public:
    virtual void Send(uint64_t attach_id, const attach::ToProcess& message) = 0;
    // Its ring is not read any more.
    virtual void OnRingBroken(const TrainingProcess& process, const Status& why) = 0;

   protected:
    ~Handler() = default;
  };
  struct Deps {
    Strand& control;
    const Clock& clock;
    const NodeProcesses& processes;
    const ProfilingGate& gate;
    Handler& handler;
    // Of a core that collecting may take in a process; SetCollectLimit changes it.
    uint32_t collect_permille = 0;
    ThreadProbe* threads_or_null = nullptr;  // null: nothing is known of threads
  };
  struct Counters {
    uint64_t attaches = 0;
    uint64_t marks = 0;
    uint64_t dropped_marks = 0;
    uint64_t clamped_marks = 0;
    uint64_t broken_rings = 0;
    uint64_t activity_records = 0;
    uint64_t dropped_activity = 0;    // records dropped because a ring was full
    uint64_t lost_activity_bytes = 0;  // of the vendors' buffers
    uint64_t clamped_activity = 0;
    uint64_t broken_activity_rings = 0;
  };

  explicit JobTable(Deps deps);
  ~JobTable() override;

  // `devices_named`: the process named its devices, which overrides other sources. Watchers are notified
  // with Announce, so that the process's welcome goes before what they send.
  void Enter(TrainingProcess process, bool devices_named, std::unique_ptr<RingReader> ring_or_null);
  void Announce(uint64_t attach_id);
  void Detach(uint64_t attach_id, bool in_good_order);
  void OnStep(uint64_t attach_id, const attach::StepReport& report);
  void OnCollector(uint64_t attach_id, const attach::CollectorReport& report,
                   std::shared_ptr<ActivityReader> ring_or_null);
  // A process's directory: if no watcher takes it, the process is notified that it may remove it.
  void OnFiles(uint64_t attach_id, const attach::CollectorReport& report, std::shared_ptr<UniqueFd> directory);
  // The processes that use a device, as found just now; replaces what was found before.
  void SetDeviceUsers(std::vector<TrainingProcess> users);
  const TrainingProcess* Find(uint64_t attach_id) const;
  void SetCollectLimit(uint32_t permille) { deps_.collect_permille = permille; }
  // About once a second.
  void Tick();

  std::vector<TrainingProcess> Processes() const override;
  LiveActivity FindActivity(uint64_t attach_id) const override;
  void LookupThreads(uint64_t attach_id, std::function<void(Result<ProcessThreads>)> done) override;
  void Notify(uint64_t attach_id, const attach::SessionNotice& notice) override;
  void NotifyTaken(uint64_t attach_id, const attach::FilesTaken& taken) override;
  std::shared_ptr<void> Watch(JobWatcher* watcher) override;
  void Drain(uint64_t attach_id) override;

  // "process 4242 (session 71bd0e29b475)" of one on these devices from inside which is collected; empty: of none is.
  std::string CollectingOn(std::span<const uint32_t> devices) const;

  size_t attached() const { return attached_.size(); }
  uint64_t detached_total() const { return counters_.attaches - attached_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  struct Entry {
    TrainingProcess process;
    bool devices_named = false;
    std::unique_ptr<RingReader> ring;
    std::shared_ptr<ActivityReader> activity;
    std::set<std::string> collecting;  // sessions for which the process collects
    std::unique_ptr<ActivityWindow> window;
    std::optional<HeldMemory> held;  // by names and window
    uint64_t cost_ns = 0;  // of collecting, since the last batch
    uint64_t names_refused = 0;  // since the last batch
    StepClock steps;
  };
  // Watchers may come and go inside each other's calls: a round goes over a copy of the list.
  struct Watching {
    JobWatcher* watcher = nullptr;
    bool gone = false;
  };
  using WatchList = std::vector<std::shared_ptr<Watching>>;

  // Of those that are still there when it is their turn.
  template <class Call>
  void ForWatchers(Call call) const {
    for (const auto& watching : WatchList(*watchers_)) {
      if (!watching->gone) call(*watching->watcher);
    }
  }
  bool Lives(const TrainingProcess& process) const;
  void Arm();
  void Round();
  bool Wanted(uint64_t attach_id) const;
  // Slots taken.
  size_t TakeFrom(Entry& entry, size_t max_slots);
  void TakeOver(const TrainingProcess& process, RingReader* ring);
  void TakeAll(uint64_t attach_id);
  // Bytes taken.
  size_t TakeActivity(Entry& entry, size_t max_bytes);
  void GiveUpActivity(Entry& entry, const Status& why);
  void TakeAllActivity(uint64_t attach_id);
  void FollowCollector(Entry& entry, const attach::CollectorReport& report);
  void FollowSteps(Entry& entry, std::span<const Mark> marks);
  void Deliver(const TrainingProcess& process, std::span<const Mark> marks, uint64_t dropped);
  void AdoptDevices(Entry& entry) const;
  void RefuseCollection(uint64_t attach_id, attach::SessionNotice notice, const Status& why);

  Deps deps_;
  std::map<uint64_t, Entry> attached_;
  std::vector<TrainingProcess> silent_;
  std::vector<TrainingProcess> users_;
  std::shared_ptr<WatchList> watchers_;
  MarkScratch scratch_;
  ActivityScratch activity_scratch_;
  std::unique_ptr<Timer> timer_;
  bool armed_ = false;
  bool delivering_ = false;
  uint64_t next_in_round_ = 0;  // whose turn it is when a round cannot serve all
  Counters counters_;
};

}  // namespace profd
