// Sessions of several dumps: what a session recorded and lost is counted over all of them.
#include "daemon/session/session_segments.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "daemon/session/session_manager.h"

namespace profd {
namespace {

// Both are segments, or statuses of sessions of one segment.
constexpr auto kIsBefore = [](const auto& a, const auto& b) {
  return std::pair(a.started_ns(), a.dump_path()) < std::pair(b.started_ns(), b.dump_path());
};

// Sums, and what the first and the last segment say.
void Summarize(v1::SessionStatus* session) {
  auto& segments = *session->mutable_segments();
  std::sort(segments.begin(), segments.end(), kIsBefore);
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (const v1::Segment& segment : segments) {
    bytes += segment.bytes();
    records += segment.records();
  }
  session->set_dump_bytes(bytes);
  session->set_records(records);
  if (segments.empty()) return;
  session->set_started_ns(segments.begin()->started_ns());
  const v1::Segment& last = *segments.rbegin();
  session->set_dump_path(last.dump_path());
  session->set_state(last.state());
  session->set_reason(last.reason());
  if (last.has_ended_ns()) session->set_ended_ns(last.ended_ns());
}

// The counts of a collector's row, which may have been there in an earlier segment only (a device that joined later).
void AddOutcome(const v1::Outcome& past, v1::SessionStatus* into) {
  auto& rows = *into->mutable_outcomes();
  const auto row = std::find_if(rows.begin(), rows.end(), [&past](const v1::Outcome& one) {
    return one.collector() == past.collector() && one.has_device() == past.has_device() && one.device() == past.device();
  });
  if (row == rows.end()) {
    *into->add_outcomes() = past;
    return;
  }
  row->set_records(row->records() + past.records());
  row->set_bytes(row->bytes() + past.bytes());
  row->set_dropped_records(row->dropped_records() + past.dropped_records());
  row->set_dropped_bytes(row->dropped_bytes() + past.dropped_bytes());
  row->set_garbage_bytes(row->garbage_bytes() + past.garbage_bytes());
  if (past.thinned()) row->set_thinned(true);
  if (past.rebased()) row->set_rebased(true);
}

// But for bytes and records, which each segment is shown with.
void AddCounts(const v1::SessionStatus& past, v1::SessionStatus* into) {
  into->set_dropped_records(into->dropped_records() + past.dropped_records());
  into->set_dropped_bytes(into->dropped_bytes() + past.dropped_bytes());
  into->set_removed_records(into->removed_records() + past.removed_records());
  into->set_removed_for_space(into->removed_for_space() + past.removed_for_space());
  into->set_marks(into->marks() + past.marks());
  into->set_dropped_marks(into->dropped_marks() + past.dropped_marks());
  for (const v1::Outcome& outcome : past.outcomes()) AddOutcome(outcome, into);
}

}  // namespace

v1::Segment SegmentOf(const v1::SessionStatus& status) {
  v1::Segment out;
  out.set_dump_path(status.dump_path());
  out.set_state(status.state());
  out.set_reason(status.reason());
  out.set_started_ns(status.started_ns());
  if (status.has_ended_ns()) out.set_ended_ns(status.ended_ns());
  out.set_bytes(status.dump_bytes());
  out.set_records(status.records());
  return out;
}

void PastSegments::Add(v1::SessionStatus segment) {
  Forget(BaseName(segment.dump_path()));
  segments_.push_back(std::move(segment));
  std::sort(segments_.begin(), segments_.end(), kIsBefore);
}

void PastSegments::Forget(std::string_view dump) {
  std::erase_if(segments_, [dump](const v1::SessionStatus& one) { return BaseName(one.dump_path()) == dump; });
}

void PastSegments::Fill(v1::SessionStatus* out) const {
  for (const v1::SessionStatus& segment : segments_) {
    *out->add_segments() = SegmentOf(segment);
    out->set_dump_bytes(out->dump_bytes() + segment.dump_bytes());
    out->set_records(out->records() + segment.records());
    AddCounts(segment, out);
  }
}

void SessionManager::AddFound(v1::Session found) {
  DCHECK_ON(deps_.session.control);
  const std::string id = found.session_id();
  const v1::Segment segment = SegmentOf(found.status());
  if (id.empty() || segment.dump_path().empty()) return;
  if (withdrawn_.contains(id)) {
    deps_.remover.Remove(std::string(BaseName(segment.dump_path())), kReasonRequest, [](Result<uint64_t>) {});
    return;
  }
  auto known = records_.find(id);
  if (known == records_.end()) {
    Record record;
    record.uid = found.owner().uid();
    *found.mutable_status()->add_segments() = segment;
    record.frozen.Set(found);
    record.order = found_order_--;
    records_.emplace(id, std::move(record));
    Forget();
    return;
  }
  Record& record = known->second;
  // A manifest may claim any id; whose directory it is decides.
  if (record.uid != found.owner().uid()) return;
  if (record.live != nullptr) {
    if (record.live->output().path() != segment.dump_path()) record.live->past().Add(std::move(*found.mutable_status()));
    return;
  }
  // It may go on, and then has each of them.
  if (record.frozen.state() == v1::Session::STATE_INTERRUPTED && record.not_continued.empty()) {
    if (record.segments.empty() && record.frozen.Get().status().segments_size() > 0) record.segments.push_back(record.frozen);
    record.segments.emplace_back(found);
  }
  // The newest was first, and has what else is reported of the complete session.
  record.frozen.Edit([&](v1::Session& view) {
    v1::SessionStatus& status = *view.mutable_status();
    AddCounts(found.status(), &status);
    *status.add_segments() = segment;
    Summarize(&status);
    // The manifest of its dump does not have it.
    if (status.state() == v1::Session::STATE_INTERRUPTED && !record.not_continued.empty()) {
      status.set_reason(record.not_continued);
    }
  });
}

std::vector<v1::SessionStatus> SessionManager::SegmentsOf(const Record& record) {
  std::vector<v1::SessionStatus> segments;
  for (const EndedSession& one : record.segments) segments.push_back(one.Get().status());
  if (!record.segments.empty()) return segments;
  v1::Session only = record.frozen.Get();
  if (only.status().segments_size() > 0) segments.push_back(std::move(*only.mutable_status()));
  return segments;
}

}  // namespace profd
