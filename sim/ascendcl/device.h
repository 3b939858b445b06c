// One device as the runtime sees it: streams of tasks that run one after the other in real time.
// Nothing runs by itself: when a task begins and ends is worked out from what was launched when,
// and requested by those who launch, wait or read the log.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/ascendcl/group.h"

namespace profd::sim::acl {

struct Task {
  enum Kind { kKernel, kCommunication, kCopy, kTrace, kEvent };
  Kind kind = kKernel;
  std::string name = {};
  std::string type = {};
  uint32_t task_type = prof::kTaskAicore;  // kKernel
  uint32_t block_dim = 0;                  // kKernel
  std::vector<Tensor> tensors = {};        // kKernel
  uint32_t stream = 0;
  uint32_t id = 0;       // 0: it has none yet
  uint32_t last_id = 0;  // a communication is several tasks
  uint32_t model = kNoModel;
  uint32_t iteration = 0;  // of the model
  int64_t launch_ns = 0;
  int64_t duration_ns = 0;
  uint64_t bytes = 0;
  uint64_t value = 0;  // kTrace
  uint32_t tag = 0;    // kTrace
  Group* group = nullptr;
  uint64_t operation = 0;      // of the group
  std::string algorithm = {};  // kCommunication, as are those below
  uint64_t count = 0;
  uint8_t data_type = 0;
  int64_t all_arrived_ns = 0;
  bool arrived = false;
  std::vector<std::shared_ptr<const Task>> after = {};  // of other streams
  bool known = false;                                   // begin and end are
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class Device {
 public:
  static constexpr size_t kQueue = 2048;  // tasks of a stream; a launch waits when it is full
  static constexpr size_t kLogRecords = 1 << 18;  // the oldest are overwritten

  using Finished = std::function<void(uint32_t device, const Task& task)>;
  Device(uint32_t id, const Clock& clock, Finished finished);

  uint32_t NewStream();
  // Of a task that is launched later, more than once.
  void Number(Task* task);
  // Gives the task its place, launch time and, if it has none, id. nullptr: the stream does not drain.
  std::shared_ptr<const Task> Launch(Task task);
  // What is launched on the stream afterwards begins after the task.
  void WaitFor(uint32_t stream, std::shared_ptr<const Task> task);
  std::shared_ptr<const Task> Last(uint32_t stream);
  // False: not within a minute.
  bool Synchronize(uint32_t stream);
  bool SynchronizeAll();

  int OpenLog();
  int CloseLog();
  size_t ReadLog(LogRecord* records, size_t most);
  void set_lost_begins(int64_t every) { lost_begins_every_ = every; }
  uint32_t id() const { return id_; }

 private:
  struct Stream {
    std::deque<std::shared_ptr<Task>> tasks;  // not yet finished
    size_t known = 0;                         // so many at the front
    int64_t free_ns = 0;                      // when the last known one ends
    std::shared_ptr<Task> last;
    std::vector<std::shared_ptr<const Task>> after;
  };

  void NumberLocked(Task* task) REQUIRES(mutex_);
  void Advance() REQUIRES(mutex_);
  bool Resolve(Task& task, int64_t free_ns) REQUIRES(mutex_);
  void Finish(const Task& task) REQUIRES(mutex_);
  void LogTask(const Task& task, uint32_t id, uint32_t entry, int64_t begin_ns, int64_t end_ns)
      REQUIRES(mutex_);
  void Log(const LogRecord& record) REQUIRES(mutex_);
  template <class Condition>
  bool AdvanceUntil(MutexLock& lock, Condition condition) REQUIRES(mutex_);

  const uint32_t id_;
  const Clock& clock_;
  const Finished finished_;
  Mutex mutex_;
  CondVar never_;
  std::vector<std::unique_ptr<Stream>> streams_ GUARDED_BY(mutex_);
  uint32_t next_task_ GUARDED_BY(mutex_) = 1;
  bool log_open_ GUARDED_BY(mutex_) = false;
  std::deque<LogRecord> log_ GUARDED_BY(mutex_);
  std::atomic<int64_t> lost_begins_every_{0};
  int64_t begins_ GUARDED_BY(mutex_) = 0;
};

}  // namespace profd::sim::acl
