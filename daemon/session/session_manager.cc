#include "daemon/session/session_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "collectors/channel_options.h"
#include "daemon/metrics/self_metrics.h"

namespace profd {
namespace {

// How often one request may push others aside, should another request take the place meanwhile.
constexpr int kMaxPreemptions = 3;

// Both want a collector, and have made another choice of how it measures.
bool ChooseDifferently(const SessionPlan& a, const SessionPlan& b) {
  for (const PlannedCollector& ours : a.collectors) {
    for (const PlannedCollector& theirs : b.collectors) {
      if (ours.index != theirs.index) continue;
      const CollectorOption* option =
          DifferingOption(*Collectors()[ours.index].spec, ours.channel, theirs.channel);
      if (option != nullptr && option->use == OptionUse::kChoice) return true;
    }
  }
  return false;
}

// A channel of a device serves only one of them.
bool Exclude(const SessionPlan& a, const SessionPlan& b) {
  if (!ChooseDifferently(a, b)) return false;
  return std::ranges::any_of(a.devices, [&b](int device) {
    return std::ranges::find(b.devices, device) != b.devices.end();
  });
}

}  // namespace

void SessionManager::Start(const Peer& peer, const v1::SessionSpec& spec_untrusted, Reply reply) {
  DCHECK_ON(deps_.session.control);
  Try(peer, spec_untrusted, kMaxPreemptions, reply);
}

void SessionManager::Try(const Peer& peer, const v1::SessionSpec& spec, int preemptions, const Reply& reply) {
  if (live_.shutting_down()) {
    Refuse(Unavailable("profd is stopping"), reply);
    return;
  }
  Result<Session::Request> request = planner_.Plan(peer, spec);
  if (!request.ok()) {
    Refuse(request.status(), reply);
    return;
  }
  if (Status tuning = CheckTuning(peer, *request); !tuning.ok()) {
    Refuse(tuning, reply);
    return;
  }
  if (request->spec.preempt() && preemptions > 0) {
    std::vector<std::shared_ptr<Session>> victims = Conflicts(*request);
    auto waiting = std::make_shared<size_t>(victims.size());
    for (const auto& victim : victims) {
      victim->Stop(fmt::format("preempted by uid {}", peer.uid));
      victim->WhenFinished([this, peer, spec, preemptions, reply, waiting] {
        if (--*waiting > 0) return;
        // Its record is frozen, and its place free, when the present task is over.
        deps_.session.control.Post([this, peer, spec, preemptions, reply] {
          Try(peer, spec, preemptions - 1, reply);
        });
      });
    }
    if (!victims.empty()) return;
  }
  if (Status limits = CheckLimits(peer, *request); !limits.ok()) {
    Refuse(limits, reply);
    return;
  }
  Launch(peer, std::move(request).value(), reply);
}

Status SessionManager::CheckLimits(const Peer& peer, const Session::Request& request) {
  const Clock& clock = deps_.session.host.clock;
  const bool has_dump = !request.spec.no_dump();
  const uint64_t reserve = request.plan.storage_limited && has_dump ? request.plan.max_bytes : 0;
  RETURN_IF_ERROR(CheckSessionLimits(deps_.records.Briefs(), peer, deps_.config, clock.WallNs(), reserve));
  const int64_t now_ns = clock.SteadyNs();
  RETURN_IF_ERROR(rates_.Check(peer.uid, now_ns, deps_.config.max_starts_per_minute));
  if (has_dump) RETURN_IF_ERROR(rights_.MayGiveDump(peer.uid));
  if (has_dump && deps_.dumps_or_null != nullptr) RETURN_IF_ERROR(deps_.dumps_or_null->CheckStart(peer.uid));
  rates_.Note(peer.uid, now_ns);
  return Status::Ok();
}

void SessionManager::Refuse(const Status& status, const Reply& reply) {
  ++refused_[static_cast<size_t>(status.code())];
  reply(status);
}

void SessionManager::Launch(const Peer& peer, Session::Request request, const Reply& reply) {
  std::string id = NewId();
  if (id.empty() || deps_.records.Find(id) != nullptr) {
    reply(Unavailable("no randomness for a session id; try again"));
    return;
  }
  std::shared_ptr<Session> session = live_.Begin(id, peer, std::move(request)).live;
  session->Start([this, peer, session, reply](const Status& status) {
    if (status.ok()) {
      OnStarted(peer, *session, reply);
      return;
    }
    uint64_t left_out = 0;
    if (refusals_logged_.Allow(peer.uid, deps_.session.host.clock.SteadyNs(), &left_out)) {
      log::Info("session refused", {{"session", session->id()},
                                    {"uid", peer.uid},
                                    {"reason", status.ToString()},
                                    {"left_out", left_out}});
    }
    Refuse(deps_.records.AnnotateWithOwner(peer, status), reply);
  });
}

void SessionManager::OnStarted(const Peer& peer, const Session& session, const Reply& reply) {
  ++started_total_;
  const bool scheduled = session.state() == v1::Session::STATE_SCHEDULED;
  log::Info(scheduled ? "session scheduled" : "session running", {{"session", session.id()},
                                                                  {"uid", peer.uid},
                                                                  {"job", session.spec().target().job_id()},
                                                                  {"dump", session.output().path()}});
  Result<v1::Session> view = Get(peer, session.id());
  if (!scheduled) {
    reply(view);
    return;
  }
  // Nothing of it is on the disk but its state, which is being saved there: what was answered is stored.
  deps_.session.writer.Post([this, reply, view = std::move(view)] {
    deps_.session.control.Post([reply, view] { reply(view); });
  });
}

// Where processes have not reported which devices they use, the request to each of them is checked (JobTable::Notify).
Status SessionManager::CheckTuning(const Peer& peer, const Session::Request& request) const {
  if (request.plan.collect.empty() || !request.targets.any()) return Status::Ok();
  std::vector<int> devices = request.targets.bound ? request.plan.devices : std::vector<int>();
  for (const TrainingProcess& process : request.targets.processes) {
    devices.insert(devices.end(), process.devices.begin(), process.devices.end());
  }
  return gate_.MayProfile(peer, devices);
}

// The sessions that an administrator's request may end: for a place on the node, and for channels that can serve
// only one of the two.
std::vector<std::shared_ptr<Session>> SessionManager::Conflicts(const Session::Request& request) const {
  std::vector<std::shared_ptr<Session>> victims;
  std::vector<SessionBrief> live = deps_.records.Briefs();
  for (const SessionBrief& brief : live) {
    const std::shared_ptr<Session>& session = deps_.records.Find(brief.id)->live;
    bool lower = brief.priority < PriorityOf(request.spec) && !brief.ending;
    if (lower && Exclude(request.plan, session->plan())) victims.push_back(session);
  }
  if (victims.empty() && NodeIsFull(live, deps_.config)) {
    const SessionBrief* victim = FindVictim(live, PriorityOf(request.spec));
    if (victim != nullptr) victims.push_back(deps_.records.Find(victim->id)->live);
  }
  return victims;
}

void SessionManager::Stop(const Peer& peer, const v1::StopSessionRequest& request_untrusted, Reply reply) {
  DCHECK_ON(deps_.session.control);
  if (request_untrusted.session_id().empty() == request_untrusted.job_id().empty()) {
    reply(InvalidArgument("name either a session_id or a job_id"));
    return;
  }
  if (!request_untrusted.job_id().empty()) {
    StopJob(peer, request_untrusted.job_id(), reply);
    return;
  }
  const SessionRecord* record = deps_.records.Find(peer, request_untrusted.session_id());
  if (record == nullptr) {
    reply(SessionRecords::NoSession(request_untrusted.session_id()));
    return;
  }
  if (record->live == nullptr) {
    reply(record->ended.Get());
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
  const SessionRecord* record = deps_.records.Find(id);
  if (record != nullptr && record->live != nullptr) record->live->Withdraw("its caller did not get the answer");
}

void SessionManager::StopJob(const Peer& peer, const std::string& job_id, const Reply& reply) {
  std::vector<std::shared_ptr<Session>> sessions;
  std::set<std::string> jobs;
  for (const SessionRecord* record : deps_.records.Live()) {
    if (!peer.Owns(record->uid)) continue;
    jobs.insert(record->live->spec().target().job_id());
    if (record->live->spec().target().job_id() == job_id) sessions.push_back(record->live);
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

Result<v1::Session> SessionManager::Get(const Peer& peer, const std::string& id_untrusted) const {
  return deps_.records.Get(peer, id_untrusted);
}

Result<std::optional<uint64_t>> SessionManager::RenewLease(const Peer& peer, const std::string& id_untrusted) {
  DCHECK_ON(deps_.session.control);
  const SessionRecord* record = deps_.records.Find(peer, id_untrusted);
  if (record == nullptr) return SessionRecords::NoSession(id_untrusted);
  if (record->live == nullptr) return FailedPrecondition("the session has ended");
  return record->live->terms().Renew();
}

void SessionManager::UpdateMetrics(SelfMetrics* self) const {
  DCHECK_ON(deps_.session.control);
  // All of them from the beginning: a rate has no first event.
  for (size_t code = 1; code < refused_.size(); ++code) {
    self->Set(MetricByName("profd_sessions_refused_total"), refused_[code], ToString(static_cast<StatusCode>(code)));
  }
  self->Set(MetricByName("profd_sessions_started_total"), started_total_);
}

}  // namespace profd
