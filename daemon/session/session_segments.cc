// Sessions of several dumps: what a session recorded and lost is counted over all of them.
#include "daemon/session/session_segments.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "daemon/session/outcome_counts.h"

namespace profd {
namespace {

// Both are segments, or statuses of sessions of one segment.
constexpr auto kIsBefore = [](const auto& a, const auto& b) {
  return std::pair(a.started_ns(), a.dump_path()) < std::pair(b.started_ns(), b.dump_path());
};

// Sums, and what the first and the last segment say.
void Summarize(v1::SessionStatus* session) {
  auto& segments = *session->mutable_segments();
  std::ranges::sort(segments, kIsBefore);
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
  const auto row = std::ranges::find_if(rows, [&past](const v1::Outcome& one) {
    return one.collector() == past.collector() && one.has_device() == past.has_device() && one.device() == past.device();
  });
  if (row == rows.end()) {
    *into->add_outcomes() = past;
    return;
  }
  AddRecords(past.records(), {past.dropped_records(), past.dropped_bytes()}, &*row);
  row->set_bytes(row->bytes() + past.bytes());
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
  if (status.segments_size() == 1) out.set_number(status.segments(0).number());
  return out;
}

void AddSegment(const v1::SessionStatus& found, v1::SessionStatus* session) {
  AddCounts(found, session);
  *session->add_segments() = SegmentOf(found);
  Summarize(session);
}

void DropSegment(std::string_view dump, v1::SessionStatus* session) {
  auto& segments = *session->mutable_segments();
  for (int i = segments.size() - 1; i >= 0; --i) {
    if (BaseName(segments[i].dump_path()) != dump) continue;
    session->set_dump_bytes(session->dump_bytes() - std::min(session->dump_bytes(), segments[i].bytes()));
    segments.DeleteSubrange(i, 1);
  }
  if (BaseName(session->dump_path()) != dump) return;
  session->set_dump_path(segments.empty() ? "" : segments.rbegin()->dump_path());
}

void PastSegments::Add(v1::SessionStatus segment) {
  Forget(BaseName(segment.dump_path()));
  segments_.push_back(std::move(segment));
  std::ranges::sort(segments_, kIsBefore);
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

}  // namespace profd
