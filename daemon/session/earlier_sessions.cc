#include "daemon/session/earlier_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "daemon/session/session_segments.h"
#include "daemon/session/session_state_file.h"

namespace profd {
namespace {

// A session that takes the daemon with it each time does not do so for ever.
constexpr uint32_t kMaxSegments = 64;
constexpr std::string_view kNotContinued = "profd ended before the session did";

// How many dumps it has had; some may be gone. `dump_made`: the last one that it was to have is there, or was.
uint32_t SegmentsSoFar(const state::StoredSession& stored, bool dump_made) {
  const uint32_t last = std::max(stored.segment(), static_cast<uint32_t>(stored.segments_size()) + 1);
  return dump_made ? last : last - 1;
}

// Why it is over, by its spec; empty if it is not. *left_ms: what is left of the duration.
std::string WhyOver(const state::StoredSession& stored, bool same_boot, const Clock& clock,
                    int64_t* left_ms) {
  if (!stored.ending().empty()) return "it was being ended: " + stored.ending();
  if (const uint32_t segments = SegmentsSoFar(stored, !stored.dump().empty()); segments >= kMaxSegments) {
    return fmt::format("it has had {} segments", segments);
  }
  const v1::SessionSpec::Schedule& schedule = stored.spec().schedule();
  if (schedule.has_steps() && !schedule.has_start_step() && stored.steps_done() >= schedule.steps()) {
    return fmt::format("its {} steps were done", schedule.steps());
  }
  if (!schedule.has_duration_ms()) return {};
  *left_ms = static_cast<int64_t>(schedule.duration_ms());
  int64_t ran_ns = 0;
  if (stored.has_started_ns()) {
    ran_ns = same_boot ? clock.MonotonicRawNs() - stored.started_raw_ns()
                       : clock.WallNs() - stored.started_ns();
  } else if (schedule.has_start_at_ns()) {
    ran_ns = clock.WallNs() - schedule.start_at_ns();
  }
  *left_ms -= std::max<int64_t>(ran_ns, 0) / kNsPerMs;
  if (*left_ms <= 0) return "its duration ended meanwhile";
  return {};
}

std::vector<v1::SessionStatus> SegmentsOf(const SessionRecord& record) {
  std::vector<v1::SessionStatus> segments;
  for (const EndedSession& one : record.segments) segments.push_back(one.Get().status());
  if (!record.segments.empty()) return segments;
  v1::Session only = record.ended.Get();
  if (only.status().segments_size() > 0) segments.push_back(std::move(*only.mutable_status()));
  return segments;
}

}  // namespace

void EarlierSessions::AddFound(v1::Session found) {
  DCHECK_ON(deps_.session.control);
  const std::string id = found.session_id();
  const std::string path = found.status().dump_path();
  if (id.empty() || path.empty()) return;
  if (withdrawn_.contains(id)) {
    deps_.remover.Remove(std::string(BaseName(path)), kReasonRequest, nullptr);
    return;
  }
  SessionRecord* const record = deps_.records.Find(id);
  if (record == nullptr) {
    deps_.records.AddFound(found);
    return;
  }
  // A manifest may claim any id; whose directory it is decides.
  if (record->uid != found.owner().uid()) return;
  if (record->live != nullptr) {
    if (record->live->output().path() != path) record->live->past().Add(std::move(*found.mutable_status()));
    return;
  }
  // It may go on, and then has each of them.
  if (record->ended.state() == v1::Session::STATE_INTERRUPTED && record->not_continued.empty()) {
    if (record->segments.empty() && record->ended.Get().status().segments_size() > 0) record->segments.push_back(record->ended);
    record->segments.emplace_back(found);
  }
  // The newest was first, and has what else is reported of the complete session.
  record->ended.Edit([&](v1::Session& view) {
    v1::SessionStatus& status = *view.mutable_status();
    AddSegment(found.status(), &status);
    // The manifest of its dump does not have it.
    if (status.state() == v1::Session::STATE_INTERRUPTED && !record->not_continued.empty()) {
      status.set_reason(record->not_continued);
      if (status.dump_path() == path) KeepReason(status);
    }
  });
}

// In its last dump, which is all that the next daemon has of it.
void EarlierSessions::KeepReason(const v1::SessionStatus& session) const {
  if (deps_.dumps_or_null == nullptr || session.dump_path().empty()) return;
  deps_.dumps_or_null->KeepReason(std::string(BaseName(session.dump_path())), session.reason());
}

// The session stays as its dumps show it; one without any is shown for its reason.
void EarlierSessions::GiveUp(const state::StoredSession& stored, const std::string& why) {
  const std::string& id = stored.session_id();
  const std::string reason = fmt::format("{}; not continued: {}", kNotContinued, why);
  log::Info("session not continued", {{"session", id}, {"why", why}});
  deps_.states.DropSession(id);
  if (SessionRecord* known = deps_.records.Find(id); known != nullptr) {
    known->not_continued = reason;
    known->segments.clear();
    if (known->ended.state() == v1::Session::STATE_INTERRUPTED) {
      known->ended.Edit([&](v1::Session& view) {
        view.mutable_status()->set_reason(reason);
        KeepReason(view.status());
        SessionStatistics::Of(stored).Fill(view.mutable_status());
      });
    }
    return;
  }
  v1::Session session;
  session.set_session_id(id);
  session.mutable_owner()->set_uid(stored.peer().uid());
  session.mutable_owner()->set_pid(stored.peer().pid());
  *session.mutable_spec() = stored.spec();
  session.mutable_status()->set_state(v1::Session::STATE_INTERRUPTED);
  session.mutable_status()->set_reason(reason);
  if (stored.has_started_ns()) session.mutable_status()->set_started_ns(stored.started_ns());
  SessionStatistics::Of(stored).Fill(session.mutable_status());
  deps_.records.AddEnded(std::move(session));
  if (SessionRecord* shown = deps_.records.Find(id); shown != nullptr) shown->not_continued = reason;
}

// The session leaves nothing; its dump may be found later.
void EarlierSessions::Discard(const std::string& id) {
  log::Info("session not continued", {{"session", id}, {"why", "its start was not answered"}});
  deps_.states.DropSession(id);
  withdrawn_.insert(id);
  const SessionRecord* known = deps_.records.Find(id);
  if (known == nullptr) return;
  for (const v1::SessionStatus& segment : SegmentsOf(*known)) {
    deps_.remover.Remove(std::string(BaseName(segment.dump_path())), kReasonRequest, nullptr);
  }
  deps_.records.Erase(id);
}

// The spec is planned anew, as if given now, but for what has to do with its start.
Result<Session::Request> EarlierSessions::PlanAgain(const state::StoredSession& stored, bool same_boot) const {
  const Peer peer = PeerOf(stored);
  Session::Request request;
  request.spec = stored.spec();
  v1::SessionSpec again = stored.spec();
  v1::SessionSpec::Target& target = *again.mutable_target();
  auto lives = [&](const state::StoredProcess& process) {
    return same_boot && deps_.session.processes.StartTimeOf(process.pid()) == process.start_ticks();
  };
  if (stored.has_end_with() && !lives(stored.end_with())) {
    return FailedPrecondition(fmt::format("process {} ended meanwhile", stored.end_with().pid()));
  }
  request.targets = TargetsOf(stored, same_boot);
  target.clear_pids();
  for (const auto* list : {&stored.targets().processes(), &stored.targets().unknown()}) {
    for (const state::StoredProcess& process : *list) {
      if (lives(process)) target.add_pids(process.pid());
    }
  }
  const bool tied = request.targets.bound || !request.targets.pids.empty() || stored.targets().unknown_size() > 0;
  if (tied && target.pids().empty() && !request.targets.awaits()) {
    return FailedPrecondition("all processes of the job ended meanwhile");
  }
  // One that is renewed by calls alone gets another lease.
  if (again.has_lease() && stored.has_starter() && !lives(stored.starter()) && target.pids().empty()) {
    return FailedPrecondition("its starter ended meanwhile");
  }
  const bool at_step_to_come = !stored.has_started_ns() && again.schedule().has_start_step();
  again.mutable_schedule()->clear_since_ms();
  if (!at_step_to_come) again.mutable_schedule()->clear_start();
  again.clear_preempt();
  again.clear_require_all();
  if (again.has_lease()) again.mutable_lease()->clear_starter_pid();
  Result<ProcessId> starter = AdmitTerms({deps_.config, peer, deps_.session.host.clock.WallNs(), deps_.session.processes},
                                         &again);
  if (!starter.ok()) return starter.status();
  if (lives(stored.starter())) request.starter = {stored.starter().pid(), stored.starter().start_ticks()};
  // Who was attached will be again; the plan must not hang on who is first.
  SessionTargets as_attached = request.targets;
  for (int i = 0; i < stored.targets().processes_size(); ++i) {
    if (stored.targets().processes(i).attached()) {
      as_attached.processes[static_cast<size_t>(i)].attach_id = UINT64_MAX;
    }
  }
  Result<SessionPlan> plan = planner_.PlanFor(peer, again, as_attached);
  if (!plan.ok()) return plan.status();
  request.plan = std::move(plan).value();
  request.plan_for = planner_.PlannerFor(peer, stored.spec());
  // What is over: the past it began in, and that all of its collectors had to start.
  request.spec.mutable_schedule()->clear_since_ms();
  request.spec.clear_require_all();
  return request;
}

void EarlierSessions::Resume(const std::string& id, const std::string& text) {
  DCHECK_ON(deps_.session.control);
  state::StoredSession stored;
  if (!ParseStateFile(text, &stored) || stored.session_id() != id || stored.version() != kStateFileVersion) {
    log::Warning("session not continued: its state file is damaged or of another version of profd; its dump stays",
                 {{"session", id}, {"version", stored.version()}, {"reads", kStateFileVersion}});
    deps_.states.DropSession(id);
    return;
  }
  if (stored.withdrawn()) {
    Discard(id);
    return;
  }
  const SessionRecord* known = deps_.records.Find(id);
  if (known != nullptr && known->ended.state() != v1::Session::STATE_INTERRUPTED) {
    deps_.states.DropSession(id);  // it had just ended
    return;
  }
  const bool same_boot = !deps_.boot_id.empty() && stored.boot_id() == deps_.boot_id;
  int64_t left_ms = 0;
  std::string over = deps_.config.resume ? WhyOver(stored, same_boot, deps_.session.host.clock, &left_ms) : "dump.resume is off";
  Result<Session::Request> request = Aborted(over);
  if (over.empty()) request = PlanAgain(stored, same_boot);
  if (over.empty() && !request.ok()) over = request.status().message();
  if (!over.empty()) {
    GiveUp(stored, over);
    return;
  }
  Continuation continues;
  continues.started = stored.has_started_ns();
  continues.started_wall_ns = stored.started_ns();
  continues.since_wall_ns = stored.since_ns();
  continues.left_ms = left_ms;
  continues.steps_done = stored.steps_done();
  continues.statistics = SessionStatistics::Of(stored);
  request->continues = continues;
  Continue(stored, same_boot, std::move(request).value());
}

void EarlierSessions::Continue(const state::StoredSession& stored, bool same_boot, Session::Request request) {
  const std::string& id = stored.session_id();
  std::vector<v1::SessionStatus> past;
  if (const SessionRecord* known = deps_.records.Find(id); known != nullptr) past = SegmentsOf(*known);
  deps_.records.Erase(id);
  const SessionRecord& record = live_.Begin(id, PeerOf(stored), std::move(request));
  if (stored.has_started_ns()) {
    // Of another boot: the remaining time is measured by the wall clock from now on, as it was just now.
    const Clock& clock = deps_.session.host.clock;
    record.state_file->SetStart(stored.started_ns(), same_boot ? stored.started_raw_ns()
                                                               : clock.MonotonicRawNs() - (clock.WallNs() - stored.started_ns()),
                                stored.since_ns());
  }
  const std::shared_ptr<Session> session = record.live;
  // The state may have been saved before its dump was made.
  const bool dump_made = !stored.dump().empty() || std::ranges::any_of(past, [&stored](const v1::SessionStatus& one) {
    return std::ranges::find(stored.segments(), one.dump_path(), &v1::Segment::dump_path) == stored.segments().end();
  });
  session->past().SetCount(SegmentsSoFar(stored, dump_made));
  for (v1::SessionStatus& segment : past) session->past().Add(std::move(segment));
  session->Start([session](const Status& status) {
    log::Info(status.ok() ? "session continued" : "session could not be continued",
              {{"session", session->id()}, {"segment", session->past().NextNumber()},
               {"why", status.ok() ? "" : status.ToString()}});
  });
}

}  // namespace profd
