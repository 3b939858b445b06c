#include "sim/ascendcl/device.h"

#include <algorithm>
#include <chrono>

namespace profd::sim::acl {
namespace {

// From the launch until the device can begin, and between two tasks of a stream.
constexpr int64_t kLaunchLatencyNs = 4'000;
constexpr int64_t kTaskGapNs = 500;
constexpr int64_t kNotifyNs = 200;
constexpr int64_t kPatienceNs = 60 * kNsPerSecond;

uint32_t EntryOf(const Task& task) {
  if (task.kind == Task::kCopy) return kEntrySdma;
  if (task.task_type == prof::kTaskAicpu) return kEntryAicpu;
  return task.task_type == prof::kTaskAivec || task.task_type == prof::kTaskMixAiv ? kEntryAivec : kEntryAicore;
}

}  // namespace

Device::Device(uint32_t id, const Clock& clock, Finished finished)
    : id_(id), clock_(clock), finished_(std::move(finished)) {}

uint32_t Device::NewStream() {
  MutexLock lock(mutex_);
  streams_.push_back(std::make_unique<Stream>());
  return static_cast<uint32_t>(streams_.size() - 1);
}

void Device::NumberLocked(Task* task) {
  task->id = next_task_;
  task->last_id = task->id + (task->kind == Task::kCommunication ? 2 : 0);
  next_task_ = task->last_id + 1;
}

void Device::Number(Task* task) {
  MutexLock lock(mutex_);
  NumberLocked(task);
}

std::shared_ptr<const Task> Device::Launch(Task task) {
  MutexLock lock(mutex_);
  if (task.stream >= streams_.size()) return nullptr;
  Stream& stream = *streams_[task.stream];
  if (stream.tasks.size() >= kQueue) Advance();
  if (stream.tasks.size() >= kQueue &&
      !AdvanceUntil(lock, [&stream] { return stream.tasks.size() < kQueue; })) {
    return nullptr;
  }
  task.launch_ns = clock_.MonotonicRawNs();
  if (task.id == 0) NumberLocked(&task);
  task.after = std::exchange(stream.after, {});
  auto placed = std::make_shared<Task>(std::move(task));
  stream.tasks.push_back(placed);
  stream.last = placed;
  if (stream.tasks.size() % 64 == 0 || placed->kind != Task::kKernel) Advance();
  return placed;
}

void Device::WaitFor(uint32_t stream, std::shared_ptr<const Task> task) {
  MutexLock lock(mutex_);
  if (stream < streams_.size() && task != nullptr) {
    streams_[stream]->after.push_back(std::move(task));
  }
}

std::shared_ptr<const Task> Device::Last(uint32_t stream) {
  MutexLock lock(mutex_);
  return stream < streams_.size() ? streams_[stream]->last : nullptr;
}

bool Device::Resolve(Task& task, int64_t free_ns) {
  int64_t begin = std::max(task.launch_ns + kLaunchLatencyNs, free_ns + kTaskGapNs);
  for (const auto& before : task.after) {
    if (!before->known) return false;
    begin = std::max(begin, before->end_ns);
  }
  int64_t end = begin + task.duration_ns;
  if (task.group != nullptr) {
    // An operation begins when this rank's device reaches it, and ends as long after the last one.
    if (!task.arrived) task.group->Arrive(task.operation, begin);
    task.arrived = true;
    const std::optional<int64_t> last = task.group->LastArrival(task.operation);
    if (!last) return false;
    task.all_arrived_ns = std::max(begin, *last);
    end = task.all_arrived_ns + task.duration_ns;
  }
  task.begin_ns = begin;
  task.end_ns = end;
  task.known = true;
  task.after.clear();  // no chains of what is over
  return true;
}

void Device::Advance() {
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& stream : streams_) {
      while (stream->known < stream->tasks.size()) {
        Task& task = *stream->tasks[stream->known];
        if (!Resolve(task, stream->free_ns)) break;
        stream->free_ns = task.end_ns;
        ++stream->known;
        progress = true;
      }
    }
  }
  const int64_t now = clock_.MonotonicRawNs();
  for (const auto& stream : streams_) {
    while (stream->known > 0 && stream->tasks.front()->end_ns <= now) {
      Finish(*stream->tasks.front());
      stream->tasks.pop_front();
      --stream->known;
    }
  }
}

void Device::Log(const LogRecord& record) {
  if (!log_open_) return;
  if (record.kind == kTaskBegin && lost_begins_every_ > 0 && ++begins_ % lost_begins_every_ == 0) {
    return;
  }
  if (log_.size() >= kLogRecords) log_.pop_front();
  log_.push_back(record);
}

void Device::LogTask(const Task& task, uint32_t id, uint32_t entry, int64_t begin_ns, int64_t end_ns) {
  Log({kTaskBegin, task.stream, id, entry, begin_ns, 0, kNoModel});
  Log({kTaskEnd, task.stream, id, entry, end_ns, 0, kNoModel});
}

void Device::Finish(const Task& task) {
  if (task.kind == Task::kTrace) {
    Log({kTaskTrace, task.stream, task.id, task.tag, task.begin_ns, task.value, task.model});
  } else if (task.kind == Task::kCommunication) {
    // It waits for the others, moves the data, and reports it.
    const int64_t said_ns = task.end_ns - std::min(task.duration_ns, kNotifyNs);
    LogTask(task, task.id, kEntryNotifyWait, task.begin_ns, task.all_arrived_ns);
    LogTask(task, task.id + 1, kEntrySdma, task.all_arrived_ns, said_ns);
    LogTask(task, task.last_id, kEntryNotifyRecord, said_ns, task.end_ns);
  } else {
    LogTask(task, task.id, EntryOf(task), task.begin_ns, task.end_ns);
  }
  finished_(id_, task);
}

template <class Condition>
bool Device::AdvanceUntil(MutexLock& lock, Condition condition) {
  const int64_t deadline = clock_.MonotonicRawNs() + kPatienceNs;
  for (Advance(); !condition(); Advance()) {
    if (clock_.MonotonicRawNs() > deadline) return false;
    // Other ranks are other processes: nothing here could be notified.
    never_.WaitFor(lock, std::chrono::microseconds(100));
  }
  return true;
}

bool Device::Synchronize(uint32_t stream) {
  MutexLock lock(mutex_);
  if (stream >= streams_.size()) return true;
  Stream& waited = *streams_[stream];
  const std::shared_ptr<const Task> last = waited.last;
  if (last == nullptr) return true;
  return AdvanceUntil(lock, [&] { return last->known && last->end_ns <= clock_.MonotonicRawNs(); });
}

bool Device::SynchronizeAll() {
  MutexLock lock(mutex_);
  return AdvanceUntil(lock, [this]() REQUIRES(mutex_) {
    return std::ranges::all_of(streams_, [](const auto& stream) { return stream->tasks.empty(); });
  });
}

int Device::OpenLog() {
  MutexLock lock(mutex_);
  if (log_open_) return kLogBusy;
  Advance();  // what is over by now is not logged
  log_open_ = true;
  return 0;
}

int Device::CloseLog() {
  MutexLock lock(mutex_);
  log_open_ = false;
  log_.clear();
  return 0;
}

size_t Device::ReadLog(LogRecord* records, size_t most) {
  MutexLock lock(mutex_);
  Advance();
  const size_t count = std::min(most, log_.size());
  std::copy_n(log_.begin(), count, records);
  log_.erase(log_.begin(), log_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

}  // namespace profd::sim::acl
