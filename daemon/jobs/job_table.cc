#include "daemon/jobs/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/jobs/process_probe.h"

namespace profd {
namespace {

// Rings are looked at this often: while a session takes marks, and otherwise, for the steps.
constexpr int64_t kBusyRoundNs = 50 * kNsPerMs;
constexpr int64_t kIdleRoundNs = 100 * kNsPerMs;
// Of all rings together in one round; the others come first in the next.
constexpr size_t kSlotsPerRound = 4 * MarkScratch::kSlots;
constexpr size_t kActivityBytesPerRound = 8 * ActivityScratch::kBytes;
// A process that lost its connection may come back (its library reconnects): it is shown for so long.
constexpr int64_t kSilentNs = 60 * kNsPerSecond;
constexpr size_t kMaxSilent = 1024;
// Sessions of one process, as libprofd counts them.
constexpr size_t kMaxCollecting = 256;

bool IsSame(const TrainingProcess& a, const TrainingProcess& b) {
  return a.pid == b.pid && a.start_ticks == b.start_ticks;
}

}  // namespace

JobTable::JobTable(Deps deps) : deps_(deps), watchers_(std::make_shared<WatchList>()) {}

JobTable::~JobTable() = default;

void JobTable::Enter(TrainingProcess process, bool devices_named,
                     std::unique_ptr<RingReader> ring_or_null) {
  DCHECK_ON(deps_.control);
  ++counters_.attaches;
  std::erase_if(silent_, [&](const TrainingProcess& p) { return IsSame(p, process); });
  uint64_t id = process.attach_id;
  if (ring_or_null != nullptr) TakeOver(process, ring_or_null.get());
  Entry& entry = attached_[id];
  entry.process = std::move(process);
  entry.devices_named = devices_named;
  entry.ring = std::move(ring_or_null);
  entry.held.emplace(memory(), entry.process.uid);
  AdoptDevices(entry);
}

// The end of the connection before may come later than this one, and a ring has one reader. The process publishes nothing
// until it is welcome.
void JobTable::TakeOver(const TrainingProcess& process, RingReader* ring) {
  std::vector<uint64_t> before;
  for (const auto& [id, entry] : attached_) {
    if (IsSame(entry.process, process) && entry.ring != nullptr && entry.ring->IsOfSameRing(*ring)) before.push_back(id);
  }
  for (const uint64_t id : before) {
    TakeAll(id);
    if (const auto found = attached_.find(id); found != attached_.end()) found->second.ring.reset();
  }
  ring->Continue();
}

void JobTable::Announce(uint64_t attach_id) {
  DCHECK_ON(deps_.control);
  auto found = attached_.find(attach_id);
  if (found == attached_.end()) return;
  const TrainingProcess copy = found->second.process;
  ForWatchers([&](JobWatcher& watcher) { watcher.OnAttached(copy); });
  Arm();
}

void JobTable::Detach(uint64_t attach_id, bool in_good_order) {
  DCHECK_ON(deps_.control);
  auto found = attached_.find(attach_id);
  if (found == attached_.end()) return;
  TakeAll(attach_id);
  TakeAllActivity(attach_id);
  found = attached_.find(attach_id);
  if (found == attached_.end()) return;
  Entry& entry = found->second;
  // A thread that was killed while it filled a slot keeps what follows it from being read.
  if (entry.ring != nullptr && entry.ring->Waiting() > 0) {
    uint64_t lost = entry.ring->Waiting();
    counters_.dropped_marks += lost;
    entry.process.dropped_marks += lost;
    Deliver(entry.process, {}, lost);
  }
  TrainingProcess process = std::move(attached_.find(attach_id)->second.process);
  attached_.erase(attach_id);
  ForWatchers([&](JobWatcher& watcher) { watcher.OnDetached(process, in_good_order); });
  if (in_good_order) return;
  if (!Lives(process)) return ForWatchers([&](JobWatcher& watcher) { watcher.OnCrashed(process); });
  const bool again = std::ranges::any_of(attached_, [&](const auto& one) { return IsSame(one.second.process, process); });
  if (again || silent_.size() == kMaxSilent) return;
  process.attach_id = 0;
  process.silent_since_ns = deps_.clock.MonotonicRawNs();
  silent_.push_back(std::move(process));
}

void JobTable::OnStep(uint64_t attach_id, const attach::StepReport& report) {
  DCHECK_ON(deps_.control);
  if (!attached_.contains(attach_id)) return;
  ForWatchers([&](JobWatcher& watcher) { watcher.OnStep(attach_id, report); });
}

void JobTable::OnCollector(uint64_t attach_id, const attach::CollectorReport& report,
                           std::shared_ptr<ActivityReader> ring_or_null) {
  DCHECK_ON(deps_.control);
  auto found = attached_.find(attach_id);
  if (found == attached_.end()) return;
  if (ring_or_null != nullptr) {
    found->second.activity = std::move(ring_or_null);
    found->second.window.reset();  // its ids of names mean something else now
    Arm();
  }
  FollowCollector(found->second, report);
  ForWatchers([&](JobWatcher& watcher) { watcher.OnCollector(attach_id, report); });
}

void JobTable::OnFiles(uint64_t attach_id, const attach::CollectorReport& report,
                       std::shared_ptr<UniqueFd> directory) {
  DCHECK_ON(deps_.control);
  if (!attached_.contains(attach_id)) return;
  bool taken = false;
  ForWatchers([&](JobWatcher& watcher) { taken = taken || watcher.OnFiles(attach_id, report, directory); });
  if (taken) return;
  NotifyTaken(attach_id, {report.session_id, static_cast<int>(StatusCode::kNotFound),
                          "no session waits for these files"});
}

void JobTable::FollowCollector(Entry& entry, const attach::CollectorReport& report) {
  const bool works = report.state == attach::CollectState::kOn || report.state == attach::CollectState::kPartial;
  // Only kernels show when a device is free.
  if (!works || !report.kinds.Has(attach::CollectKind::kKernel)) {
    entry.collecting.erase(report.session_id);
  } else if (entry.collecting.size() < kMaxCollecting) {
    entry.collecting.insert(report.session_id);
  }
  if (entry.collecting.empty() || entry.activity == nullptr) {
    entry.window.reset();
  } else if (entry.window == nullptr) {
    entry.window = std::make_unique<ActivityWindow>(deps_.clock.MonotonicRawNs());
  }
}

LiveActivity JobTable::FindActivity(uint64_t attach_id) const {
  DCHECK_ON(deps_.control);
  auto found = attached_.find(attach_id);
  if (found == attached_.end() || found->second.window == nullptr) return {};
  return {found->second.window.get(), &found->second.activity->names()};
}

// The driver knows better than a guess from the environment.
void JobTable::AdoptDevices(Entry& entry) const {
  if (entry.devices_named) return;
  for (const TrainingProcess& user : users_) {
    if (IsSame(user, entry.process)) entry.process.devices = user.devices;
  }
}

void JobTable::SetDeviceUsers(std::vector<TrainingProcess> users) {
  DCHECK_ON(deps_.control);
  users_ = std::move(users);
  for (auto& [id, entry] : attached_) AdoptDevices(entry);
}

const TrainingProcess* JobTable::Find(uint64_t attach_id) const {
  DCHECK_ON(deps_.control);
  auto found = attached_.find(attach_id);
  return found == attached_.end() ? nullptr : &found->second.process;
}

void JobTable::Tick() {
  DCHECK_ON(deps_.control);
  int64_t now = deps_.clock.MonotonicRawNs();
  for (auto& [id, entry] : attached_) {
    if (entry.window != nullptr) entry.window->Advance(now);
  }
  std::vector<TrainingProcess> ended;
  std::erase_if(silent_, [&](const TrainingProcess& process) {
    if (Lives(process)) return now - process.silent_since_ns > kSilentNs;
    ended.push_back(process);
    return true;
  });
  for (const TrainingProcess& process : ended) {
    ForWatchers([&](JobWatcher& watcher) { watcher.OnCrashed(process); });
  }
}

bool JobTable::Lives(const TrainingProcess& process) const {
  return deps_.processes.StartTimeOf(process.pid) == process.start_ticks;
}

std::vector<TrainingProcess> JobTable::Processes() const {
  DCHECK_ON(deps_.control);
  std::vector<TrainingProcess> all;
  all.reserve(attached_.size() + silent_.size() + users_.size());
  for (const auto& [id, entry] : attached_) {
    all.push_back(entry.process);
    if (entry.window != nullptr) all.back().activity = entry.window->Last();
  }
  all.insert(all.end(), silent_.begin(), silent_.end());
  const size_t known = all.size();
  std::map<pid_t, uint64_t> seen;
  for (const TrainingProcess& process : all) seen[process.pid] = process.start_ticks;
  for (const TrainingProcess& user : users_) {
    auto found = seen.find(user.pid);
    if (found == seen.end() || found->second != user.start_ticks) all.push_back(user);
  }
  std::sort(all.begin() + static_cast<std::ptrdiff_t>(known), all.end(),
            [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return all;
}

void JobTable::LookupThreads(uint64_t attach_id, std::function<void(Result<ProcessThreads>)> done) {
  const TrainingProcess* process = Find(attach_id);
  if (process == nullptr || deps_.threads_or_null == nullptr) return;
  deps_.threads_or_null->LookupThreads(process->pid, process->start_ticks, std::move(done));
}

void JobTable::Notify(uint64_t attach_id, const attach::SessionNotice& notice) {
  DCHECK_ON(deps_.control);
  const auto found = attached_.find(attach_id);
  if (found == attached_.end()) return;
  if (!notice.collect) return deps_.handler.Send(attach_id, notice);
  const TrainingProcess& process = found->second.process;
  const Peer owner{.uid = process.uid};
  if (Status may = deps_.gate.MayProfile(owner, process.devices); !may.ok()) return RefuseCollection(attach_id, notice, may);
  attach::SessionNotice limited = notice;
  limited.collect->max_permille = deps_.collect_permille;
  deps_.handler.Send(attach_id, limited);
}

// The process hears of the session, which hears that another profiler's place is taken.
void JobTable::RefuseCollection(uint64_t attach_id, attach::SessionNotice notice, const Status& why) {
  attach::CollectorReport report{.session_id = notice.session_id, .provider = notice.collect->provider,
                                 .state = attach::CollectState::kBusy, .detail = why.message()};
  notice.collect.reset();
  deps_.handler.Send(attach_id, notice);
  // Who requested it is in the middle of it.
  deps_.control.Post([this, alive = std::weak_ptr<WatchList>(watchers_), attach_id, report] {
    if (alive.lock() != nullptr) OnCollector(attach_id, report, nullptr);
  });
}

std::string JobTable::CollectingOn(std::span<const uint32_t> devices) const {
  for (const auto& [id, entry] : attached_) {
    const std::vector<int>& own = entry.process.devices;
    const bool there = std::ranges::any_of(devices, [&own](uint32_t device) {
      return std::ranges::find(own, static_cast<int>(device)) != own.end();
    });
    if (there && !entry.collecting.empty()) {
      return fmt::format("process {} ({})", entry.process.pid, *entry.collecting.begin());
    }
  }
  return {};
}

void JobTable::NotifyTaken(uint64_t attach_id, const attach::FilesTaken& taken) {
  DCHECK_ON(deps_.control);
  if (attached_.contains(attach_id)) deps_.handler.Send(attach_id, taken);
}

std::shared_ptr<void> JobTable::Watch(JobWatcher* watcher) {
  DCHECK_ON(deps_.control);
  auto watching = std::make_shared<Watching>();
  watching->watcher = watcher;
  watchers_->push_back(watching);
  std::weak_ptr<WatchList> list = watchers_;
  return std::shared_ptr<void>(watching.get(), [watching, list](void*) {
    watching->gone = true;
    if (auto watchers = list.lock()) std::erase(*watchers, watching);
  });
}

void JobTable::Drain(uint64_t attach_id) {
  DCHECK_ON(deps_.control);
  TakeAll(attach_id);
  TakeAllActivity(attach_id);
}

// Runs as long as there is a ring to look at.
void JobTable::Arm() {
  if (armed_) return;
  bool rings = false;
  bool wanted = false;
  for (const auto& [id, entry] : attached_) {
    if (entry.ring == nullptr && entry.activity == nullptr) continue;
    rings = true;
    wanted = wanted || Wanted(id);
  }
  if (!rings) return;
  if (timer_ == nullptr) timer_ = std::make_unique<Timer>(deps_.control);
  armed_ = true;
  timer_->After(wanted ? kBusyRoundNs : kIdleRoundNs, [this] {
    armed_ = false;
    Round();
    Arm();
  });
}

void JobTable::Round() {
  DCHECK_ON(deps_.control);
  size_t left = kSlotsPerRound;
  size_t activity_left = kActivityBytesPerRound;
  std::vector<uint64_t> order;
  order.reserve(attached_.size());
  for (const auto& [id, entry] : attached_) {
    if (entry.ring != nullptr || entry.activity != nullptr) order.push_back(id);
  }
  std::rotate(order.begin(), std::ranges::lower_bound(order, next_in_round_), order.end());
  for (uint64_t id : order) {
    next_in_round_ = id;
    if (left == 0 || activity_left < attach::kMaxFrameBytes) return;
    auto found = attached_.find(id);  // a watcher may have made it go
    if (found != attached_.end()) left -= TakeFrom(found->second, left);
    found = attached_.find(id);
    if (found == attached_.end()) continue;
    activity_left -= std::min(activity_left, TakeActivity(found->second, activity_left));
  }
}

bool JobTable::Wanted(uint64_t attach_id) const {
  return std::ranges::any_of(*watchers_, [attach_id](const auto& watching) {
    return !watching->gone && watching->watcher->Hurries() && watching->watcher->Wants(attach_id);
  });
}

void JobTable::TakeAll(uint64_t attach_id) {
  auto found = attached_.find(attach_id);
  if (found == attached_.end() || found->second.ring == nullptr) return;
  size_t left = found->second.ring->slots();
  while (left > 0) {
    found = attached_.find(attach_id);
    if (found == attached_.end()) return;
    size_t taken = TakeFrom(found->second, std::min(left, MarkScratch::kSlots));
    if (taken == 0) return;
    left -= taken;
  }
}

void JobTable::TakeAllActivity(uint64_t attach_id) {
  auto found = attached_.find(attach_id);
  if (found == attached_.end() || found->second.activity == nullptr) return;
  for (uint64_t left = found->second.activity->capacity(); left > 0;) {
    found = attached_.find(attach_id);
    if (found == attached_.end()) return;
    size_t taken = TakeActivity(found->second, ActivityScratch::kBytes);
    if (taken == 0) return;
    left -= std::min<uint64_t>(left, taken);
  }
}

size_t JobTable::TakeActivity(Entry& entry, size_t max_bytes) {
  if (entry.activity == nullptr || delivering_) return 0;
  // A watcher may make the process go; the names must outlive the call.
  const std::shared_ptr<ActivityReader> ring = entry.activity;
  const int64_t now_ns = deps_.clock.MonotonicRawNs();
  Result<ActivityReader::Round> round = ring->Take(max_bytes, now_ns, &activity_scratch_);
  if (!round.ok()) {
    GiveUpActivity(entry, round.status());
    return 0;
  }
  counters_.activity_records += round->records;
  counters_.dropped_activity += round->dropped;
  counters_.lost_activity_bytes += round->lost_bytes;
  counters_.clamped_activity += round->clamped;
  entry.cost_ns += round->cost_ns;
  entry.names_refused += round->names_refused;
  std::span<const ActivityFrame> frames = activity_scratch_.frames();
  if (frames.empty() && round->dropped == 0 && round->lost_bytes == 0 && entry.names_refused == 0) return round->bytes;
  entry.process.lost_activity += round->dropped;
  entry.process.lost_activity_bytes += round->lost_bytes;
  // A process may say anything, and what an earlier daemon has counted may come only now.
  entry.process.unreadable_activity_bytes = std::min(entry.process.unreadable_activity_bytes + round->unreadable_bytes,
                                                     entry.process.lost_activity_bytes);
  if (entry.window != nullptr) {
    entry.window->Advance(now_ns);
    entry.window->Take(frames, round->dropped);
  }
  const size_t window_bytes = entry.window == nullptr ? 0 : entry.window->memory_bytes();
  const bool fits = entry.held->Resize(ring->names().memory_bytes() + window_bytes);
  const uint64_t id = entry.process.attach_id;
  const ActivityBatch batch{id,     entry.process.pid, entry.process.rank,
                            frames, std::shared_ptr<const ActivityNameTable>(ring, &ring->names()), round->dropped,
                            round->lost_bytes, std::exchange(entry.cost_ns, 0), std::exchange(entry.names_refused, 0)};
  delivering_ = true;
  ForWatchers([&](JobWatcher& watcher) {
    if (watcher.Wants(id)) watcher.OnActivity(batch);
  });
  delivering_ = false;
  if (!fits) {
    GiveUpActivity(entry, ResourceExhausted("the names and kernels of attached processes take too much memory, of this user or of all users together"));
  }
  return round->bytes;
}

void JobTable::GiveUpActivity(Entry& entry, const Status& why) {
  ++counters_.broken_activity_rings;
  entry.activity.reset();
  entry.window.reset();
  entry.held->Resize(0);
  const uint64_t id = entry.process.attach_id;
  ForWatchers([&](JobWatcher& watcher) {
    if (watcher.Wants(id)) watcher.OnActivityGivenUp(id, why);
  });
  deps_.handler.OnRingBroken(entry.process, why);
}

size_t JobTable::TakeFrom(Entry& entry, size_t max_slots) {
  // A watcher that drains while it is being notified would read ahead of the notification.
  if (entry.ring == nullptr || delivering_) return 0;
  Result<RingReader::Round> round =
      entry.ring->Take(max_slots, deps_.clock.MonotonicRawNs(), &scratch_);
  if (!round.ok()) {
    ++counters_.broken_rings;
    entry.ring.reset();
    deps_.handler.OnRingBroken(entry.process, round.status());
    return 0;
  }
  std::span<const Mark> marks = scratch_.marks();
  uint64_t dropped = round->dropped + round->bad;
  entry.process.marks += marks.size();
  entry.process.dropped_marks += dropped;
  counters_.marks += marks.size();
  counters_.dropped_marks += dropped;
  counters_.clamped_marks += round->clamped;
  FollowSteps(entry, marks);
  size_t slots = round->slots;
  if (!marks.empty() || dropped > 0) {
    const TrainingProcess copy = entry.process;
    Deliver(copy, marks, dropped);
  }
  return slots;
}

void JobTable::FollowSteps(Entry& entry, std::span<const Mark> marks) {
  bool changed = false;
  if (entry.window != nullptr) entry.window->Advance(deps_.clock.MonotonicRawNs());
  for (const Mark& mark : marks) {
    if (mark.kind == attach::MarkKind::kStepBegin) {
      entry.steps.Begin(mark.value, mark.time_ns);
    } else if (mark.kind == attach::MarkKind::kStepEnd) {
      const uint64_t before = entry.steps.completed();
      entry.steps.End(mark.value, mark.time_ns);
      if (entry.window != nullptr && entry.steps.completed() > before) entry.window->AddStep(mark.time_ns);
    } else {
      continue;
    }
    changed = true;
  }
  if (!changed) return;
  entry.process.step = entry.steps.step();
  entry.process.step_s = entry.steps.MedianSeconds();
  entry.process.steps_done = entry.steps.completed();
}

void JobTable::Deliver(const TrainingProcess& process, std::span<const Mark> marks,
                       uint64_t dropped) {
  const MarkBatch batch{process.pid, process.rank, marks, dropped};
  uint64_t id = process.attach_id;
  delivering_ = true;
  ForWatchers([&](JobWatcher& watcher) {
    if (watcher.Wants(id)) watcher.OnMarks(batch);
  });
  delivering_ = false;
}

}  // namespace profd
