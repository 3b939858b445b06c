// The marks of a session's processes on their way into its dump: every mark a line of our own file,
// steps also as the vendor's step trace input of the devices the process uses. Control strand; what is
// lost on the way is counted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/data/dump_writer.h"
#include "daemon/data/host_file_buffer.h"
#include "daemon/jobs/job_directory.h"
#include "dump/mark_files.h"

namespace profd {

inline constexpr std::string_view kStepTraceCollector = "step_trace";

class SessionMarks {
 public:
  // A device of the dump with its first clock pair there: the analyser turns timestamps back with it.
  struct Device {
    int id = 0;
    uint32_t chip_id = 0;
    double counter_hz = 0;  // 0: its steps cannot be timestamped and are left out
    int64_t host_ns = 0;
    uint64_t device_count = 0;
  };

  // Marks older than `start_raw_ns` are none of this session's. `steps_only`: marks and ranges are
  // left out (msproftx is off), which is not a loss.
  SessionMarks(std::shared_ptr<WriterSession> dump, std::vector<Device> devices,
               int64_t start_raw_ns, bool steps_only = false);

  // Sampled call stacks are taken, too.
  void TakeStacks() { takes_stacks_ = true; }
  // A device that the dump takes from now on.
  void AddDevice(const Device& device) { devices_.push_back(device); }
  // The step this process is in as the session begins: its begin is timestamped with the session's.
  void NoteRunningStep(pid_t pid, int64_t step) { steps_[pid] = {step, true, false}; }
  // For one process another start than the session's.
  void SetStart(pid_t pid, int64_t start_raw_ns) { starts_[pid] = start_raw_ns; }
  void Take(const TrainingProcess& process, const MarkBatch& batch);
  // Its devices' steps may come from another process now.
  void OnGone(pid_t pid);
  // Hands on what was taken.
  void Flush();

  uint64_t written() const;
  uint64_t stacks_written() const;
  uint64_t dropped() const;
  // The losses that happened before the dump's writer saw the marks.
  void EditManifest(Manifest* manifest) const;

 private:
  struct StepFile {
    std::unique_ptr<HostFileBuffer> records;
    pid_t owner = 0;  // one process per device: two would make four records of a step
    std::optional<int> rank;
  };
  // The last one of a process.
  struct Step {
    std::optional<int64_t> value;
    bool open = false;
    bool begun = true;   // in this session: its begin is written
    bool ends = false;   // the process reports where steps end
    std::optional<int64_t> closed = std::nullopt;  // ended by the begin of the next one
  };
  void WriteStack(const MarkLine& line);
  void EndStep(const TrainingProcess& process, int64_t time_ns, Step* step);
  void TakeStep(const TrainingProcess& process, const Mark& mark);
  void WriteStep(const TrainingProcess& process, int64_t time_ns, int64_t step, bool begin);
  bool Owns(StepFile* file, const TrainingProcess& process) const;

  const std::shared_ptr<WriterSession> dump_;
  std::vector<Device> devices_;
  const int64_t start_raw_ns_;
  std::map<pid_t, int64_t> starts_;
  const bool steps_only_;
  std::unique_ptr<HostFileBuffer> text_records_;  // null before the first
  bool takes_stacks_ = false;
  std::unique_ptr<HostFileBuffer> stacks_records_;
  std::map<int, StepFile> step_files_;  // by device
  std::map<pid_t, Step> steps_;
  std::string line_;
  uint64_t ring_lost_ = 0;
};

// "push" and the like, as marks.tsv has them.
std::string_view MarkKindName(attach::MarkKind kind);

}  // namespace profd
