#include "daemon/session/session_early.h"

#include <algorithm>
#include <cstring>

#include "daemon/session/session_activity.h"
#include "daemon/session/session_marks.h"

namespace profd {

void SessionEarly::Keep(MarksOf* of, const Mark& mark) {
  const size_t bytes = sizeof(KeptMark) + mark.name.size() + mark.domain.size();
  if (mark_bytes_ + bytes > kMaxBytes) {
    ++of->dropped;
    return;
  }
  mark_bytes_ += bytes;
  KeptMark& kept = of->marks.emplace_back(KeptMark{mark, std::string(mark.name), std::string(mark.domain)});
  kept.mark.name = kept.mark.domain = {};
}

void SessionEarly::Take(const TrainingProcess& process, const MarkBatch& batch) {
  MarksOf& of = marks_[batch.pid];
  of.process = process;
  of.dropped += batch.dropped;
  for (const Mark& mark : batch.marks) {
    const bool begins = start_step_ && mark.kind == attach::MarkKind::kStepBegin;
    if (begins && mark.value >= *start_step_ && !of.begin_ns) of.begin_ns = mark.time_ns;
    // Steps before are none of the session's, nor what was lost in them.
    if (start_step_ && !of.begin_ns) {
      of.dropped = 0;
      continue;
    }
    Keep(&of, mark);
  }
}

void SessionEarly::Take(const ActivityBatch& batch) {
  KeptBatch& kept = batches_.emplace_back();
  kept.batch = batch;
  size_t records = 0;
  for (const ActivityFrame& frame : batch.frames) records += frame.records.size();
  // A batch may have nothing but losses: it takes space all the same.
  kept.size = sizeof(KeptBatch) + batch.frames.size() * sizeof(ActivityFrame) + records;
  kept.bytes = std::make_unique<std::byte[]>(records);
  kept.frames.assign(batch.frames.begin(), batch.frames.end());
  std::byte* at = kept.bytes.get();
  for (ActivityFrame& frame : kept.frames) {
    const size_t bytes = frame.records.size();
    if (bytes > 0) std::memcpy(at, frame.records.data(), bytes);
    frame.records = {at, bytes};
    at += bytes;
  }
  activity_bytes_ += kept.size;
  Evict();
}

void SessionEarly::Evict() {
  while (activity_bytes_ > kMaxBytes && !batches_.empty()) {
    const KeptBatch& oldest = batches_.front();
    Evicted& evicted = evicted_[oldest.batch.attach_id];
    ActivityBatch& counts = evicted.counts;
    counts.attach_id = oldest.batch.attach_id;
    counts.pid = oldest.batch.pid;
    counts.rank = oldest.batch.rank;
    counts.names = oldest.batch.names;
    counts.dropped += oldest.batch.dropped;
    counts.lost_bytes += oldest.batch.lost_bytes;
    counts.cost_ns += oldest.batch.cost_ns;
    counts.names_refused += oldest.batch.names_refused;
    for (const ActivityFrame& frame : oldest.frames) {
      counts.dropped += attach::ActivityRecordBytes(static_cast<uint16_t>(frame.type)) > 0 ? frame.count : 0;
      evicted.last_ns = std::max(evicted.last_ns, frame.base_ns);
    }
    activity_bytes_ -= oldest.size;
    batches_.pop_front();
  }
}

void SessionEarly::OnGone(uint64_t attach_id, pid_t pid) {
  // Without its begin it has none of the session's.
  const auto found = marks_.find(pid);
  if (start_step_ && (found == marks_.end() || !found->second.begin_ns)) {
    std::erase_if(batches_, [&](const KeptBatch& kept) {
      if (kept.batch.attach_id == attach_id) activity_bytes_ -= kept.size;
      return kept.batch.attach_id == attach_id;
    });
    evicted_.erase(attach_id);
  }
}

std::optional<int64_t> SessionEarly::BeginOf(pid_t pid) const {
  const auto found = marks_.find(pid);
  return found == marks_.end() ? std::nullopt : found->second.begin_ns;
}

std::vector<Mark> SessionEarly::StepsOf(pid_t pid) const {
  std::vector<Mark> steps;
  const auto found = marks_.find(pid);
  if (found == marks_.end()) return steps;
  for (const KeptMark& kept : found->second.marks) {
    if (kept.mark.kind == attach::MarkKind::kStepBegin || kept.mark.kind == attach::MarkKind::kStepEnd) steps.push_back(kept.mark);
  }
  return steps;
}

void SessionEarly::HandOver(SessionMarks* marks, SessionActivity* activity) {
  for (const auto& [pid, of] : marks_) {
    if (of.begin_ns && marks != nullptr) marks->SetStart(pid, *of.begin_ns);
    if (of.begin_ns && activity != nullptr) activity->SetStart(pid, *of.begin_ns);
  }
  std::vector<Mark> out;
  for (auto& [pid, of] : marks_) {
    if (marks == nullptr || (of.marks.empty() && of.dropped == 0)) continue;
    out.clear();
    for (const KeptMark& kept : of.marks) {
      Mark& mark = out.emplace_back(kept.mark);
      mark.name = kept.name;
      mark.domain = kept.domain;
    }
    marks->Take(of.process, {pid, of.process.rank, out, of.dropped});
  }
  marks_.clear();
  mark_bytes_ = 0;
  for (auto& [attach_id, evicted] : evicted_) {
    if (activity == nullptr) break;
    // How many of them began after the step is not known.
    if (evicted.last_ns < activity->StartOf(evicted.counts.pid)) evicted.counts.dropped = 0;
    activity->Take(evicted.counts);
  }
  for (KeptBatch& kept : batches_) {
    if (activity == nullptr) break;
    kept.batch.frames = kept.frames;
    activity->Take(kept.batch);
  }
  batches_.clear();
  evicted_.clear();
  activity_bytes_ = 0;
}

}  // namespace profd
