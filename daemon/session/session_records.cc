#include "daemon/session/session_records.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/metrics/self_metrics.h"

namespace profd {
namespace {

SessionBrief BriefOf(const SessionRecord& record) {
  const Session& session = *record.live;
  SessionBrief brief{.id = session.id(), .uid = record.uid, .job_id = session.spec().target().job_id(),
                     .priority = PriorityOf(session.spec()), .order = record.order,
                     .ending = session.state() == v1::Session::STATE_STOPPING || session.finished(),
                     .end_wall_ns = session.KnownEndWallNs()};
  if (session.spec().no_dump()) return brief;
  brief.written = session.output().bytes();
  if (session.plan().storage_limited) brief.reserved = session.plan().max_bytes;
  return brief;
}

}  // namespace

std::string NewId() {
  std::array<uint8_t, 6> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

KeptDump NewDump(std::string_view path, const std::string& session_id, uint32_t uid, const v1::SessionSpec& spec) {
  KeptDump dump{.name = std::string(BaseName(path)), .uid = uid, .session_id = session_id, .job_id = spec.target().job_id(),
                .label = spec.label()};
  if (auto fleet = spec.metadata().find(kFleetMetadata); fleet != spec.metadata().end()) dump.fleet = fleet->second;
  return dump;
}

SessionRecord& SessionRecords::AddLive(std::shared_ptr<Session> session, std::shared_ptr<SessionStateFile> state_file) {
  DCHECK_ON(control_);
  SessionRecord& record = records_[session->id()];
  record.uid = session->owner().uid;
  record.order = next_order_++;
  record.live = std::move(session);
  record.state_file = std::move(state_file);
  return record;
}

void SessionRecords::AddEnded(v1::Session ended) {
  DCHECK_ON(control_);
  const std::string& id = ended.session_id();
  if (id.empty() || records_.contains(id)) return;
  v1::SessionStatus& status = *ended.mutable_status();
  if (!status.dump_path().empty()) {
    *status.add_segments() = SegmentOf(status);
    status.mutable_segments(0)->set_number(1);
  }
  if (!status.dump_path().empty() && dumps_ != nullptr) {
    KeptDump dump = NewDump(status.dump_path(), id, ended.owner().uid(), ended.spec());
    dump.recorder = true;
    dump.started_wall_ns = status.started_ns();
    const std::string name = dump.name;
    dumps_->Opened(std::move(dump));
    dumps_->Closed(name, DumpState::kDone, status.dump_bytes());
  }
  Insert(ended, next_order_++);
}

void SessionRecords::AddFound(const v1::Session& found) {
  DCHECK_ON(control_);
  Insert(found, found_order_--);
}

void SessionRecords::Insert(const v1::Session& ended, uint64_t order) {
  records_.emplace(ended.session_id(), SessionRecord{.uid = ended.owner().uid(), .order = order, .ended = EndedSession(ended)});
  Forget();
}

void SessionRecords::End(SessionRecord& record, const v1::Session& view) {
  DCHECK_ON(control_);
  record.ended.Set(view);
  record.live.reset();
  record.state_file.reset();
  Forget();
}

void SessionRecords::Forget() {
  auto keep = static_cast<size_t>(config_.keep_finished);
  size_t finished = records_.size() - active();
  while (finished > keep) {
    auto oldest = records_.end();
    for (auto it = records_.begin(); it != records_.end(); ++it) {
      if (it->second.live != nullptr) continue;
      if (oldest == records_.end() || it->second.order < oldest->second.order) oldest = it;
    }
    records_.erase(oldest);
    --finished;
  }
}

void SessionRecords::OnDumpRemoved(const std::string& name, std::string_view reason) {
  DCHECK_ON(control_);
  for (auto& [id, record] : records_) {
    if (record.live != nullptr) {
      record.live->past().Forget(name);
      continue;
    }
    std::erase_if(record.segments, [&name](const EndedSession& one) { return BaseName(one.Get().status().dump_path()) == name; });
    if (!record.ended.Mentions(name)) continue;
    record.ended.Edit([&](v1::Session& view) {
      const int before = view.status().segments_size();
      DropSegment(name, view.mutable_status());
      if (view.status().segments_size() == before || reason == kReasonRequest) return;
      view.mutable_status()->add_warnings(fmt::format("{} was removed by retention ({})", name, reason));
    });
  }
}

SessionRecord* SessionRecords::Find(const std::string& id) {
  DCHECK_ON(control_);
  auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second;
}

const SessionRecord* SessionRecords::Find(const Peer& peer, const std::string& id) const {
  DCHECK_ON(control_);
  auto found = records_.find(id);
  return found == records_.end() || !peer.Owns(found->second.uid) ? nullptr : &found->second;
}

Status SessionRecords::NoSession(const std::string& id_untrusted) {
  return NotFound(fmt::format("session {} not found, or not owned by you", log::Quote(id_untrusted)));
}

std::vector<SessionRecord*> SessionRecords::Live() {
  DCHECK_ON(control_);
  std::vector<SessionRecord*> live;
  for (auto& [id, record] : records_) {
    if (record.live != nullptr) live.push_back(&record);
  }
  return live;
}

size_t SessionRecords::active() const {
  DCHECK_ON(control_);
  return static_cast<size_t>(std::ranges::count_if(records_, [](const auto& r) { return r.second.live != nullptr; }));
}

std::vector<SessionBrief> SessionRecords::Briefs() const {
  DCHECK_ON(control_);
  std::vector<SessionBrief> briefs;
  for (const auto& [id, record] : records_) {
    if (record.live != nullptr) briefs.push_back(BriefOf(record));
  }
  return briefs;
}

v1::Session SessionRecords::View(const SessionRecord& record) const {
  v1::Session view;
  if (record.live != nullptr) {
    record.live->Fill(&view);
    return view;
  }
  view = record.ended.Get();
  view.mutable_status()->set_pinned(dumps_ != nullptr && view.status().segments_size() > 0 &&
                  std::ranges::all_of(view.status().segments(), [this](const v1::Segment& segment) {
                    const KeptDump* dump = dumps_->Find(BaseName(segment.dump_path()));
                    return dump != nullptr && dump->pinned;
                  }));
  return view;
}

Result<v1::Session> SessionRecords::Get(const Peer& peer, const std::string& id_untrusted) const {
  DCHECK_ON(control_);
  auto found = records_.find(id_untrusted);
  if (found == records_.end() || !peer.Sees(found->second.uid)) return NoSession(id_untrusted);
  v1::Session view = View(found->second);
  for (v1::Outcome& outcome : *view.mutable_status()->mutable_outcomes()) {
    if (outcome.result() == v1::Outcome::RESULT_BUSY) *outcome.mutable_detail() += OwnerOf(peer, outcome.holder());
  }
  return view;
}

v1::ListSessionsResponse SessionRecords::List(const Peer& peer, const v1::ListSessionsRequest& request_untrusted) const {
  DCHECK_ON(control_);
  std::vector<const SessionRecord*> records;
  for (const auto& [id, record] : records_) {
    if (peer.Sees(record.uid)) records.push_back(&record);
  }
  std::ranges::sort(records, {}, &SessionRecord::order);
  v1::ListSessionsResponse response;
  for (const SessionRecord* record : records) {
    v1::Session view = View(*record);
    if (request_untrusted.active_only() && IsFinal(view)) continue;
    if (!request_untrusted.job_id().empty() && view.spec().target().job_id() != request_untrusted.job_id()) {
      continue;
    }
    *response.add_sessions() = std::move(view);
  }
  return response;
}

// Whose the session is and until when it runs: how much is shown depends on the caller.
std::string SessionRecords::OwnerOf(const Peer& peer, const std::string& holder) const {
  auto found = records_.find(holder);
  if (found == records_.end() || found->second.live == nullptr) return {};
  return fmt::format(" ({})", DescribeHolder(BriefOf(found->second), peer, clock_.WallNs()));
}

Status SessionRecords::AnnotateWithOwner(const Peer& peer, const Status& status) const {
  DCHECK_ON(control_);
  if (status.problems().empty()) return status;
  std::vector<Problem> problems(status.problems().begin(), status.problems().end());
  for (Problem& problem : problems) problem.text += OwnerOf(peer, problem.holder);
  return {status.code(), std::move(problems)};
}

std::optional<uint32_t> SessionRecords::UidOf(const std::string& id) const {
  DCHECK_ON(control_);
  auto found = records_.find(id);
  if (found == records_.end() || found->second.live == nullptr) return std::nullopt;
  return found->second.uid;
}

std::string SessionRecords::ProfilingOn(const Peer& peer, std::span<const uint32_t> devices) const {
  DCHECK_ON(control_);
  const auto on = [devices](const std::vector<int>& used) {
    return std::ranges::any_of(used, [devices](int device) {
      return std::ranges::find(devices, static_cast<uint32_t>(device)) != devices.end();
    });
  };
  for (const auto& [id, record] : records_) {
    if (record.live == nullptr || record.live->finished()) continue;
    const Session& session = *record.live;
    if (session.plan().collect.empty() || session.job() == nullptr) continue;
    const std::vector<TrainingProcess> processes = session.job()->Processes();
    const bool there = std::ranges::any_of(processes, [&](const TrainingProcess& process) {
      return on(process.devices.empty() ? session.plan().devices : process.devices);
    });
    if (there || (processes.empty() && on(session.plan().devices))) {
      return DescribeHolder(BriefOf(record), peer, clock_.WallNs());
    }
  }
  return {};
}

std::vector<ActiveSession> SessionRecords::ActiveSessions() const {
  const Peer everybody{.admin = true};
  v1::ListSessionsRequest request;
  request.set_active_only(true);
  std::vector<ActiveSession> active;
  const v1::ListSessionsResponse all = List(everybody, request);
  for (const v1::Session& session : all.sessions()) {
    active.push_back({session.session_id(), session.spec().target().job_id(), session.owner().uid()});
  }
  return active;
}

void SessionRecords::UpdateMetrics(SelfMetrics* self) const {
  DCHECK_ON(control_);
  std::map<std::string_view, size_t> by_state{{"scheduled", 0}, {"starting", 0}, {"running", 0},
                                              {"stopping", 0},  {"done", 0},     {"failed", 0}};
  for (const auto& [id, record] : records_) {
    const v1::Session::State state = record.live == nullptr ? record.ended.state() : record.live->state();
    if (record.live == nullptr) {
      ++by_state[state == v1::Session::STATE_DONE ? "done" : "failed"];
    } else {
      ++by_state[state == v1::Session::STATE_SCHEDULED  ? "scheduled"
                 : state == v1::Session::STATE_RUNNING  ? "running"
                 : state == v1::Session::STATE_STOPPING ? "stopping"
                                                        : "starting"];
    }
  }
  for (const auto& [state, count] : by_state) self->Set(MetricByName("profd_sessions"), count, state);
}

}  // namespace profd
