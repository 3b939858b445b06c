#include "daemon/session/live_sessions.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/session/session_state_file.h"

namespace profd {

SessionRecord& LiveSessions::Begin(const std::string& id, const Peer& peer, Session::Request request) {
  DCHECK_ON(deps_.session.control);
  auto state_file = std::make_shared<SessionStateFile>(deps_.states, deps_.session.host.clock, id, deps_.boot_id, peer, request);
  auto session = std::make_shared<Session>(deps_.session, id, Session::Owner{peer.uid, peer.gid, peer.pid}, std::move(request),
                                           [this](const Session& changed) { OnChange(changed); });
  SessionRecord& record = deps_.records.AddLive(std::move(session), std::move(state_file));
  if (on_begun_ != nullptr) on_begun_();
  return record;
}

void LiveSessions::OnChange(const Session& session) {
  if (!session.finished()) {
    if (SessionRecord* record = deps_.records.Find(session.id()); record != nullptr) NoteProgress(*record);
    watches_.Notify(session.id());
    return;
  }
  // The session is in the middle of its own method: freeze it when that has returned.
  deps_.session.control.Post([this, id = session.id()] {
    Freeze(id);
    watches_.Notify(id);
  });
}

// Its state has changed: what is kept of it, and of its dump.
void LiveSessions::NoteProgress(SessionRecord& record) {
  const Session& session = *record.live;
  const std::string& path = session.output().path();
  DumpRetention* dumps = deps_.dumps_or_null;
  if (dumps != nullptr && !path.empty() && dumps->Find(BaseName(path)) == nullptr) {
    KeptDump dump = NewDump(path, session.id(), record.uid, session.spec());
    dump.started_wall_ns = session.clocks().start_wall_ns();
    dump.segment = session.past().NextNumber();
    dumps->Opened(std::move(dump));
  }
  record.state_file->Save(session);
}

void LiveSessions::Freeze(const std::string& id) {
  SessionRecord* record = deps_.records.Find(id);
  if (record == nullptr || record->live == nullptr) return;
  const std::shared_ptr<Session> session = record->live;
  v1::Session view;
  session->Fill(&view);
  log::Info("session ended", {{"session", id},
                              {"state", v1::Session::State_Name(view.status().state())},
                              {"reason", view.status().reason()},
                              {"records", view.status().records()},
                              {"bytes", view.status().dump_bytes()},
                              {"dropped", view.status().dropped_records()},
                              {"removed", view.status().removed_records()}});
  ++ended_total_;
  deps_.states.DropSession(id);
  deps_.records.End(*record, view);
  if (session->state() == v1::Session::STATE_INTERRUPTED) {
    ++closing_;
    session->WhenClosed([this](const Session& closed) { OnClosed(closed); });
    return;
  }
  NoteDumpClosed(*session, session->state() == v1::Session::STATE_DONE ? DumpState::kDone : DumpState::kFailed);
  // A start that failed, or never happened, leaves no dump worth keeping; the caller knows its reason.
  if (session->discards_dump()) RemoveDump(*session);
  EndIfIdle();
}

// The dump of a session that had to end before it.
void LiveSessions::OnClosed(const Session& session) {
  --closing_;
  SessionRecord* record = deps_.records.Find(session.id());
  if (record != nullptr && record->live == nullptr) {
    v1::Session view;
    session.Fill(&view);
    view.mutable_status()->add_warnings("the dump was completed later");
    record->ended.Set(view);
  }
  log::Info("dump completed after its session's end", {{"session", session.id()}, {"dump", BaseName(session.output().path())}});
  if (session.discards_dump()) {
    RemoveDump(session);
  } else {
    NoteDumpClosed(session, DumpState::kDone);
  }
  EndIfIdle();
}

void LiveSessions::NoteDumpClosed(const Session& session, DumpState state) {
  const std::string dump(BaseName(session.output().path()));
  if (deps_.dumps_or_null == nullptr || dump.empty()) return;
  if (const Manifest* manifest = session.output().unended(); manifest != nullptr) {
    deps_.dumps_or_null->CompleteLater(dump, *manifest);
  } else {
    deps_.dumps_or_null->Closed(dump, state, 0);
  }
}

void LiveSessions::RemoveDump(const Session& session) {
  const std::string dump(BaseName(session.output().path()));
  if (!dump.empty()) deps_.remover.Remove(dump, kReasonRequest, nullptr);
}

void LiveSessions::EndIfIdle() {
  if (shutdown_done_ && deps_.records.active() + closing_ == 0) std::exchange(shutdown_done_, nullptr)();
}

void LiveSessions::Tick() {
  DCHECK_ON(deps_.session.control);
  const std::vector<SessionRecord*> live = deps_.records.Live();
  std::map<int, DeviceValues> latest;
  if (!live.empty()) {
    latest = ReadDevices(deps_.session.store, deps_.session.host.devices, deps_.session.host.clock.MonotonicRawNs());
  }
  for (SessionRecord* record : live) record->live->Tick(latest);
  for (SessionRecord* record : live) {
    if (record->state_file->IsStale(*record->live)) record->state_file->Save(*record->live);
  }
  const std::vector<SessionBrief> briefs = deps_.records.Briefs();
  if (const SessionBrief* over = FindOverwriter(briefs, deps_.config); over != nullptr) {
    deps_.records.Find(over->id)->live->Stop(
        fmt::format("the sessions of uid {} have written {} MB, the limit for one user "
                    "(limits.max_dump_mb_per_uid)",
                    over->uid, deps_.config.max_dump_mb_per_uid));
  }
}

// Sessions that grow, where nothing is left to be removed, end: the youngest first.
void LiveSessions::CheckDiskSpace() {
  DCHECK_ON(deps_.session.control);
  if (deps_.dumps_or_null == nullptr) return;
  DumpRetention& dumps = *deps_.dumps_or_null;
  for (const SessionRecord* record : deps_.records.Live()) {
    const SessionOutput& output = record->live->output();
    if (!output.path().empty()) dumps.Grown(BaseName(output.path()), output.bytes(), output.queued_bytes());
  }
  QuotaPlan plan = dumps.Enforce();
  constexpr std::string_view kNothing = "retention can remove nothing more";
  for (uint32_t uid : plan.over_uids) {
    EndYoungest(uid, fmt::format("the dumps of uid {} take all of the {} MB one user may keep "
                                 "(limits.max_kept_mb_per_uid); {}",
                                 uid, deps_.config.max_kept_mb_per_uid, kNothing));
  }
  if (plan.over_total) {
    EndYoungest(std::nullopt, fmt::format("dumps take all of the {} MB they may (dump.max_total_mb); {}",
                                          deps_.config.max_total_mb, kNothing));
  }
}

// Of those with a dump, unless one is ending already.
void LiveSessions::EndYoungest(std::optional<uint32_t> uid, const std::string& why) {
  const SessionRecord* youngest = nullptr;
  for (const SessionRecord* record : deps_.records.Live()) {
    if (record->live->spec().no_dump() || (uid && record->uid != *uid)) continue;
    if (record->live->stopping()) return;
    if (youngest == nullptr || record->order > youngest->order) youngest = record;
  }
  if (youngest != nullptr) youngest->live->Stop(why);
}

void LiveSessions::SaveStates() {
  DCHECK_ON(deps_.session.control);
  for (SessionRecord* record : deps_.records.Live()) record->state_file->Save(*record->live);
}

void LiveSessions::Shutdown(std::string reason, std::function<void()> done) {
  DCHECK_ON(deps_.session.control);
  shutting_down_ = true;
  shutdown_done_ = std::move(done);
  EndIfIdle();
  for (SessionRecord* record : deps_.records.Live()) record->live->Stop(reason);
}

}  // namespace profd
