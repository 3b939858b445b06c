#include "daemon/archive/archive_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/utf8.h"
#include "daemon/archive/archive_rule.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/session/sampling_rule.h"
#include "dump/dump_root.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

using Wire = v1::ArchiveState;

constexpr size_t kMaxProblem = 300;  // shown as ASCII: a character that was cut would be no text for protobuf
// What is known of dumps that do not wait any more, which is shown and keeps them from being loaded again.
constexpr size_t kMaxSettled = 8000;

ArchiveSubject SubjectOf(const KeptDump& dump) {
  return {.kind = dump.recorder ? "recorder" : dump.label == kSamplingLabel ? "sampling" : "sessions",
          .job_id = dump.job_id, .label = dump.label, .session = dump.fleet.empty() ? dump.session_id : dump.fleet,
          .uid = dump.uid, .segment = dump.segment};
}

std::string ReasonWord(v1::ArchiveFailed::Reason reason) {
  const std::string word = reason == v1::ArchiveFailed::REASON_UNSPECIFIED ? "" : EnumWord(reason);
  return word.empty() ? "unreachable" : word;
}

// Another dump may be loaded nevertheless.
bool MayBeOfDump(v1::ArchiveFailed::Reason reason) {
  return reason == v1::ArchiveFailed::REASON_FETCH || reason == v1::ArchiveFailed::REASON_REFUSED;
}

}  // namespace

ArchiveQueue::ArchiveQueue(Deps deps, const DaemonConfig& config, std::string_view saved)
    : deps_(std::move(deps)), config_(config) {
  Load(saved);
  if (!on()) {
    since_wall_ns_ = 0;
  } else if (since_wall_ns_ == 0) {
    since_wall_ns_ = deps_.clock.WallNs();
    Save();
  }
}

void ArchiveQueue::Load(std::string_view saved) {
  if (saved.empty()) return;
  const auto json = nlohmann::json::parse(saved, nullptr, false);
  if (!json.is_object()) {
    log::Error("what waits for the database cannot be read", {{"why", fmt::format("{} is damaged", kArchiveFile.name)}});
    return;
  }
  const auto number = [](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  const auto text = [](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  since_wall_ns_ = number(json, "since_ns");
  const auto dumps = json.find("dumps");
  if (dumps == json.end() || !dumps->is_object()) return;
  for (const auto& [name, object] : dumps->items()) {
    if (!DumpRoot::IsDumpName(name) || !object.is_object()) continue;
    Entry entry;
    Wire::State state = Wire::STATE_UNSPECIFIED;
    if (!Wire::State_Parse(text(object, "state"), &state)) continue;
    entry.state = state;
    entry.since_wall_ns = number(object, "since_ns");
    entry.attempts = static_cast<uint32_t>(number(object, "attempts"));
    entry.rows = static_cast<uint64_t>(number(object, "rows"));
    entry.run = text(object, "run");
    entry.to = text(object, "to");
    entry.problem = text(object, "problem");
    entry.named = text(object, "named");
    entry.requested = object.contains("requested");
    entries_.emplace(name, std::move(entry));
  }
}

void ArchiveQueue::Save() {
  nlohmann::json json = {{"since_ns", since_wall_ns_}, {"dumps", nlohmann::json::object()}};
  for (const auto& [name, entry] : entries_) {
    nlohmann::json& object = json["dumps"][name];
    object = {{"state", Wire::State_Name(entry.state)}, {"since_ns", entry.since_wall_ns}};
    if (entry.attempts != 0) object["attempts"] = entry.attempts;
    if (entry.rows != 0) object["rows"] = entry.rows;
    if (!entry.run.empty()) object["run"] = entry.run;
    if (!entry.to.empty()) object["to"] = entry.to;
    if (!entry.problem.empty()) object["problem"] = entry.problem;
    if (!entry.named.empty()) object["named"] = entry.named;
    if (entry.requested) object["requested"] = true;
  }
  deps_.states.Save(kArchiveFile, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", nullptr);
}

void ArchiveQueue::Configure(const DaemonConfig& config) {
  DCHECK_ON(deps_.control);
  const bool was_on = on();
  const bool elsewhere = config.archive_to != config_.archive_to;
  config_ = config;
  if (elsewhere) {
    // Failures there are not about the new address.
    failures_in_turn_ = 0;
    next_ns_ = failing_since_wall_ns_ = 0;
    problem_.clear();
    for (auto& [name, entry] : entries_) entry.next_ns = 0;
  }
  if (on() != was_on) {
    since_wall_ns_ = on() ? deps_.clock.WallNs() : 0;
    Save();
    Protect();
  }
  Bound();
}

// While nothing is archived, nothing is protected; what waited waits again when it is turned on.
void ArchiveQueue::Protect() {
  for (const auto& [name, entry] : entries_) deps_.dumps.SetWaiting(name, on() && entry.state == Wire::STATE_WAITING);
}

bool ArchiveQueue::IsMeant(const KeptDump& dump) const {
  return on() && !dump.writing && IsArchived(config_.archive_which, SubjectOf(dump));
}

void ArchiveQueue::OnFound(const DumpRetention::RecoveredDump& found) {
  DCHECK_ON(deps_.control);
  const KeptDump& dump = found.dump;
  if (auto known = entries_.find(dump.name); known != entries_.end()) {
    deps_.dumps.SetWaiting(dump.name, on() && known->second.state == Wire::STATE_WAITING);
  } else if (dump.ended_wall_ns >= since_wall_ns_) {
    // One that the daemon was killed with, or before it was noted.
    OnClosed(dump);
  }
}

void ArchiveQueue::OnClosed(const KeptDump& dump) {
  DCHECK_ON(deps_.control);
  if (!IsMeant(dump) || entries_.contains(dump.name)) return;
  Entry entry;
  entry.since_wall_ns = dump.ended_wall_ns;
  entries_.emplace(dump.name, std::move(entry));
  deps_.dumps.SetWaiting(dump.name, true);
  Bound();
  Save();
}

void ArchiveQueue::OnRemoved(const std::string& name, std::string_view reason) {
  DCHECK_ON(deps_.control);
  auto entry = entries_.find(name);
  if (entry == entries_.end()) return;
  if (on() && entry->second.state == Wire::STATE_WAITING) {
    ++counts_.lost[std::string(reason)];
    log::Warning("dump removed before it was archived", {{"dump", name}, {"why", reason}});
  }
  entries_.erase(entry);
  Save();
}

void ArchiveQueue::OnComplete() {
  DCHECK_ON(deps_.control);
  const size_t before = entries_.size();
  std::erase_if(entries_, [this](const auto& each) { return deps_.dumps.Find(each.first) == nullptr; });
  if (entries_.size() != before) Save();
}

void ArchiveQueue::Tick() {
  DCHECK_ON(deps_.control);
  if (!on()) return;
  Bound();
  GiveUp();
}

ArchiveQueue::Entries::iterator ArchiveQueue::Oldest(bool waiting) {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if ((it->second.state == Wire::STATE_WAITING) != waiting) continue;
    if (oldest == entries_.end() || it->second.since_wall_ns < oldest->second.since_wall_ns) oldest = it;
  }
  return oldest;
}

// The oldest ones beyond the bounds do not wait any more; nor is known for ever what was loaded.
void ArchiveQueue::Bound() {
  if (!on()) return;
  const auto most_bytes = static_cast<uint64_t>(config_.archive_max_waiting_mb) << 20;
  Waiting now = waiting();
  while (now.dumps > static_cast<uint64_t>(config_.archive_max_waiting) || (most_bytes != 0 && now.bytes > most_bytes)) {
    const bool by_number = now.dumps > static_cast<uint64_t>(config_.archive_max_waiting);
    const auto oldest = Oldest(true);
    if (oldest == entries_.end()) break;
    Lose(oldest, "max_waiting", by_number ? "more dumps than archive.max_waiting waited" : "dumps took more than archive.max_waiting_mb");
    now = waiting();
  }
  while (entries_.size() - now.dumps > kMaxSettled) {
    const auto oldest = Oldest(false);
    if (oldest == entries_.end()) break;
    // Not to be found anew at the next start.
    since_wall_ns_ = std::max(since_wall_ns_, oldest->second.since_wall_ns + 1);
    entries_.erase(oldest);
  }
}

void ArchiveQueue::GiveUp() {
  if (config_.archive_give_up_after_h == 0) return;
  const int64_t before = deps_.clock.WallNs() - config_.archive_give_up_after_h * 3600 * kNsPerSecond;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.state != Wire::STATE_WAITING || it->second.since_wall_ns >= before) continue;
    const std::string& last = it->second.problem.empty() ? problem_ : it->second.problem;
    Lose(it, "gave_up", fmt::format("given up after {} h{}{}", config_.archive_give_up_after_h, last.empty() ? "" : ": ", last));
  }
}

void ArchiveQueue::Lose(Entries::iterator entry, std::string_view reason, std::string problem) {
  log::Warning("dump waits for the database no longer",
               {{"dump", entry->first}, {"reason", reason}, {"why", problem}, {"attempts", entry->second.attempts}});
  entry->second.state = Wire::STATE_LOST;
  entry->second.problem = std::move(problem);
  ++counts_.lost[std::string(reason)];
  deps_.dumps.SetWaiting(entry->first, false);
  Save();
}

// By another process that still lives. Its own order of before is the asker's again: its report was lost.
bool ArchiveQueue::IsHeld(const Entry& entry, const Peer& peer) const {
  if (entry.pid == 0 || entry.pid == peer.pid) return false;
  return deps_.processes.StartTimeOf(entry.pid) == std::optional(entry.pid_started);
}

std::string ArchiveQueue::RunOf(const KeptDump& dump, const Entry& entry) const {
  const std::string pattern = entry.named.empty() ? config_.archive_run : NamedRun(config_.archive_run, entry.named);
  return ArchiveRunName(pattern, SubjectOf(dump), deps_.host);
}

Status ArchiveQueue::Take(const Peer& peer, v1::ClaimArchiveUploadResponse* out) {
  DCHECK_ON(deps_.control);
  if (!on()) return FailedPrecondition("nothing is archived on this node: archive.to is not set");
  asked_wall_ns_ = deps_.clock.WallNs();
  const int64_t now = deps_.clock.SteadyNs();
  out->set_waiting(static_cast<uint32_t>(waiting().dumps));
  if (now < next_ns_) return Status::Ok();
  // The oldest; those that were put aside come behind the others.
  const auto turn = [](const Entry& entry) { return std::pair(entry.next_ns, entry.since_wall_ns); };
  auto best = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& entry = it->second;
    if (entry.state != Wire::STATE_WAITING || now < entry.next_ns || deps_.dumps.Find(it->first) == nullptr) continue;
    if (best != entries_.end() && turn(best->second) <= turn(entry)) continue;
    if (!IsHeld(entry, peer)) best = it;
  }
  if (best == entries_.end()) return Status::Ok();
  Entry& entry = best->second;
  entry.pid = peer.pid;
  entry.pid_started = peer.pid == 0 ? 0 : deps_.processes.StartTimeOf(peer.pid).value_or(0);
  ++entry.attempts;
  const KeptDump& dump = *deps_.dumps.Find(best->first);
  v1::ArchiveUpload& upload = *out->mutable_upload();
  upload.mutable_dump()->set_name(dump.name);
  upload.mutable_dump()->set_uid(dump.uid);
  upload.mutable_dump()->set_session_id(dump.session_id);
  upload.mutable_dump()->set_job_id(dump.job_id);
  upload.mutable_dump()->set_bytes(dump.bytes);
  upload.mutable_dump()->set_segment(dump.segment);
  upload.set_to(config_.archive_to);
  upload.set_run(RunOf(dump, entry));
  upload.set_cluster(config_.archive_cluster);
  if (config_.archive_mb_per_s > 0) upload.set_max_bytes_per_s(static_cast<uint64_t>(config_.archive_mb_per_s) << 20);
  upload.set_attempt(entry.attempts);
  const std::string to = DatabaseOf(config_.archive_to);
  if (entry.run != upload.run() || entry.to != to) {
    // For a report that the next daemon receives, or after archive.to was changed.
    entry.run = upload.run();
    entry.to = to;
    Save();
  }
  return Status::Ok();
}

Status ArchiveQueue::Report(const v1::ReportArchiveRequest& request_untrusted) {
  DCHECK_ON(deps_.control);
  auto found = entries_.find(request_untrusted.dump());
  // One that lost its protection meanwhile and is loaded all the same is loaded.
  const bool loaded = request_untrusted.has_loaded();
  if (found == entries_.end() || found->second.state == Wire::STATE_LOADED || (!loaded && found->second.state != Wire::STATE_WAITING)) {
    return NotFound(fmt::format("{} does not wait for the database", log::Quote(request_untrusted.dump())));
  }
  if (!loaded && !request_untrusted.has_failed()) return InvalidArgument("name an outcome: loaded or failed");
  found->second.pid = 0;
  if (loaded) {
    OnLoaded(found->first, &found->second, request_untrusted.loaded());
  } else {
    OnFailed(found, request_untrusted.failed());
  }
  Save();
  return Status::Ok();
}

void ArchiveQueue::OnLoaded(const std::string& name, Entry* entry, const v1::ArchiveLoaded& loaded) {
  const KeptDump* dump = deps_.dumps.Find(name);
  // While it was loaded a user requested another name.
  const bool again = !entry->named.empty() && dump != nullptr && RunOf(*dump, *entry) != entry->run;
  if (entry->state == Wire::STATE_LOST || !again) entry->state = Wire::STATE_LOADED;
  entry->rows = loaded.rows();
  entry->problem = AsciiOnly(loaded.damage(), kMaxProblem);
  if (entry->state == Wire::STATE_LOADED) deps_.dumps.SetWaiting(name, false);
  ++counts_.loaded;
  counts_.loaded_bytes += loaded.bytes();
  ++counts_.loaded_by_database[entry->to];
  failures_in_turn_ = 0;
  next_ns_ = failing_since_wall_ns_ = 0;
  problem_.clear();
  log::Info("dump archived", {{"dump", name}, {"to", entry->to}, {"run", entry->run}, {"damage", entry->problem}, {"ranks", loaded.ranks()}, {"rows", loaded.rows()}, {"bytes", loaded.bytes()}});
}

void ArchiveQueue::OnFailed(Entries::iterator entry, const v1::ArchiveFailed& failed_untrusted) {
  const std::string word = ReasonWord(failed_untrusted.reason());
  const std::string problem = AsciiOnly(failed_untrusted.message(), kMaxProblem);
  ++counts_.failures[word];
  const int64_t now = deps_.clock.SteadyNs();
  entry->second.problem = fmt::format("{}: {}", word, problem);
  if (failed_untrusted.reason() == v1::ArchiveFailed::REASON_UNREADABLE) {
    Lose(entry, word, entry->second.problem);
    return;
  }
  int64_t pause = 0;
  if (MayBeOfDump(failed_untrusted.reason())) {
    pause = PauseAfter(entry->second.attempts);
    entry->second.next_ns = now + pause;
  }
  if (failed_untrusted.reason() != v1::ArchiveFailed::REASON_FETCH) {
    // What is refused may be this dump, or all: the next one shows it, after the shortest pause.
    const int64_t of_all = failed_untrusted.reason() == v1::ArchiveFailed::REASON_REFUSED ? PauseAfter(1) : PauseAfter(++failures_in_turn_);
    next_ns_ = now + of_all;
    pause = std::max(pause, of_all);
    if (failing_since_wall_ns_ == 0) failing_since_wall_ns_ = deps_.clock.WallNs();
    problem_ = entry->second.problem;
  }
  log::Warning("dump not archived", {{"dump", entry->first},
                                     {"reason", word},
                                     {"why", problem},
                                     {"attempt", entry->second.attempts},
                                     {"again_in_s", pause / kNsPerSecond}});
}

int64_t ArchiveQueue::PauseAfter(uint32_t failures) const {
  int64_t seconds = config_.archive_retry_first_s;
  for (uint32_t i = 1; i < failures && seconds < config_.archive_retry_longest_s; ++i) seconds *= 2;
  return std::min(seconds, config_.archive_retry_longest_s) * kNsPerSecond;
}

std::vector<std::string> ArchiveQueue::WaitingOf(std::vector<std::string> names) const {
  std::erase_if(names, [this](const std::string& name) { return !IsWaiting(name); });
  return names;
}

bool ArchiveQueue::IsWaiting(std::string_view name) const {
  DCHECK_ON(deps_.control);
  auto found = entries_.find(name);
  return on() && found != entries_.end() && found->second.state == Wire::STATE_WAITING;
}

ArchiveQueue::Waiting ArchiveQueue::waiting() const {
  DCHECK_ON(deps_.control);
  Waiting sum;
  for (const auto& [name, entry] : entries_) {
    if (!on() || entry.state != Wire::STATE_WAITING) continue;
    ++sum.dumps;
    if (sum.oldest_wall_ns == 0 || entry.since_wall_ns < sum.oldest_wall_ns) sum.oldest_wall_ns = entry.since_wall_ns;
    const KeptDump* dump = deps_.dumps.Find(name);
    if (dump != nullptr) sum.bytes += dump->bytes;
  }
  return sum;
}

void ArchiveQueue::Describe(v1::Dump* out) const {
  DCHECK_ON(deps_.control);
  auto found = entries_.find(out->name());
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  if (entry.state == Wire::STATE_WAITING && !on()) return;
  v1::ArchiveState& state = *out->mutable_archive();
  state.set_state(entry.state);
  state.set_run(entry.run);
  state.set_problem(entry.problem);
  state.set_attempts(entry.attempts);
  state.set_since_ns(entry.since_wall_ns);
  state.set_rows(entry.rows);
  if (entry.rows != 0 || entry.state == Wire::STATE_LOADED) state.set_to(entry.to);
}

void ArchiveQueue::Describe(v1::ArchiveStatus* out) const {
  const Waiting now = waiting();
  out->set_to(config_.archive_to);
  out->set_waiting(static_cast<uint32_t>(now.dumps));
  out->set_waiting_bytes(now.bytes);
  if (now.oldest_wall_ns != 0) out->set_oldest_ns(now.oldest_wall_ns);
  out->set_loaded(counts_.loaded);
  for (const auto& [to, count] : counts_.loaded_by_database) {
    if (to != DatabaseOf(config_.archive_to)) (*out->mutable_loaded_elsewhere())[to] = count;
  }
  for (const auto& [reason, count] : counts_.lost) out->set_lost(out->lost() + count);
  if (failing_since_wall_ns_ != 0) out->set_failing_since_ns(failing_since_wall_ns_);
  out->set_problem(problem_);
  if (asked_wall_ns_ != 0) out->set_asked_ns(asked_wall_ns_);
}

void ArchiveQueue::UpdateMetrics(SelfMetrics* self) const {
  if (!on()) return;
  const Waiting waiting = this->waiting();
  self->Set(MetricByName("profd_archive_waiting_dumps"), waiting.dumps);
  self->Set(MetricByName("profd_archive_waiting_bytes"), waiting.bytes);
  const int64_t age = waiting.oldest_wall_ns == 0 ? 0 : std::max<int64_t>(0, deps_.clock.WallNs() - waiting.oldest_wall_ns);
  self->Set(MetricByName("profd_archive_oldest_waiting_seconds"), static_cast<double>(age) / kNsPerSecond);
  self->Set(MetricByName("profd_archive_loaded_total"), counts_.loaded);
  self->Set(MetricByName("profd_archive_loaded_bytes_total"), counts_.loaded_bytes);
  for (const auto& [reason, count] : counts_.failures) self->Set(MetricByName("profd_archive_failures_total"), count, reason);
  for (const auto& [reason, count] : counts_.lost) self->Set(MetricByName("profd_archive_lost_total"), count, reason);
}

}  // namespace profd
