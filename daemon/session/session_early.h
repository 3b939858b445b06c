// What the processes of a session hand over before its dump can take it: the session begins with a step, and the
// daemon hears of that when the step has begun. The records are kept until the dump is there, and then go into it as far
// as they belong to it: from the begin of the step in each process, as that process marked it. Control strand.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/jobs/job_directory.h"

namespace profd {

class SessionActivity;
class SessionMarks;

class SessionEarly {
 public:
  // Of marks, and of activity. Beyond it the oldest activity goes, and marks are dropped; both are counted if the session
  // would have had them.
  static constexpr size_t kMaxBytes = size_t{8} << 20;

  // `start_step`: that the session begins with; nothing = with none.
  explicit SessionEarly(std::optional<int64_t> start_step) : start_step_(start_step) {}

  void Take(const TrainingProcess& process, const MarkBatch& batch);
  void Take(const ActivityBatch& batch);
  void OnGone(uint64_t attach_id, pid_t pid);

  // When the process began the step; nothing: not known.
  std::optional<int64_t> BeginOf(pid_t pid) const;
  // Begins and ends of its steps, without names.
  std::vector<Mark> StepsOf(pid_t pid) const;
  // In the order of arrival. Either may be null. Nothing is kept afterwards.
  void HandOver(SessionMarks* marks, SessionActivity* activity);

 private:
  struct KeptMark {
    Mark mark;  // without strings
    std::string name, domain;
  };
  struct MarksOf {
    TrainingProcess process;
    std::vector<KeptMark> marks;
    std::optional<int64_t> begin_ns;
    uint64_t dropped = 0;
  };
  struct KeptBatch {
    ActivityBatch batch;  // its frames lie in `bytes`
    std::vector<ActivityFrame> frames;
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };
  // What was counted in batches that are gone.
  struct Evicted {
    ActivityBatch counts;  // without frames; `dropped` has their records, too
    int64_t last_ns = 0;   // of their records
  };
  void Keep(MarksOf* of, const Mark& mark);
  void Evict();

  const std::optional<int64_t> start_step_;
  std::map<pid_t, MarksOf> marks_;
  size_t mark_bytes_ = 0;
  std::deque<KeptBatch> batches_;
  size_t activity_bytes_ = 0;
  std::map<uint64_t, Evicted> evicted_;  // by attach_id
};

}  // namespace profd
