// The training processes of this node, as sessions see them: which there are, notifying them of a
// session, hearing of their steps, taking their marks. Implemented by JobTable. Lives on the control
// strand.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "daemon/jobs/activity_account.h"
#include "daemon/jobs/activity_reader.h"
#include "daemon/jobs/activity_window.h"
#include "daemon/jobs/thread_facts.h"
#include "daemon/jobs/user_memory.h"
#include "proto/attach/attach_protocol.h"
#include "proto/attach/mark_ring.h"

namespace profd {

struct TrainingProcess {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // distinguishes a pid from its successor
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string job_id = {};  // empty = belongs to no known job
  std::optional<int> rank = {};
  std::optional<int> local_rank = {};
  int world_size = 0;        // 0 = unknown
  std::vector<int> devices = {};  // logical ids, ascending
  std::string framework = {};
  std::string command = {};
  std::string pod_uid = {};
  std::string slurm_job = {};
  std::string container_id = {};  // by its cgroup; empty = in none
  std::string scheduler = {};     // "slurm", "kubernetes", "volcano", ..., "none"; empty = not known
  std::string found_by = {};    // "attached", "device process list"
  uint64_t attach_id = 0;  // 0 = not attached
  int64_t attached_wall_ns = 0;
  int64_t attached_raw_ns = 0;  // CLOCK_MONOTONIC_RAW
  std::optional<int64_t> step = {};
  double step_s = 0;        // median of the last steps
  uint64_t steps_done = 0;  // completed since it attached
  uint64_t marks = 0;
  uint64_t dropped_marks = 0;
  std::optional<ActivityAccount> activity = {};  // while a session collects from inside it
  uint64_t lost_activity = 0;               // records, since it attached
  uint64_t lost_activity_bytes = 0;         // of the vendor's records
  uint64_t unreadable_activity_bytes = 0;   // part of lost_activity_bytes: unknown kinds and incomplete records
  int64_t silent_since_ns = 0;  // CLOCK_MONOTONIC_RAW; 0 = alive
  bool attached() const { return attach_id != 0; }
};

// A mark as taken out of a ring: validated, host clock.
struct Mark {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC_RAW
  int64_t value = 0;
  int32_t thread = 0;
  attach::MarkKind kind = attach::MarkKind::kMark;
  std::string_view name = {};  // printable UTF-8; valid during the call
  std::string_view domain = {};  // as name; empty = none
};

struct MarkBatch {
  pid_t pid = 0;
  std::optional<int> rank = {};
  std::span<const Mark> marks = {};
  uint64_t dropped = 0;  // lost before these
};

// What the in-process profiler of a process recorded, as it lies in the ring; valid during the call. A name
// may come in a later batch than the records that have its number.
struct ActivityBatch {
  uint64_t attach_id = 0;
  pid_t pid = 0;
  std::optional<int> rank = {};
  std::span<const ActivityFrame> frames = {};
  // Those known so far, of these frames too. May be kept: the process's names only grow.
  std::shared_ptr<const ActivityNameTable> names = nullptr;
  uint64_t dropped = 0;     // records dropped before these; the frames' losses say when
  uint64_t lost_bytes = 0;  // of the vendor's records
  uint64_t cost_ns = 0;     // CPU time that collecting took in the process since the batch before
  uint64_t names_refused = 0;  // names that were too many in the process, since the batch before
};

// What attached processes do, for who watches them. A watcher overrides what it wants to know of.
class JobWatcher {
 public:
  virtual void OnStep(uint64_t /*attach_id*/, const attach::StepReport& /*report*/) {}
  // Processes that attached, and went (in good order: with Bye).
  virtual void OnAttached(const TrainingProcess& /*process*/) {}
  virtual void OnDetached(const TrainingProcess& /*process*/, bool /*in_good_order*/) {}
  // After OnDetached, up to a minute later: one that went without Bye, killed or not, has ended. It had not only lost
  // its connection.
  virtual void OnCrashed(const TrainingProcess& /*process*/) {}
  // Whose marks and activity are wanted. At most a few times a second each; names and losses are in the frames, too.
  virtual bool Wants(uint64_t /*attach_id*/) const { return false; }
  virtual void OnMarks(const MarkBatch& /*batch*/) {}
  virtual void OnActivity(const ActivityBatch& /*batch*/) {}
  // Nothing more of its activity is read: the ring makes no sense, or takes too much memory.
  virtual void OnActivityGivenUp(uint64_t /*attach_id*/, const Status& /*why*/) {}
  // False: what it wants is not a reason to empty the rings more often than for the steps alone.
  virtual bool Hurries() const { return true; }
  // What a process's collector reports of a session's request.
  virtual void OnCollector(uint64_t /*attach_id*/, const attach::CollectorReport& /*report*/) {}
  // A collector of the session has ended and left files in the process's own directory (daemon/jobs/collected_files.h).
  // True: this watcher copies them, or not, and calls NotifyTaken; no other is called.
  virtual bool OnFiles(uint64_t /*attach_id*/, const attach::CollectorReport& /*report*/,
                       std::shared_ptr<UniqueFd> /*directory*/) {
    return false;
  }

 protected:
  ~JobWatcher() = default;
};

class JobDirectory {
 public:
  virtual ~JobDirectory() = default;

  virtual std::vector<TrainingProcess> Processes() const = 0;
  // Of an attached process, until the next change of what there is.
  virtual LiveActivity FindActivity(uint64_t attach_id) const = 0;
  // The kernel's state of an attached process's threads (ProcessProbe::LookupThreads). `done` on the control strand, later,
  // and not at all when it has gone by now.
  virtual void LookupThreads(uint64_t attach_id, std::function<void(Result<ProcessThreads>)> done) = 0;

  // Notifies an attached process; nothing happens when it has gone.
  virtual void Notify(uint64_t attach_id, const attach::SessionNotice& notice) = 0;
  // The process may remove the directory that it handed over.
  virtual void NotifyTaken(uint64_t attach_id, const attach::FilesTaken& taken) = 0;

  // Until the returned handle is dropped (which only the control strand may do).
  virtual std::shared_ptr<void> Watch(JobWatcher* watcher) = 0;
  // Takes what is in the process's rings right now, for its watchers (the last marks before an end).
  virtual void Drain(uint64_t attach_id) = 0;
  // For what is kept of the processes of a user.
  const std::shared_ptr<UserMemory>& memory() const { return memory_; }

 private:
  const std::shared_ptr<UserMemory> memory_ = std::make_shared<UserMemory>();
};

}  // namespace profd
