// What completes dumps: those that a crash left, and those of this daemon whose end the disk refused.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "daemon/dumps/dump_retention.h"
#include "dump/reader.h"

namespace profd {
namespace {

// A dump of an earlier daemon may be large, and there may be many: each is read again only so often.
constexpr int64_t kRetryNs = 30 * kNsPerSecond;

// For lack of space or of descriptors, or as the disk did not answer; not for what is wrong with the dump.
bool MayPass(const Status& problem) {
  return problem.code() == StatusCode::kResourceExhausted || problem.code() == StatusCode::kUnavailable;
}

KeptDump Describe(const std::string& name, const Manifest& manifest) {
  KeptDump dump{.name = name, .uid = manifest.uid, .session_id = manifest.session_id, .job_id = manifest.job_id,
                .label = manifest.label, .recorder = manifest.requested.contains("flight_recorder")};
  if (auto fleet = manifest.metadata.find(kFleetMetadata); fleet != manifest.metadata.end()) dump.fleet = fleet->second;
  dump.state = manifest.state;
  dump.started_wall_ns = manifest.start_wall_ns;
  dump.ended_wall_ns = manifest.end_wall_ns;
  dump.segment = static_cast<uint32_t>(std::max(1, manifest.segment));
  return dump;
}

// Runs on the disk's thread.
DumpRetention::RecoveredDump Complete(const DumpRoot& root, const std::string& name, const RecoveryOptions& options, bool* empty) {
  DumpRetention::RecoveredDump found;
  found.dump.name = name;
  found.dump.state = DumpState::kInterrupted;
  found.dump.session_id = options.session_id;
  Result<RecoveredDump> recovered = RecoverDump(root, name, options);
  if (recovered.ok()) {
    *empty = recovered->outcome == RecoveredDump::Outcome::kEmpty;
    found.manifest = std::move(recovered->manifest);
    found.dump = Describe(name, found.manifest);
    if (recovered->outcome == RecoveredDump::Outcome::kRecovered) {
      log::Info("dump completed", {{"dump", name}, {"session", found.dump.session_id},
                                   {"cut_bytes", recovered->cut_bytes}, {"slices", recovered->ended_slices}});
    }
  } else {
    found.problem = recovered.status();
    if (Result<DumpReader> reader = DumpReader::Open(root, name); reader.ok()) {
      if (Result<Manifest> manifest = reader->ReadManifest(); manifest.ok()) {
        found.manifest = std::move(manifest).value();
        found.manifest.state = DumpState::kInterrupted;
        found.dump = Describe(name, found.manifest);
      }
    }
    if (Result<std::pair<uint32_t, int64_t>> facts = root.FactsOf(name); facts.ok()) {
      found.dump.uid = found.manifest.uid = facts->first;
      if (found.dump.ended_wall_ns == 0) found.dump.ended_wall_ns = facts->second;
    }
  }
  found.dump.bytes = root.BytesOf(name).value_or(0);
  return found;
}

}  // namespace

// One dump at a time, so that removals get their turn in between.
struct DumpRetention::Disk {
  std::vector<std::string> names;
  std::map<std::string, FirstDump> first;
  size_t next = 0;
};

void DumpRetention::Begin(std::vector<std::string> names, std::map<std::string, FirstDump> first) {
  DCHECK_ON(deps_.control);
  auto work = std::make_shared<Disk>();
  // Newest first, after those a client waits for.
  std::ranges::sort(names, std::greater<>());
  std::stable_partition(names.begin(), names.end(),
                        [&first](const std::string& name) { return first.contains(name); });
  left_ = names.size();
  first_left_ = static_cast<size_t>(std::ranges::count_if(names, [&first](const auto& name) { return first.contains(name); }));
  work->names = std::move(names);
  work->first = std::move(first);
  NoteProgress(first_left_ == 0);
  auto step = std::make_shared<std::function<void()>>();
  *step = [this, work, weak = std::weak_ptr(step)] {
    auto self = weak.lock();
    if (self == nullptr || work->next >= work->names.size()) return;
    const std::string& name = work->names[work->next++];
    RecoveryOptions options{.now_wall_ns = deps_.clock.WallNs(), .now_raw_ns = deps_.clock.MonotonicRawNs()};
    if (auto known = work->first.find(name); known != work->first.end()) {
      options.session_id = known->second.session_id;
      options.same_boot = known->second.same_boot;
    }
    Result<DumpRoot> root = DumpRoot::Attach(deps_.root);
    bool empty = false;
    RecoveredDump found;
    if (root.ok()) {
      found = Complete(*root, name, options, &empty);
      if (empty) root->Remove(name).Ignore();
    } else {
      found.problem = root.status();
      empty = true;
    }
    deps_.control.Post([this, empty, found = std::move(found), options = std::move(options)]() mutable {
      --left_;
      if (!empty) Take(std::move(found), std::move(options));
      NoteProgress(first_left_ > 0 && --first_left_ == 0);
    });
    disk_.Post([self] { (*self)(); });
  };
  disk_.Post([this, step] {
    if (Result<DumpRoot> root = DumpRoot::Attach(deps_.root); root.ok()) root->RemoveLeftovers();
    (*step)();
  });
}

void DumpRetention::NoteProgress(bool first_complete) {
  for (Watcher* watcher : watchers_) {
    if (first_complete) watcher->OnFirstComplete();
    if (complete()) watcher->OnComplete();
  }
}

void DumpRetention::Take(RecoveredDump found, RecoveryOptions options) {
  DCHECK_ON(deps_.control);
  if (dumps_.contains(found.dump.name)) return;
  found.dump.pinned = pinned_.contains(found.dump.name);
  if (!found.problem.ok()) {
    log::Warning("dump not completed", {{"dump", found.dump.name}, {"why", found.problem.ToString()}});
    if (MayPass(found.problem)) {
      unended_[found.dump.name] = {.options = std::move(options), .found = true, .next_ns = deps_.clock.SteadyNs() + kRetryNs};
    }
  } else if (found.manifest.state == DumpState::kInterrupted) {
    ++recovered_;
  }
  dumps_[found.dump.name] = found.dump;
  ++changes_;
  for (Watcher* watcher : watchers_) watcher->OnFound(found);
}

void DumpRetention::CompleteLater(const std::string& name, Manifest manifest) {
  DCHECK_ON(deps_.control);
  log::Warning("the end of a dump could not be written; it is tried again", {{"dump", name}});
  Unended& dump = unended_[name];
  dump.options.same_boot = true;
  dump.options.session_id = manifest.session_id;
  dump.options.reason = manifest.reason;
  dump.options.state = manifest.state;
  dump.options.manifest = std::move(manifest);
  // Nothing waits any more: what could not be written is lost, and counted.
  if (auto found = dumps_.find(name); found != dumps_.end()) Grown(name, found->second.bytes);
}

void DumpRetention::Tick() {
  DCHECK_ON(deps_.control);
  const int64_t now = deps_.clock.SteadyNs();
  for (auto& [name, dump] : unended_) {
    if (!dump.trying && now >= dump.next_ns) TryToComplete(name, dump);
  }
}

void DumpRetention::KeepReason(const std::string& name, const std::string& reason) {
  DCHECK_ON(deps_.control);
  disk_.Post([this, name, reason] {
    Result<DumpRoot> root = DumpRoot::Attach(deps_.root);
    const Status kept = root.ok() ? profd::KeepReason(*root, name, reason) : root.status();
    if (kept.ok() || kept.code() == StatusCode::kNotFound) return;
    log::Warning("why a session was not continued will not be known after the next restart of profd",
                 {{"dump", name}, {"why", kept.ToString()}});
  });
  Measure(name);
}

void DumpRetention::TryToComplete(const std::string& name, Unended& dump) {
  dump.trying = true;
  RecoveryOptions options = dump.options;
  options.now_wall_ns = deps_.clock.WallNs();
  options.now_raw_ns = deps_.clock.MonotonicRawNs();
  disk_.Post([this, name, options = std::move(options)] {
    Result<DumpRoot> root = DumpRoot::Attach(deps_.root);
    Status status = root.ok() ? Status() : Unavailable(root.status().message());
    int64_t end_wall_ns = 0;
    if (status.ok()) {
      Result<profd::RecoveredDump> recovered = RecoverDump(*root, name, options);
      status = recovered.status();
      if (recovered.ok()) end_wall_ns = recovered->manifest.end_wall_ns;
    }
    deps_.control.Post([this, name, status, state = options.state, end_wall_ns] {
      auto tried = unended_.find(name);
      if (tried == unended_.end()) return;  // removed meanwhile
      const bool found = tried->second.found;
      tried->second.trying = false;
      if (found) tried->second.next_ns = deps_.clock.SteadyNs() + kRetryNs;
      const bool gone = !dumps_.contains(name) || status.code() == StatusCode::kNotFound;
      if (!status.ok() && !gone && (!found || MayPass(status))) return;
      unended_.erase(tried);
      if (status.ok() && !gone) log::Info("dump completed", {{"dump", name}});
      if (!found) return Closed(name, state, 0);
      if (!status.ok() || gone) return;
      ++recovered_;
      dumps_.at(name).ended_wall_ns = end_wall_ns;
      Measure(name);
    });
  });
}

}  // namespace profd
