// Sessions and what there is of them on the disk: by session and by name, listed, pinned, removed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/session/session_manager.h"
#include "daemon/session/session_recovered.h"
#include "daemon/session/session_segments.h"
#include "dump/dump_root.h"

namespace profd {
namespace {

void Describe(const KeptDump& dump, v1::Dump* out) {
  out->set_name(dump.name);
  out->set_uid(dump.uid);
  out->set_session_id(dump.session_id);
  out->set_job_id(dump.job_id);
  out->set_state(dump.writing ? v1::Session::STATE_RUNNING : StateOf(dump.state));
  out->set_started_ns(dump.started_wall_ns);
  if (!dump.writing && dump.ended_wall_ns != 0) out->set_ended_ns(dump.ended_wall_ns);
  out->set_bytes(dump.bytes);
  out->set_pinned(dump.pinned);
  out->set_segment(dump.segment);
}

// What rules of retention and archive look at.
void TakeSpec(const v1::SessionSpec& spec, KeptDump* dump) {
  dump->job_id = spec.target().job_id();
  dump->label = spec.label();
  if (auto fleet = spec.metadata().find(kFleetMetadata); fleet != spec.metadata().end()) dump->fleet = fleet->second;
}

Status NoDump(const std::string& name) {
  return NotFound(fmt::format("dump {} not found, or not owned by you", log::Quote(name)));
}

}  // namespace

void SessionManager::NoteProgress(Record& record) {
  Session& session = *record.live;
  DumpRetention* dumps = deps_.dumps_or_null;
  const std::string_view name = BaseName(session.output().path());
  if (dumps != nullptr && !name.empty() && dumps->Find(name) == nullptr) {
    KeptDump dump;
    dump.name = name;
    dump.uid = record.uid;
    dump.session_id = session.id();
    TakeSpec(session.spec(), &dump);
    dump.started_wall_ns = session.clocks().start_wall_ns();
    dump.segment = static_cast<uint32_t>(session.past().all().size()) + 1;
    dumps->Opened(std::move(dump));
  }
  Save(record);
}

// Its one dump, the flight recorder's, is complete.
void SessionManager::NoteRecovered(v1::Session* session) {
  v1::SessionStatus& status = *session->mutable_status();
  *status.add_segments() = SegmentOf(status);
  if (deps_.dumps_or_null == nullptr) return;
  KeptDump dump;
  dump.name = BaseName(status.dump_path());
  dump.uid = session->owner().uid();
  dump.session_id = session->session_id();
  dump.recorder = true;
  TakeSpec(session->spec(), &dump);
  dump.started_wall_ns = status.started_ns();
  const std::string name = dump.name;
  deps_.dumps_or_null->Opened(std::move(dump));
  deps_.dumps_or_null->Closed(name, DumpState::kDone, status.dump_bytes());
}

void SessionManager::DropSegment(v1::SessionStatus* status, const std::string& dump) {
  auto& segments = *status->mutable_segments();
  for (int i = segments.size() - 1; i >= 0; --i) {
    if (BaseName(segments[i].dump_path()) != dump) continue;
    status->set_dump_bytes(status->dump_bytes() -
                           std::min(status->dump_bytes(), segments[i].bytes()));
    segments.DeleteSubrange(i, 1);
  }
  if (BaseName(status->dump_path()) != dump) return;
  status->set_dump_path(segments.empty() ? "" : segments.rbegin()->dump_path());
}

const KeptDump* SessionManager::FindDump(const Peer& peer, const std::string& name) const {
  const KeptDump* dump =
      deps_.dumps_or_null == nullptr ? nullptr : deps_.dumps_or_null->Find(name);
  return dump == nullptr || !peer.Sees(dump->uid) ? nullptr : dump;
}

Result<std::vector<std::string>> SessionManager::DumpsOf(const Peer& peer,
                                                         const std::string& id_untrusted,
                                                         const std::string& dump_untrusted) const {
  DCHECK_ON(deps_.session.control);
  if (id_untrusted.empty() == dump_untrusted.empty()) {
    return InvalidArgument("name either a session_id or a dump");
  }
  if (!dump_untrusted.empty()) {
    const KeptDump* dump = FindDump(peer, dump_untrusted);
    if (dump == nullptr) return NoDump(dump_untrusted);
    if (!peer.Owns(dump->uid)) return PermissionDenied("role viewer may not fetch dumps");
    if (dump->writing) {
      return FailedPrecondition(fmt::format("{} is being written by session {}; stop that first, or wait if it "
                                            "has ended",
                                            dump->name, dump->session_id));
    }
    return std::vector<std::string>{dump->name};
  }
  Result<v1::Session> session = Get(peer, id_untrusted);
  if (!session.ok()) return session.status();
  if (!peer.Owns(session->owner().uid())) return PermissionDenied("role viewer may not fetch dumps");
  if (!IsFinished(*session)) {
    return FailedPrecondition("the session is still running; stop it first");
  }
  std::vector<std::string> names;
  for (const v1::Segment& segment : session->status().segments()) {
    names.emplace_back(BaseName(segment.dump_path()));
  }
  if (names.empty() && !session->status().dump_path().empty()) {
    names.emplace_back(BaseName(session->status().dump_path()));
  }
  if (names.empty()) return NotFound("the session has no dump");
  for (const std::string& name : names) {
    const KeptDump* dump = FindDump(peer, name);
    if (dump == nullptr || !dump->writing) continue;
    return FailedPrecondition(fmt::format("{} is still being completed; try again when it is listed as done", name));
  }
  return names;
}

void SessionManager::Delete(const Peer& peer, const std::string& id_untrusted,
                            const std::string& dump_untrusted,
                            std::function<void(Result<uint64_t>)> reply) {
  DCHECK_ON(deps_.session.control);
  Result<std::vector<std::string>> names = DumpsOf(peer, id_untrusted, dump_untrusted);
  if (!names.ok()) {
    auto found = records_.find(id_untrusted);
    const bool without = found != records_.end() && peer.Owns(found->second.uid) &&
                         found->second.live == nullptr && found->second.frozen.Get().status().dump_path().empty();
    if (without) records_.erase(found);
    reply(without ? Result<uint64_t>(uint64_t{0}) : Result<uint64_t>(names.status()));
    return;
  }
  for (const std::string& name : *names) {
    const KeptDump* dump = FindDump(peer, name);
    if (dump == nullptr || !dump->pinned) continue;
    reply(FailedPrecondition(fmt::format("{} is pinned; unpin it first", name)));
    return;
  }
  struct Sum {
    size_t left;
    uint64_t freed = 0;
    Status error;
  };
  auto sum = std::make_shared<Sum>(Sum{names->size(), 0, {}});
  for (const std::string& name : *names) {
    deps_.remover.Remove(name, kReasonRequest, [this, id = id_untrusted, sum, reply](Result<uint64_t> freed) {
      if (freed.ok()) {
        sum->freed += *freed;
      } else if (freed.status().code() != StatusCode::kNotFound) {
        sum->error = freed.status();
      }
      if (--sum->left > 0) return;
      if (sum->error.ok()) records_.erase(id);
      reply(sum->error.ok() ? Result<uint64_t>(sum->freed) : Result<uint64_t>(sum->error));
    });
  }
}

void SessionManager::OnDumpRemoved(const std::string& name, std::string_view reason) {
  DCHECK_ON(deps_.session.control);
  for (auto& [id, record] : records_) {
    if (record.live != nullptr) {
      record.live->past().Forget(name);
      continue;
    }
    std::erase_if(record.segments, [&name](const EndedSession& one) { return BaseName(one.Get().status().dump_path()) == name; });
    if (!record.frozen.Mentions(name)) continue;
    record.frozen.Edit([&](v1::Session& view) {
      const int before = view.status().segments_size();
      DropSegment(view.mutable_status(), name);
      if (view.status().segments_size() == before || reason == kReasonRequest) return;
      view.mutable_status()->add_warnings(fmt::format("{} was removed by retention ({})", name, reason));
    });
  }
}

// Sessions that grow, where nothing is left to be removed, end: the youngest first.
void SessionManager::CheckDiskSpace() {
  DCHECK_ON(deps_.session.control);
  if (deps_.dumps_or_null == nullptr) return;
  DumpRetention& dumps = *deps_.dumps_or_null;
  for (const auto& [id, record] : records_) {
    if (record.live == nullptr || record.live->output().path().empty()) continue;
    const SessionOutput& output = record.live->output();
    dumps.Grown(BaseName(output.path()), output.bytes(), output.queued_bytes());
  }
  QuotaPlan plan = dumps.Enforce();
  auto end_youngest = [this](const uint32_t* uid, const std::string& why) {
    const Record* youngest = nullptr;
    for (const auto& [id, record] : records_) {
      if (record.live == nullptr || record.live->spec().no_dump()) continue;
      if (uid != nullptr && record.uid != *uid) continue;
      if (record.live->stopping()) return;  // one is ending already
      if (youngest == nullptr || record.order > youngest->order) youngest = &record;
    }
    if (youngest != nullptr) youngest->live->Stop(why);
  };
  constexpr std::string_view kNothing = "retention can remove nothing more";
  for (uint32_t uid : plan.over_uids) {
    end_youngest(&uid, fmt::format("the dumps of uid {} take all of the {} MB one user may keep "
                                   "(limits.max_kept_mb_per_uid); {}",
                                   uid, config_.max_kept_mb_per_uid, kNothing));
  }
  if (plan.over_total) {
    end_youngest(nullptr, fmt::format("dumps take all of the {} MB they may (dump.max_total_mb); {}",
                                      config_.max_total_mb, kNothing));
  }
}

bool SessionManager::IsWaiting(std::string_view dump) const {
  const KeptDump* kept = deps_.dumps_or_null == nullptr ? nullptr : deps_.dumps_or_null->Find(BaseName(dump));
  return kept != nullptr && kept->waiting;
}

bool SessionManager::IsWaiting(const v1::Session& session) const {
  const auto& segments = session.status().segments();
  return IsWaiting(session.status().dump_path()) ||
         std::any_of(segments.begin(), segments.end(), [this](const v1::Segment& segment) { return IsWaiting(segment.dump_path()); });
}

v1::ListDumpsResponse SessionManager::ListDumps(const Peer& peer) const {
  DCHECK_ON(deps_.session.control);
  v1::ListDumpsResponse response;
  if (deps_.dumps_or_null == nullptr) return response;
  const DumpRetention& dumps = *deps_.dumps_or_null;
  for (const KeptDump* dump : dumps.All()) {
    if (peer.Sees(dump->uid)) Describe(*dump, response.add_dumps());
  }
  response.set_total_bytes(dumps.total_bytes());
  const auto& limits = dumps.limits();
  if (limits.total != 0) response.set_max_total_bytes(limits.total);
  if (limits.per_uid != 0) response.set_max_kept_bytes(limits.per_uid);
  if (limits.pinned_per_uid != 0) response.set_max_pinned_bytes(limits.pinned_per_uid);
  response.set_incomplete(!dumps.complete());
  return response;
}

template <class Request, class Response>
Status SessionManager::SetPinned(bool pinned, const Peer& peer, const Request& request, Response* out) {
  DCHECK_ON(deps_.session.control);
  if (deps_.dumps_or_null == nullptr) return Unimplemented("this daemon writes no dumps");
  Result<std::vector<std::string>> names = DumpsOf(peer, request.session_id(), request.dump());
  if (!names.ok()) return names.status();
  RETURN_IF_ERROR(deps_.dumps_or_null->Pin(*names, pinned, peer.admin));
  for (const std::string& name : *names) {
    const KeptDump* dump = deps_.dumps_or_null->Find(name);
    if (dump != nullptr) Describe(*dump, out->add_dumps());
  }
  return Status::Ok();
}

Status SessionManager::Pin(const Peer& peer, const v1::PinDumpRequest& request_untrusted, v1::PinDumpResponse* out) {
  return SetPinned(true, peer, request_untrusted, out);
}

Status SessionManager::Unpin(const Peer& peer, const v1::UnpinDumpRequest& request_untrusted,
                             v1::UnpinDumpResponse* out) {
  return SetPinned(false, peer, request_untrusted, out);
}

}  // namespace profd
