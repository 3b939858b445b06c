// Requests of users to load finished dumps into the node's own database, under a run name that they may choose. A request
// never removes other dumps from the queue: if the queue is full, the request is refused.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/log.h"
#include "daemon/archive/archive_queue.h"
#include "daemon/archive/archive_rule.h"

namespace profd {
namespace {

using Wire = v1::ArchiveState;

bool IsNamed(const KeptDump& dump, const std::set<std::string_view>& ids) {
  return ids.contains(dump.name) || (!dump.session_id.empty() && ids.contains(dump.session_id)) ||
         (!dump.fleet.empty() && ids.contains(dump.fleet));
}

}  // namespace

Status ArchiveQueue::CheckRequest(const v1::ArchiveDumpsRequest& request_untrusted) const {
  if (!on()) {
    return FailedPrecondition("nothing is archived on this node: archive.to is not set in its profd.toml; set it and start "
                              "profd-archive.service there, or fetch the dumps and export them");
  }
  if ((request_untrusted.ids().empty()) == request_untrusted.job_id().empty()) {
    return InvalidArgument("name sessions or a job");
  }
  if (request_untrusted.ids_size() > kMaxArchiveIds) {
    return InvalidArgument(fmt::format("{} ids, more than {} in one request; name the job, or send several requests", request_untrusted.ids_size(), kMaxArchiveIds));
  }
  const std::string here = DatabaseOf(config_.archive_to);
  const std::string meant = DatabaseOf(request_untrusted.to());
  if (meant.empty()) return InvalidArgument("to must be clickhouse://HOST[:PORT]/DATABASE, or clickhouses:// over TLS");
  if (meant != here) {
    return {StatusCode::kFailedPrecondition,
            Problem{.kind = Problem::Kind::kConflict,
                    .field = "to",
                    .value = meant,
                    .text = fmt::format("this node loads into {} (archive.to) only; request that, or change archive.to", here)}};
  }
  if (request_untrusted.run().empty()) return Status::Ok();
  if (const std::string fault = FaultOfRunName(request_untrusted.run()); !fault.empty()) return InvalidArgument("run " + fault);
  return Status::Ok();
}

std::vector<const KeptDump*> ArchiveQueue::Requested(const Peer& peer, const v1::ArchiveDumpsRequest& request_untrusted,
                                                     std::set<std::string>* unfinished) const {
  const std::set<std::string_view> ids(request_untrusted.ids().begin(), request_untrusted.ids().end());
  std::vector<const KeptDump*> meant;
  for (const KeptDump* dump : deps_.dumps.All()) {
    if (!peer.Owns(dump->uid)) continue;
    if (ids.empty() ? dump->job_id != request_untrusted.job_id() : !IsNamed(*dump, ids)) continue;
    if (dump->writing) {
      unfinished->insert(dump->session_id);
    } else {
      meant.push_back(dump);
    }
  }
  return meant;
}

// Dumps of one rank replace each other in one run, and which ranks a dump has is not known here.
Status ArchiveQueue::CheckRun(const std::vector<const KeptDump*>& meant, const std::string& run) const {
  if (run.empty() || run.find("{session}") != std::string::npos) return Status::Ok();
  std::set<std::string_view> sessions;
  std::string_view newest;
  for (const KeptDump* dump : meant) sessions.insert(newest = dump->fleet.empty() ? dump->session_id : dump->fleet);
  if (sessions.size() < 2) return Status::Ok();
  return FailedPrecondition(fmt::format("{} sessions match, and dumps of one rank replace each other in one run: name one session (the newest is {}), "
                                        "or a run with {{session}} in it, as in '{}-{{session}}'", sessions.size(), newest, run));
}

// One user may fill only a part of the queue.
Status ArchiveQueue::CheckCapacity(const Peer& peer, const std::vector<const KeptDump*>& added) const {
  if (added.empty()) return Status::Ok();
  uint64_t dumps = added.size();
  uint64_t bytes = 0;
  for (const KeptDump* dump : added) bytes += dump->bytes;
  const Waiting now = waiting();
  const auto most = static_cast<uint64_t>(config_.archive_max_waiting);
  const auto most_bytes = static_cast<uint64_t>(config_.archive_max_waiting_mb) << 20;
  constexpr const char* kLater = "nothing was queued; try again when fewer dumps wait";
  if (now.dumps + dumps > most) {
    return ResourceExhausted(fmt::format("the queue of this node is full: {} dumps wait, {} more are requested, and {} may wait (archive.max_waiting); {}",
                                         now.dumps, dumps, most, kLater));
  }
  if (most_bytes != 0 && now.bytes + bytes > most_bytes) {
    return ResourceExhausted(fmt::format("the queue of this node is full: dumps of {} MB wait, {} MB more are requested, and {} MB may wait "
                                         "(archive.max_waiting_mb); {}", now.bytes >> 20, bytes >> 20, most_bytes >> 20, kLater));
  }
  if (peer.admin) return Status::Ok();
  for (const auto& [name, entry] : entries_) {
    const KeptDump* dump = entry.requested && entry.state == Wire::STATE_WAITING ? deps_.dumps.Find(name) : nullptr;
    if (dump == nullptr || dump->uid != peer.uid) continue;
    ++dumps;
    bytes += dump->bytes;
  }
  if (dumps <= std::max<uint64_t>(1, most / kArchiveShareOfUser) && (most_bytes == 0 || bytes <= most_bytes / kArchiveShareOfUser)) return Status::Ok();
  return ResourceExhausted(fmt::format("{} dumps ({} MB) of uid {} would wait by request: one user may have half of archive.max_waiting and of "
                                       "archive.max_waiting_mb; {}", dumps, bytes >> 20, peer.uid, kLater));
}

bool ArchiveQueue::IsToBeLoaded(const KeptDump& dump, const std::string& run) const {
  auto found = entries_.find(dump.name);
  if (found == entries_.end() || found->second.state == Wire::STATE_LOST) return true;
  // One that went into another database is not in this one. Of what an earlier release loaded it is not known.
  const std::string& to = found->second.to;
  if (found->second.state == Wire::STATE_LOADED && !to.empty() && to != DatabaseOf(config_.archive_to)) return true;
  Entry as_asked = found->second;
  as_asked.named = run;
  return found->second.state == Wire::STATE_LOADED && !run.empty() && RunOf(dump, as_asked) != found->second.run;
}

void ArchiveQueue::Enqueue(const KeptDump& dump, const std::string& run) {
  Entry& entry = entries_.try_emplace(dump.name).first->second;
  entry.state = Wire::STATE_WAITING;
  entry.since_wall_ns = deps_.clock.WallNs();  // not given up at once for its age
  entry.requested = true;
  entry.named = run;
  entry.attempts = 0;
  entry.next_ns = 0;
  entry.rows = 0;
  entry.problem.clear();
  deps_.dumps.SetWaiting(dump.name, true);
}

Status ArchiveQueue::Request(const Peer& peer, const v1::ArchiveDumpsRequest& request_untrusted, v1::ArchiveDumpsResponse* out) {
  DCHECK_ON(deps_.control);
  RETURN_IF_ERROR(CheckRequest(request_untrusted));
  const std::string& run = request_untrusted.run();
  std::set<std::string> unfinished;
  const std::vector<const KeptDump*> meant = Requested(peer, request_untrusted, &unfinished);
  if (meant.empty() && unfinished.empty()) {
    if (!deps_.dumps.complete()) return Unavailable("the dumps of earlier runs of the daemon are still being read; try again");
    return NotFound("none of these dumps is on this node, or none is owned by you");
  }
  if (!request_untrusted.only_look()) {
    RETURN_IF_ERROR(CheckRun(meant, run));
    std::vector<const KeptDump*> added;
    std::copy_if(meant.begin(), meant.end(), std::back_inserter(added), [&](const KeptDump* dump) { return IsToBeLoaded(*dump, run); });
    RETURN_IF_ERROR(CheckCapacity(peer, added));
    for (const KeptDump* dump : added) {
      Enqueue(*dump, run);
      log::Info("dump is to be archived on request", {{"dump", dump->name}, {"uid", peer.uid}, {"run", RunOf(*dump, entries_.find(dump->name)->second)}});
    }
    bool changed = !added.empty();
    for (const KeptDump* dump : meant) {
      // What waits already is loaded under the name of the last request.
      Entry& entry = entries_.find(dump->name)->second;
      if (entry.state != Wire::STATE_WAITING || run.empty() || entry.named == run) continue;
      entry.named = run;
      changed = true;
    }
    if (changed) Save();
  }
  for (const KeptDump* dump : meant) Describe(*dump, out->add_dumps());
  out->mutable_unfinished()->Assign(unfinished.begin(), unfinished.end());
  Describe(out->mutable_archive());
  return Status::Ok();
}

void ArchiveQueue::Describe(const KeptDump& dump, v1::Dump* out) const {
  out->set_name(dump.name);
  out->set_uid(dump.uid);
  out->set_session_id(dump.session_id);
  out->set_job_id(dump.job_id);
  out->set_bytes(dump.bytes);
  out->set_segment(dump.segment);
  Describe(out);
  if (auto found = entries_.find(dump.name); found != entries_.end() && found->second.state == Wire::STATE_WAITING) {
    out->mutable_archive()->set_run(RunOf(dump, found->second));
  }
}

}  // namespace profd
