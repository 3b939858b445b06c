#include "daemon/session/session_marks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/bytes.h"
#include "collectors/series.h"
#include "daemon/session/session_feed.h"

namespace profd {
namespace {

int RankOrder(const std::optional<int>& rank) {
  return rank.value_or(std::numeric_limits<int>::max());
}

std::unique_ptr<HostFileBuffer> NewTextBuffer(const std::shared_ptr<WriterSession>& dump, std::string_view collector, int device,
                                         std::string_view file) {
  FeedOptions options{.collector = std::string(collector), .device = device, .file = std::string(file)};
  return std::make_unique<HostFileBuffer>(dump, AddSessionFeed(*dump, std::move(options)));
}

uint64_t Written(const std::unique_ptr<HostFileBuffer>& records) {
  return records == nullptr ? 0 : records->feed()->counters().records.load(std::memory_order_relaxed);
}

}  // namespace

std::string_view MarkKindName(attach::MarkKind kind) {
  // None is 0; the ring's reader lets no others pass.
  constexpr std::array<std::string_view, 10> kNames = {"", "mark", "push", "pop", "step_begin", "step_end", "range_start", "range_end", "frame", "stack"};
  return kNames[static_cast<size_t>(kind)];
}

SessionMarks::SessionMarks(std::shared_ptr<WriterSession> dump, std::vector<Device> devices,
                           int64_t start_raw_ns, bool steps_only)
    : dump_(std::move(dump)),
      devices_(std::move(devices)),
      start_raw_ns_(start_raw_ns),
      steps_only_(steps_only) {}

void SessionMarks::Take(const TrainingProcess& process, const MarkBatch& batch) {
  ring_lost_ += batch.dropped;
  const auto own = starts_.find(batch.pid);
  const int64_t from_ns = own == starts_.end() ? start_raw_ns_ : own->second;
  for (const Mark& mark : batch.marks) {
    const bool step =
        mark.kind == attach::MarkKind::kStepBegin || mark.kind == attach::MarkKind::kStepEnd;
    if (mark.time_ns < from_ns) continue;
    const MarkLine line{mark.time_ns, batch.pid, batch.rank, mark.thread, MarkKindName(mark.kind),
                        mark.name, mark.value, mark.domain};
    if (mark.kind == attach::MarkKind::kFrame || mark.kind == attach::MarkKind::kStack) {
      if (takes_stacks_) WriteStack(line);
      continue;
    }
    if (steps_only_ && !step) continue;
    if (text_records_ == nullptr) text_records_ = NewTextBuffer(dump_, kMarksCollector, kHostDevice, kMarksFile);
    line_.clear();
    AppendMarkLine(line, &line_);
    text_records_->Add({}, line_);
    if (step) TakeStep(process, mark);
  }
  Flush();
}

void SessionMarks::WriteStack(const MarkLine& line) {
  if (stacks_records_ == nullptr) stacks_records_ = NewTextBuffer(dump_, kStacksCollector, kHostDevice, kStacksFile);
  line_.clear();
  AppendStackLine(line, &line_);
  stacks_records_->Add({}, line_);
}

// A step without both its records is none to the analyser; its begin may lie before the session.
void SessionMarks::EndStep(const TrainingProcess& process, int64_t time_ns, Step* step) {
  if (!step->begun) WriteStep(process, start_raw_ns_, *step->value, true);
  WriteStep(process, time_ns, *step->value, false);
  step->open = false;
}

// Nor is one with more than two: several threads may report it. A process that never reports where a step ends has it end
// where the next one begins.
void SessionMarks::TakeStep(const TrainingProcess& process, const Mark& mark) {
  Step& step = steps_[process.pid];
  const bool same = step.value == mark.value;
  if (mark.kind == attach::MarkKind::kStepEnd) {
    step.ends = true;
    if (same && step.open) EndStep(process, mark.time_ns, &step);
    if (!same && step.closed != mark.value) WriteStep(process, mark.time_ns, mark.value, false);
    return;
  }
  if (same) return;
  if (step.open && !step.ends) {
    EndStep(process, mark.time_ns, &step);
    step.closed = step.value;
  }
  step = {mark.value, true, true, step.ends, step.closed};
  WriteStep(process, mark.time_ns, mark.value, true);
}

bool SessionMarks::Owns(StepFile* file, const TrainingProcess& process) const {
  if (file->owner == process.pid) return true;
  if (file->owner != 0 && RankOrder(file->rank) <= RankOrder(process.rank)) return false;
  file->owner = process.pid;
  file->rank = process.rank;
  return true;
}

void SessionMarks::WriteStep(const TrainingProcess& process, int64_t time_ns, int64_t step,
                             bool begin) {
  for (const Device& device : devices_) {
    if (device.counter_hz <= 0) continue;
    if (std::ranges::find(process.devices, device.id) == process.devices.end()) {
      continue;
    }
    StepFile& file = step_files_[device.id];
    if (!Owns(&file, process)) continue;
    if (file.records == nullptr) file.records = NewTextBuffer(dump_, kStepTraceCollector, device.id, kStepTraceFile);
    // Added as integers: a counter of 2^53 and more would lose its last cycles as a double.
    const auto cycles = static_cast<int64_t>(static_cast<double>(time_ns - device.host_ns) *
                                             device.counter_hz / 1e9);
    if (cycles < 0 && static_cast<uint64_t>(-cycles) > device.device_count) continue;
    auto record = StepRecord(device.chip_id, device.device_count + static_cast<uint64_t>(cycles),
                             step, begin);
    file.records->Add({}, AsText(record));
  }
}

void SessionMarks::OnGone(pid_t pid) {
  steps_.erase(pid);
  for (auto& [device, file] : step_files_) {
    if (file.owner == pid) file.owner = 0;
  }
}

void SessionMarks::Flush() {
  if (text_records_ != nullptr) text_records_->Flush();
  if (stacks_records_ != nullptr) stacks_records_->Flush();
  for (auto& [device, file] : step_files_) {
    if (file.records != nullptr) file.records->Flush();
  }
}

uint64_t SessionMarks::written() const { return Written(text_records_); }

uint64_t SessionMarks::stacks_written() const { return Written(stacks_records_); }

uint64_t SessionMarks::dropped() const {
  return ring_lost_ + (text_records_ == nullptr ? 0 : text_records_->feed()->losses().Total().records);
}

void SessionMarks::EditManifest(Manifest* manifest) const {
  manifest->marks = written();
  manifest->dropped_marks = dropped();
  for (ManifestChannel& channel : manifest->channels) {
    bool ours = channel.collector == kMarksCollector || channel.collector == kStepTraceCollector ||
                channel.collector == kStacksCollector;
    if (ours && channel.channel == 0) channel.state = "finished";
  }
  if (ring_lost_ == 0) return;
  auto found = std::ranges::find(manifest->channels, kMarksCollector, &ManifestChannel::collector);
  if (found == manifest->channels.end()) {
    ManifestChannel channel{.collector = std::string(kMarksCollector), .state = "finished"};
    manifest->channels.push_back(std::move(channel));
    found = manifest->channels.end() - 1;
  }
  found->AddLoss(LossReason::kRingFull, ring_lost_, 0);
}

}  // namespace profd
