#include "daemon/session/session_manager.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/session/stored_session.pb.h"

namespace profd {
namespace {

// What the NPUs used since then is not counted if the daemon is killed.
constexpr int64_t kSaveIntervalNs = 5 * kNsPerSecond;

}  // namespace

SessionManager::SessionManager(Deps deps, const DaemonConfig& config)
    : deps_(std::move(deps)), config_(config) {}

void SessionManager::AddRecovered(v1::Session frozen) {
  DCHECK_ON(deps_.session.control);
  std::string id = frozen.session_id();
  if (id.empty() || records_.contains(id)) return;
  if (!frozen.status().dump_path().empty()) NoteRecovered(&frozen);
  Record record;
  record.uid = frozen.owner().uid();
  record.frozen.Set(frozen);
  record.order = next_order_++;
  records_.emplace(std::move(id), std::move(record));
  Forget();
}

void SessionManager::CountRefusal(const Status& status) {
  ++refused_[std::string(ToString(status.code()))];
}

void SessionManager::OnChange(Session& session) {
  if (auto found = records_.find(session.id()); found != records_.end() && !session.finished()) {
    if (found->second.live != nullptr) NoteProgress(found->second);
  }
  std::vector<std::function<void()>> calls;
  for (const auto& [key, watch] : watches_) {
    if (watch.id == session.id()) calls.push_back(watch.changed);
  }
  if (session.finished()) {
    // The session is in the middle of its own method: freeze it when that has returned.
    deps_.session.control.Post([this, id = session.id(), calls] {
      Freeze(id);
      for (const auto& call : calls) call();
    });
    return;
  }
  for (const auto& call : calls) call();
}

void SessionManager::Freeze(const std::string& id) {
  auto found = records_.find(id);
  if (found == records_.end() || found->second.live == nullptr) return;
  Record& record = found->second;
  v1::Session view;
  record.live->Fill(&view);
  record.frozen.Set(view);
  log::Info("session ended", {{"session", id},
                              {"state", v1::Session::State_Name(view.status().state())},
                              {"reason", view.status().reason()},
                              {"records", view.status().records()},
                              {"bytes", view.status().dump_bytes()},
                              {"dropped", view.status().dropped_records()},
                              {"removed", view.status().removed_records()}});
  const std::shared_ptr<Session> session = record.live;
  const std::string dump(BaseName(record.live->output().path()));
  record.live.reset();
  record.stored.reset();
  ++ended_total_;
  deps_.states.DropSession(id);
  if (session->state() == v1::Session::STATE_INTERRUPTED) {
    ++closing_;
    session->WhenClosed([this](Session& closed) { OnClosed(closed); });
    Forget();
    return;
  }
  CloseKept(*session, session->state() == v1::Session::STATE_DONE ? DumpState::kDone : DumpState::kFailed);
  // A start that failed, or never happened, leaves no dump worth keeping; the caller knows its reason.
  if (session->discards_dump() && !dump.empty()) deps_.remover.Remove(dump, kReasonRequest, [](Result<uint64_t>) {});
  Forget();
  EndIfIdle();
}

// The dump of a session that had to end before it.
void SessionManager::OnClosed(Session& session) {
  --closing_;
  const std::string dump(BaseName(session.output().path()));
  auto found = records_.find(session.id());
  if (found != records_.end() && found->second.live == nullptr) {
    v1::Session view;
    session.Fill(&view);
    view.mutable_status()->add_warnings("the dump was completed later");
    found->second.frozen.Set(view);
  }
  log::Info("dump completed after its session's end", {{"session", session.id()}, {"dump", dump}});
  if (!dump.empty() && session.discards_dump()) {
    deps_.remover.Remove(dump, kReasonRequest, [](Result<uint64_t>) {});
  } else {
    CloseKept(session, DumpState::kDone);
  }
  EndIfIdle();
}

void SessionManager::CloseKept(const Session& session, DumpState state) {
  const std::string dump(BaseName(session.output().path()));
  if (deps_.dumps_or_null == nullptr || dump.empty()) return;
  if (const Manifest* manifest = session.output().unended(); manifest != nullptr) {
    deps_.dumps_or_null->CompleteLater(dump, *manifest);
  } else {
    deps_.dumps_or_null->Closed(dump, state, 0);
  }
}

void SessionManager::EndIfIdle() {
  if (shutdown_done_ && active() + closing_ == 0) std::exchange(shutdown_done_, nullptr)();
}

void SessionManager::Forget() {
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

v1::Session SessionManager::View(const Record& record) const {
  v1::Session view;
  if (record.live != nullptr) {
    record.live->Fill(&view);
    return view;
  }
  view = record.frozen.Get();
  const DumpRetention* dumps = deps_.dumps_or_null;
  view.mutable_status()->set_pinned(dumps != nullptr && view.status().segments_size() > 0 &&
                  std::all_of(view.status().segments().begin(), view.status().segments().end(),
                              [dumps](const v1::Segment& segment) {
                                const KeptDump* dump = dumps->Find(BaseName(segment.dump_path()));
                                return dump != nullptr && dump->pinned;
                              }));
  return view;
}

// What is not the peer's own does not exist for it: the answers are the same.
const SessionManager::Record* SessionManager::Find(const Peer& peer, const std::string& id) const {
  auto found = records_.find(id);
  if (found == records_.end() || !peer.Owns(found->second.uid)) return nullptr;
  return &found->second;
}

Status SessionManager::NoSession(const std::string& id_untrusted) {
  return NotFound(fmt::format("session {} not found, or not owned by you", log::Quote(id_untrusted)));
}

void SessionManager::Stop(const Peer& peer, const v1::StopSessionRequest& request_untrusted,
                          SessionReply reply) {
  DCHECK_ON(deps_.session.control);
  if (request_untrusted.session_id().empty() == request_untrusted.job_id().empty()) {
    reply(InvalidArgument("name either a session_id or a job_id"));
    return;
  }
  if (!request_untrusted.job_id().empty()) {
    StopJob(peer, request_untrusted.job_id(), std::move(reply));
    return;
  }
  const Record* record = Find(peer, request_untrusted.session_id());
  if (record == nullptr) {
    reply(NoSession(request_untrusted.session_id()));
    return;
  }
  if (record->live == nullptr) {
    reply(record->frozen.Get());
    return;
  }
  std::shared_ptr<Session> session = record->live;
  session->Stop(fmt::format("stopped by uid {}", peer.uid));
  session->WhenFinished([session, reply = std::move(reply)] {
    v1::Session view;
    session->Fill(&view);
    reply(view);
  });
}

void SessionManager::Withdraw(const std::string& id) {
  DCHECK_ON(deps_.session.control);
  auto found = records_.find(id);
  if (found == records_.end() || found->second.live == nullptr) return;
  const std::shared_ptr<Session> session = found->second.live;
  session->Withdraw("its caller did not get the answer");
}

void SessionManager::StopJob(const Peer& peer, const std::string& job_id, SessionReply reply) {
  std::vector<std::shared_ptr<Session>> sessions;
  std::set<std::string> jobs;
  for (const auto& [id, record] : records_) {
    if (record.live == nullptr || !peer.Owns(record.uid)) continue;
    jobs.insert(record.live->spec().target().job_id());
    if (record.live->spec().target().job_id() == job_id) sessions.push_back(record.live);
  }
  if (sessions.empty()) {
    std::string known;
    for (const std::string& job : jobs) {
      if (!job.empty()) known += (known.empty() ? "" : ", ") + job;
    }
    reply(NotFound(fmt::format("no running session of job {}; {}", log::Quote(job_id),
                               known.empty() ? "none of your jobs is being profiled"
                                             : "jobs being profiled: " + known)));
    return;
  }
  auto waiting = std::make_shared<size_t>(sessions.size());
  auto ended = std::make_shared<std::string>();
  for (const auto& session : sessions) {
    session->Stop(fmt::format("stopped by uid {}", peer.uid));
    session->WhenFinished([session, waiting, ended, reply] {
      if (--*waiting > 0) {
        *ended += (ended->empty() ? "" : ", ") + session->id();
        return;
      }
      v1::Session view;
      session->Fill(&view);
      if (!ended->empty()) view.mutable_status()->add_warnings("stopped with it, of the same job: " + *ended);
      reply(view);
    });
  }
}

std::optional<uint32_t> SessionManager::UidOf(const std::string& id) const {
  auto found = records_.find(id);
  if (found == records_.end() || found->second.live == nullptr) return std::nullopt;
  return found->second.uid;
}

Result<v1::Session> SessionManager::Get(const Peer& peer, const std::string& id_untrusted) const {
  DCHECK_ON(deps_.session.control);
  auto found = records_.find(id_untrusted);
  if (found == records_.end() || !peer.Sees(found->second.uid)) return NoSession(id_untrusted);
  v1::Session view = View(found->second);
  AnnotateWithOwner(peer, &view);
  return view;
}

v1::ListSessionsResponse SessionManager::List(
    const Peer& peer, const v1::ListSessionsRequest& request_untrusted) const {
  DCHECK_ON(deps_.session.control);
  std::vector<const Record*> records;
  for (const auto& [id, record] : records_) {
    if (peer.Sees(record.uid)) records.push_back(&record);
  }
  std::sort(records.begin(), records.end(),
            [](const Record* a, const Record* b) { return a->order < b->order; });
  v1::ListSessionsResponse response;
  for (const Record* record : records) {
    v1::Session view = View(*record);
    if (request_untrusted.active_only() && IsFinished(view)) continue;
    if (!request_untrusted.job_id().empty() && view.spec().target().job_id() != request_untrusted.job_id()) {
      continue;
    }
    *response.add_sessions() = std::move(view);
  }
  return response;
}

uint64_t SessionManager::Watch(const std::string& id, std::function<void()> changed) {
  DCHECK_ON(deps_.session.control);
  uint64_t watch = next_watch_++;
  watches_.emplace(watch, WatchEntry{id, std::move(changed)});
  return watch;
}

void SessionManager::Unwatch(uint64_t watch) {
  DCHECK_ON(deps_.session.control);
  watches_.erase(watch);
}

void SessionManager::Tick() {
  DCHECK_ON(deps_.session.control);
  std::vector<std::shared_ptr<Session>> live;
  for (const auto& [id, record] : records_) {
    if (record.live != nullptr) live.push_back(record.live);
  }
  std::map<int, DeviceValues> latest;
  if (!live.empty()) {
    latest = ReadDevices(deps_.session.store, deps_.session.host.devices,
                         deps_.session.host.clock.MonotonicRawNs());
  }
  for (const auto& session : live) session->Tick(latest);
  for (auto& [id, record] : records_) {
    if (record.live == nullptr || record.stored == nullptr) continue;
    const bool stale = record.live->state() == v1::Session::STATE_RUNNING && !record.live->statistics().empty() &&
                       deps_.session.host.clock.SteadyNs() - record.saved_ns >= kSaveIntervalNs;
    if (stale || record.live->steps_done() != record.stored->steps_done()) Save(record);
  }
  std::vector<SessionBrief> briefs = Briefs();
  if (const SessionBrief* over = FindOverwriter(briefs, config_); over != nullptr) {
    records_.at(over->id).live->Stop(
        fmt::format("the sessions of uid {} have written {} MB, the limit for one user "
                    "(limits.max_dump_mb_per_uid)",
                    over->uid, config_.max_dump_mb_per_uid));
  }
}

void SessionManager::Shutdown(std::string reason, std::function<void()> done) {
  DCHECK_ON(deps_.session.control);
  shutting_down_ = true;
  shutdown_done_ = std::move(done);
  EndIfIdle();
  std::vector<std::shared_ptr<Session>> live;
  for (const auto& [id, record] : records_) {
    if (record.live != nullptr) live.push_back(record.live);
  }
  for (const auto& session : live) session->Stop(reason);
}

size_t SessionManager::active() const {
  DCHECK_ON(deps_.session.control);
  return static_cast<size_t>(std::count_if(
      records_.begin(), records_.end(), [](const auto& r) { return r.second.live != nullptr; }));
}

void SessionManager::UpdateMetrics(SelfMetrics* self) const {
  DCHECK_ON(deps_.session.control);
  std::map<std::string_view, size_t> by_state{{"scheduled", 0}, {"starting", 0}, {"running", 0},
                                              {"stopping", 0},  {"done", 0},     {"failed", 0}};
  for (const auto& [id, record] : records_) {
    const v1::Session::State state = record.live == nullptr ? record.frozen.state() : record.live->state();
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
  for (const auto& [reason, count] : refused_) self->Set(MetricByName("profd_sessions_refused_total"), count, reason);
  self->Set(MetricByName("profd_sessions_started_total"), started_total_);
}

std::vector<ActiveSession> SessionManager::ActiveSessions() const {
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

}  // namespace profd
