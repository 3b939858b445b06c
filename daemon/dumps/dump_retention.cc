#include "daemon/dumps/dump_retention.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "daemon/metrics/self_metrics.h"

namespace profd {
namespace {

constexpr uint64_t kMiB = 1u << 20;
// What a dump still writes when it ends, and what an empty one takes.
constexpr uint64_t kPerRunningDump = 256u << 10;
constexpr uint64_t kNewDump = kMiB;
// Space is freed for what is written until removing has had its effect.
constexpr double kAheadS = 2.0;
constexpr double kMarginS = 0.5;
// Dumps grow by complete flushes: over less time than this one of them would look like a flood, for which
// the dumps of all users would be removed.
constexpr int64_t kRateNs = 150 * kNsPerMs;

uint64_t Mb(uint64_t bytes) { return (bytes + kMiB - 1) / kMiB; }

}  // namespace

DumpRetention::DumpRetention(Deps deps, const QuotaLimits& limits)
    : deps_(std::move(deps)), limits_(limits) {
  LoadPins();
}

DumpRetention::~DumpRetention() { Stop(); }

void DumpRetention::Stop() { executor_.Stop(); }

void DumpRetention::LoadPins() {
  const auto lost = [](const std::string& why) {
    log::Error("pins could not be read: pinned dumps are not protected", {{"why", why}});
  };
  Result<std::string> text = deps_.store.Load(kPinsFile);
  if (!text.ok()) return lost(text.status().ToString());
  if (text->empty()) return;
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json["pinned"].is_array()) return lost(fmt::format("{} is damaged", kPinsFile.name));
  for (const auto& name : json["pinned"]) {
    if (name.is_string() && DumpRoot::IsDumpName(name.get<std::string>())) {
      pinned_.insert(name.get<std::string>());
    }
  }
}

void DumpRetention::SavePins() {
  const nlohmann::json json = {{"pinned", pinned_}};
  deps_.states.Save(kPinsFile, json.dump(1) + "\n", nullptr);
}

void DumpRetention::Opened(KeptDump dump) {
  DCHECK_ON(deps_.control);
  dump.writing = true;
  dump.pinned = pinned_.contains(dump.name);
  std::string name = dump.name;
  dumps_[std::move(name)] = std::move(dump);
  ++changes_;
}

void DumpRetention::Grown(std::string_view name, uint64_t bytes, uint64_t queued) {
  DCHECK_ON(deps_.control);
  auto found = dumps_.find(name);
  if (found == dumps_.end() || !found->second.writing) return;
  KeptDump& dump = found->second;
  const uint64_t before = dump.bytes + dump.queued;
  if (bytes + queued > before) grown_ += bytes + queued - before;
  if (bytes == dump.bytes && queued == dump.queued) return;
  dump.bytes = bytes;
  dump.queued = queued;
  ++changes_;
}

void DumpRetention::Closed(const std::string& name, DumpState state, uint64_t bytes) {
  DCHECK_ON(deps_.control);
  auto found = dumps_.find(name);
  if (found == dumps_.end()) return;
  ++changes_;
  found->second.writing = false;
  found->second.queued = 0;
  found->second.state = state;
  found->second.bytes = std::max(found->second.bytes, bytes);
  found->second.ended_wall_ns = deps_.clock.WallNs();
  for (Watcher* watcher : watchers_) watcher->OnClosed(found->second);
  Measure(name);
}

// What its manifest and last files made of it.
void DumpRetention::Measure(const std::string& name) {
  disk_.Post([this, name] {
    Result<DumpRoot> root = DumpRoot::Attach(deps_.root);
    if (!root.ok()) return;
    Result<uint64_t> size = root->BytesOf(name);
    if (!size.ok()) return;
    deps_.control.Post([this, name, size = *size] {
      auto known = dumps_.find(name);
      if (known == dumps_.end() || known->second.writing) return;
      known->second.bytes = size;
      ++changes_;
    });
  });
}

void DumpRetention::SetWaiting(std::string_view name, bool waiting) {
  DCHECK_ON(deps_.control);
  if (auto found = dumps_.find(name); found != dumps_.end()) found->second.waiting = waiting;
}

const KeptDump* DumpRetention::Find(std::string_view name) const {
  DCHECK_ON(deps_.control);
  auto found = dumps_.find(name);
  return found == dumps_.end() || found->second.removing ? nullptr : &found->second;
}

std::vector<const KeptDump*> DumpRetention::All() const {
  DCHECK_ON(deps_.control);
  std::vector<const KeptDump*> all;
  for (const auto& [name, dump] : dumps_) {
    if (!dump.removing) all.push_back(&dump);
  }
  std::ranges::sort(all, [](const KeptDump* a, const KeptDump* b) {
    return std::tie(a->started_wall_ns, a->name) < std::tie(b->started_wall_ns, b->name);
  });
  return all;
}

uint64_t DumpRetention::total_bytes() const { return sums().total(); }

const DumpRetention::Sums& DumpRetention::sums() const {
  DCHECK_ON(deps_.control);
  if (summed_changes_ == changes_) return sums_;
  summed_changes_ = changes_;
  sums_ = {};
  for (const auto& [name, dump] : dumps_) {
    sums_.writing += dump.writing ? 1 : 0;
    if (dump.removing) continue;
    (dump.writing ? sums_.running : dump.pinned ? sums_.pinned : sums_.finished) += dump.bytes;
    sums_.queued += dump.queued;
  }
  return sums_;
}

void DumpRetention::Remove(const std::string& name, std::string_view reason, Removed done) {
  DCHECK_ON(deps_.control);
  auto found = dumps_.find(name);
  if (found != dumps_.end()) found->second.removing = true;
  ++changes_;
  ++removed_[std::string(reason)];
  if (pinned_.erase(name) > 0) SavePins();
  disk_.Post([this, name, done = std::move(done)] {
    Result<DumpRoot> root = DumpRoot::Attach(deps_.root);
    Result<uint64_t> freed = root.ok() ? root->BytesOf(name) : Result<uint64_t>(root.status());
    Status removed = root.ok() ? root->Remove(name) : root.status();
    if (!removed.ok()) freed = removed;
    deps_.control.Post([this, name, done, freed] {
      ++changes_;
      const bool gone = freed.ok() || freed.status().code() == StatusCode::kNotFound;
      if (gone) {
        dumps_.erase(name);
      } else if (auto known = dumps_.find(name); known != dumps_.end()) {
        known->second.removing = false;
        log::Warning("dump not removed", {{"dump", name}, {"why", freed.status().ToString()}});
      }
      if (done) done(freed);
    });
  });
  for (Watcher* watcher : watchers_) watcher->OnRemoved(name, reason);
}

Status DumpRetention::Pin(const std::vector<std::string>& names, bool pinned, bool unlimited) {
  DCHECK_ON(deps_.control);
  std::map<uint32_t, uint64_t> more;
  for (const std::string& name : names) {
    const KeptDump* dump = Find(name);
    if (dump == nullptr) return NotFound(fmt::format("dump {} not found", name));
    if (dump->writing) {
      return FailedPrecondition(fmt::format("{} is still being written; no dump that is goes", name));
    }
    if (pinned && !dump->pinned) more[dump->uid] += dump->bytes;
  }
  for (const auto& [uid, bytes] : more) {
    uint64_t has = 0;
    for (const auto& [name, dump] : dumps_) has += dump.uid == uid && dump.pinned ? dump.bytes : 0;
    if (limits_.pinned_per_uid == 0 || unlimited || has + bytes <= limits_.pinned_per_uid) continue;
    return ResourceExhausted(fmt::format(
        "uid {} has {} MB pinned and these are {} MB more; at most {} MB "
        "(limits.max_pinned_mb_per_uid): unpin others first",
        uid, Mb(has), Mb(bytes), limits_.pinned_per_uid / kMiB));
  }
  ++changes_;
  for (const std::string& name : names) {
    dumps_.at(name).pinned = pinned;
    if (pinned) {
      pinned_.insert(name);
    } else {
      pinned_.erase(name);
    }
  }
  SavePins();
  return {};
}

// What is being written may take within so long.
uint64_t DumpRetention::BytesAhead(double seconds) const {
  const size_t writing = sums().writing;
  return writing == 0 ? 0 : static_cast<uint64_t>(bytes_per_s_ * seconds) + writing * kPerRunningDump;
}

Headroom DumpRetention::HeadroomNow() const {
  Headroom headroom;
  headroom.total = BytesAhead(kAheadS);
  headroom.margin = BytesAhead(kMarginS);
  for (const auto& [name, dump] : dumps_) {
    if (dump.writing) headroom.by_uid[dump.uid] = headroom.total;
  }
  return headroom;
}

void DumpRetention::Apply(const QuotaPlan& plan) {
  for (const QuotaPlan::Removal& removal : plan.removals) {
    const KeptDump& dump = dumps_.find(removal.name)->second;
    log::Info("dump removed by retention", {{"dump", dump.name},
                                            {"session", dump.session_id},
                                            {"uid", dump.uid},
                                            {"bytes", dump.bytes},
                                            {"limit", removal.reason}});
    Remove(removal.name, removal.reason, nullptr);
  }
}

namespace {
std::vector<KeptDump> Copies(const std::map<std::string, KeptDump, std::less<>>& dumps) {
  std::vector<KeptDump> all;
  all.reserve(dumps.size());
  for (const auto& [name, dump] : dumps) all.push_back(dump);
  return all;
}
}  // namespace

Status DumpRetention::CheckStart(uint32_t uid) {
  DCHECK_ON(deps_.control);
  if (limits_.total == 0 && limits_.per_uid == 0) return {};
  Headroom headroom = HeadroomNow();
  headroom.total += kNewDump;
  headroom.by_uid[uid] = std::max(headroom.by_uid[uid], headroom.total);
  headroom.margin = std::max(headroom.margin, kNewDump);
  QuotaPlan plan = PlanRemovals(Copies(dumps_), limits_, headroom);
  Apply(plan);
  constexpr std::string_view kHelp =
      "nothing more can be removed: the remaining dumps are pinned or being written";
  if (plan.over_uids.contains(uid)) {
    return ResourceExhausted(fmt::format(
        "the dumps of uid {} take all of the {} MB one user may keep (limits.max_kept_mb_per_uid); {}",
        uid, limits_.per_uid / kMiB, kHelp));
  }
  if (plan.over_total) {
    return ResourceExhausted(fmt::format("dumps take {} of {} MB (dump.max_total_mb); {}",
                                         Mb(total_bytes()), limits_.total / kMiB, kHelp));
  }
  return {};
}

QuotaPlan DumpRetention::Enforce() {
  DCHECK_ON(deps_.control);
  const int64_t now = deps_.clock.SteadyNs();
  if (grown_at_ns_ == 0 || now - grown_at_ns_ >= kRateNs) {
    if (grown_at_ns_ != 0) {
      double rate = static_cast<double>(grown_ - grown_before_) /
                    (static_cast<double>(now - grown_at_ns_) / 1e9);
      // A pause does not predict how fast the next session writes.
      bytes_per_s_ = std::max(rate, sums().writing == 0 ? bytes_per_s_ : bytes_per_s_ * 0.9);
    }
    grown_at_ns_ = now;
    grown_before_ = grown_;
  }
  if (limits_.total == 0 && limits_.per_uid == 0) return {};
  if (FarBelow(sums().total() + sums().queued + BytesAhead(std::max(kAheadS, kMarginS)))) return {};
  QuotaPlan plan = PlanRemovals(Copies(dumps_), limits_, HeadroomNow());
  Apply(plan);
  return plan;
}

// Whether even one user could have all of it, so that nothing need be planned: this is called several
// times a second, and there may be thousands of dumps.
bool DumpRetention::FarBelow(uint64_t bytes) const {
  return (limits_.total == 0 || bytes <= limits_.total) &&
         (limits_.per_uid == 0 || bytes <= limits_.per_uid);
}

void DumpRetention::UpdateMetrics(SelfMetrics* self) const {
  constexpr MetricId kBytes = MetricByName("profd_dump_root_bytes");
  self->Set(kBytes, sums().running, "running");
  self->Set(kBytes, sums().finished, "finished");
  self->Set(kBytes, sums().pinned, "pinned");
  for (std::string_view reason : {kReasonRequest, kReasonTotal, kReasonPerUid}) {
    const auto found = removed_.find(reason);
    self->Set(MetricByName("profd_dumps_removed_total"), found == removed_.end() ? 0 : found->second, reason);
  }
  self->Set(MetricByName("profd_dumps_recovered_total"), recovered_);
}

}  // namespace profd
