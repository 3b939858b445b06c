#include "daemon/session/dump_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "base/text.h"
#include "daemon/session/session_recovered.h"

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
  out->set_fleet_id(dump.fleet);
}

Status NoDump(const std::string& name) {
  return NotFound(fmt::format("dump {} not found, or not owned by you", log::Quote(name)));
}

}  // namespace

const KeptDump* DumpRequests::Find(const Peer& peer, const std::string& name) const {
  const KeptDump* dump = dumps_ == nullptr ? nullptr : dumps_->Find(name);
  return dump == nullptr || !peer.Sees(dump->uid) ? nullptr : dump;
}

Result<std::vector<std::string>> DumpRequests::DumpsOf(const Peer& peer, const std::string& id_untrusted,
                                                       const std::string& dump_untrusted) const {
  DCHECK_ON(control_);
  if (id_untrusted.empty() == dump_untrusted.empty()) {
    return InvalidArgument("name either a session_id or a dump");
  }
  if (!dump_untrusted.empty()) {
    const KeptDump* dump = Find(peer, dump_untrusted);
    if (dump == nullptr) return NoDump(dump_untrusted);
    if (!peer.Owns(dump->uid)) return PermissionDenied("role viewer may not fetch dumps");
    if (dump->writing) {
      return FailedPrecondition(fmt::format("{} is being written by session {}; stop that first, or wait if it "
                                            "has ended",
                                            dump->name, dump->session_id));
    }
    return std::vector<std::string>{dump->name};
  }
  Result<v1::Session> session = records_.Get(peer, id_untrusted);
  if (!session.ok()) return session.status();
  if (!peer.Owns(session->owner().uid())) return PermissionDenied("role viewer may not fetch dumps");
  if (!IsFinal(*session)) {
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
    const KeptDump* dump = Find(peer, name);
    if (dump == nullptr || !dump->writing) continue;
    return FailedPrecondition(fmt::format("{} is still being completed; try again when it is listed as done", name));
  }
  return names;
}

void DumpRequests::Delete(const Peer& peer, const std::string& id_untrusted, const std::string& dump_untrusted,
                          std::function<void(Result<uint64_t>)> reply) {
  DCHECK_ON(control_);
  Result<std::vector<std::string>> names = DumpsOf(peer, id_untrusted, dump_untrusted);
  if (!names.ok()) {
    const SessionRecord* record = records_.Find(peer, id_untrusted);
    const bool without = record != nullptr && record->live == nullptr && record->ended.Get().status().dump_path().empty();
    if (without) records_.Erase(id_untrusted);
    reply(without ? Result<uint64_t>(uint64_t{0}) : Result<uint64_t>(names.status()));
    return;
  }
  for (const std::string& name : *names) {
    const KeptDump* dump = Find(peer, name);
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
    remover_.Remove(name, kReasonRequest, [this, id = id_untrusted, sum, reply](Result<uint64_t> freed) {
      if (freed.ok()) {
        sum->freed += *freed;
      } else if (freed.status().code() != StatusCode::kNotFound) {
        sum->error = freed.status();
      }
      if (--sum->left > 0) return;
      if (sum->error.ok()) records_.Erase(id);
      reply(sum->error.ok() ? Result<uint64_t>(sum->freed) : Result<uint64_t>(sum->error));
    });
  }
}

bool DumpRequests::IsWaiting(std::string_view dump) const {
  DCHECK_ON(control_);
  const KeptDump* kept = dumps_ == nullptr ? nullptr : dumps_->Find(BaseName(dump));
  return kept != nullptr && kept->waiting;
}

bool DumpRequests::IsWaiting(const v1::Session& session) const {
  const auto& segments = session.status().segments();
  return IsWaiting(session.status().dump_path()) ||
         std::ranges::any_of(segments, [this](const v1::Segment& segment) { return IsWaiting(segment.dump_path()); });
}

std::vector<KeptDump> DumpRequests::CompleteDumps(const std::function<bool(const KeptDump&)>& wanted) const {
  DCHECK_ON(control_);
  std::vector<KeptDump> complete;
  if (dumps_ == nullptr) return complete;
  for (const KeptDump* dump : dumps_->All()) {
    if (!dump->writing && wanted(*dump)) complete.push_back(*dump);
  }
  // Names begin with a number that increases; clocks may step back.
  std::ranges::sort(complete, {}, &KeptDump::name);
  return complete;
}

v1::ListDumpsResponse DumpRequests::List(const Peer& peer) const {
  DCHECK_ON(control_);
  v1::ListDumpsResponse response;
  if (dumps_ == nullptr) return response;
  for (const KeptDump* dump : dumps_->All()) {
    if (peer.Sees(dump->uid)) Describe(*dump, response.add_dumps());
  }
  response.set_total_bytes(dumps_->total_bytes());
  const auto& limits = dumps_->limits();
  if (limits.total != 0) response.set_max_total_bytes(limits.total);
  if (limits.per_uid != 0 && peer.uid != 0) response.set_max_kept_bytes(limits.per_uid);
  if (limits.pinned_per_uid != 0 && !peer.admin) response.set_max_pinned_bytes(limits.pinned_per_uid);
  response.set_incomplete(!dumps_->complete());
  return response;
}

template <class Request, class Response>
Status DumpRequests::SetPinned(bool pinned, const Peer& peer, const Request& request, Response* out) {
  DCHECK_ON(control_);
  if (dumps_ == nullptr) return Unimplemented("this daemon writes no dumps");
  Result<std::vector<std::string>> names = DumpsOf(peer, request.session_id(), request.dump());
  if (!names.ok()) return names.status();
  RETURN_IF_ERROR(dumps_->Pin(*names, pinned, peer.admin));
  for (const std::string& name : *names) {
    const KeptDump* dump = dumps_->Find(name);
    if (dump != nullptr) Describe(*dump, out->add_dumps());
  }
  return Status::Ok();
}

Status DumpRequests::Pin(const Peer& peer, const v1::PinDumpRequest& request_untrusted, v1::PinDumpResponse* out) {
  return SetPinned(true, peer, request_untrusted, out);
}

Status DumpRequests::Unpin(const Peer& peer, const v1::UnpinDumpRequest& request_untrusted, v1::UnpinDumpResponse* out) {
  return SetPinned(false, peer, request_untrusted, out);
}

}  // namespace profd
