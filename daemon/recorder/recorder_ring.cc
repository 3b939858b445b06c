#include "daemon/recorder/recorder_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/data/dump_writer.h"

namespace profd {
namespace {

constexpr size_t kBatchBytes = 512u << 10;
// Blocks looked at under the lock at a time: the pump waits for no longer than that takes.
constexpr size_t kBatchEntries = 4096;
constexpr size_t kPageBytes = 4096;

}  // namespace

Result<std::shared_ptr<RecorderRing>> RecorderRing::Create(const Options& options,
                                                           int64_t now_ns) {
  size_t capacity = std::max(options.max_bytes, kMinBytes) / kPageBytes * kPageBytes;
  void* arena = ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (arena == MAP_FAILED) return Status::FromErrno(errno, "memory for the flight recorder");
  // Filled slowly: with huge pages it would take its memory in leaps and on many systems fail to.
  ::madvise(arena, capacity, MADV_NOHUGEPAGE);
  return std::shared_ptr<RecorderRing>(
      new RecorderRing(static_cast<std::byte*>(arena), capacity, options, now_ns));
}

RecorderRing::RecorderRing(std::byte* arena, size_t capacity, const Options& options,
                           int64_t now_ns)
    : arena_(arena), capacity_(capacity), options_(options), stats_{.max_bytes = capacity, .complete_from_ns = now_ns} {}

RecorderRing::~RecorderRing() { ::munmap(arena_, capacity_); }

RecorderRing::RouteId RecorderRing::AddRoute(bool of_channel, bool changes_only) {
  MutexLock lock(mutex_);
  routes_.emplace_back();
  routes_.back().of_channel = of_channel;
  routes_.back().changes_only = changes_only;
  return static_cast<RouteId>(routes_.size() - 1);
}

void RecorderRing::BeginEpoch(RouteId id, std::shared_ptr<ChannelEpoch> epoch) {
  MutexLock lock(mutex_);
  Route& route = routes_[id];
  uint32_t oldest = route.first == kNone ? epoch->number : Load(route.first).epoch;
  std::erase_if(route.epochs, [oldest](const auto& known) { return known->number < oldest; });
  route.epochs.push_back(std::move(epoch));
}

RecorderRing::Entry RecorderRing::Load(uint64_t position) const {
  Entry entry;
  std::memcpy(&entry, arena_ + position % capacity_, sizeof entry);
  return entry;
}

void RecorderRing::Store(uint64_t position, const Entry& entry) {
  std::memcpy(arena_ + position % capacity_, &entry, sizeof entry);
}

// An entry never crosses the arena's end: what is left there is padding, with a header if one fits.
bool RecorderRing::SkipPadding(uint64_t* position, Entry* entry) const {
  while (*position < tail_) {
    size_t space = capacity_ - *position % capacity_;
    if (space < sizeof(Entry)) {
      *position += space;
      continue;
    }
    *entry = Load(*position);
    if (entry->route != kPad) return true;
    *position += entry->size;
  }
  return false;
}

std::span<const std::byte> RecorderRing::BytesAt(uint64_t position, const Entry& entry) const {
  return {arena_ + position % capacity_ + sizeof(Entry), entry.used};
}

std::shared_ptr<BlockSource> RecorderRing::ChangesBefore(RouteId id, int64_t from_ns) const {
  const Route& route = routes_[id];
  if (!route.changes_only) return nullptr;
  LastChanges changes = route.evicted;
  for (uint64_t at = route.first; at != kNone;) {
    const Entry entry = Load(at);
    if (entry.host_ns > from_ns) break;
    changes.Take(BytesAt(at, entry));
    at = entry.next;
  }
  return changes.Source(from_ns, id);
}

void RecorderRing::DropOldest(bool early) {
  Entry entry;
  if (!SkipPadding(&head_, &entry)) return;
  Route& route = routes_[entry.route];
  if (route.changes_only) route.evicted.Take(BytesAt(head_, entry));
  route.first = entry.next;
  if (entry.next == kNone) route.last = kNone;
  route.bytes -= entry.size;
  --route.blocks;
  --stats_.blocks;
  ++(early ? stats_.evicted_early : stats_.expired);
  stats_.complete_from_ns = std::max(stats_.complete_from_ns, entry.host_ns);
  head_ += entry.size;
}

void RecorderRing::ExpireLocked(int64_t now_ns) {
  Entry entry;
  while (SkipPadding(&head_, &entry) && now_ns - entry.host_ns > options_.max_age_ns) {
    DropOldest(false);
  }
}

void RecorderRing::Expire(int64_t now_ns) {
  MutexLock lock(mutex_);
  ExpireLocked(now_ns);
}

void RecorderRing::Append(RouteId id, const BlockInfo& info, std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  ExpireLocked(info.host_ns);
  Route& route = routes_[id];
  Entry entry;
  size_t size = (sizeof(Entry) + bytes.size() + kAlign - 1) / kAlign * kAlign;
  if (size > capacity_ / 2 || (route.of_channel && EpochOf(route, info.epoch) == nullptr)) {
    ++stats_.dropped;
    return;
  }
  entry.host_ns = info.host_ns;
  entry.seq = info.seq;
  entry.size = static_cast<uint32_t>(size);
  entry.used = static_cast<uint32_t>(bytes.size());
  entry.route = id;
  entry.epoch = info.epoch;
  entry.records = info.records;
  entry.device_channel = info.device << 16 | info.channel;
  Put(entry, bytes);
}

void RecorderRing::AppendLoss(RouteId id, const BlockLoss& loss, LossReason reason) {
  MutexLock lock(mutex_);
  ExpireLocked(loss.host_ns);
  Route& route = routes_[id];
  // One that continues is one entry: losing must not push out what is held. What a reader was promised
  // stays as it was then: from there on the router notifies its session.
  if (route.last != kNone && route.last >= promised_) {
    Entry last = Load(route.last);
    if (last.used == 0 && last.epoch == loss.epoch && last.records == static_cast<uint32_t>(reason)) {
      last.lost_records += loss.records;
      last.lost_bytes += loss.bytes;
      Store(route.last, last);
      return;
    }
  }
  Entry entry{.host_ns = loss.host_ns, .lost_records = loss.records, .lost_bytes = loss.bytes, .size = sizeof(Entry),
              .route = id, .epoch = loss.epoch, .records = static_cast<uint32_t>(reason),
              .device_channel = loss.device << 16 | loss.channel};
  Put(entry, {});
}

void RecorderRing::Put(const Entry& entry, std::span<const std::byte> bytes) {
  size_t space = capacity_ - tail_ % capacity_;
  size_t padding = space < entry.size ? space : 0;
  while (stats_.blocks > 0 && tail_ + padding + entry.size - head_ > capacity_) DropOldest(true);
  if (padding >= sizeof(Entry)) {
    Entry pad;
    pad.size = static_cast<uint32_t>(padding);
    Store(tail_, pad);
  }
  tail_ += padding;
  if (stats_.blocks == 0) head_ = tail_;
  Store(tail_, entry);
  if (!bytes.empty()) {
    std::memcpy(arena_ + tail_ % capacity_ + sizeof(Entry), bytes.data(), bytes.size());
  }
  Route& route = routes_[entry.route];
  if (route.last == kNone) {
    route.first = tail_;
  } else {
    Entry before = Load(route.last);
    before.next = tail_;
    Store(route.last, before);
  }
  route.last = tail_;
  route.bytes += entry.size;
  ++route.blocks;
  ++stats_.blocks;
  ++stats_.appended;
  tail_ += entry.size;
}

std::shared_ptr<ChannelEpoch> RecorderRing::EpochOf(const Route& route, uint32_t number) const {
  // The present run is the last, and nearly always the one that is requested.
  const auto epoch = std::find_if(route.epochs.rbegin(), route.epochs.rend(),
                                  [&](const auto& one) { return one->number == number; });
  return epoch == route.epochs.rend() ? nullptr : *epoch;
}

RecorderRing::Stats RecorderRing::stats() const {
  MutexLock lock(mutex_);
  Stats stats = stats_;
  stats.bytes = tail_ - head_;
  uint64_t position = head_;
  Entry entry;
  if (SkipPadding(&position, &entry)) stats.oldest_ns = entry.host_ns;
  return stats;
}

RecorderRing::RouteStats RecorderRing::StatsOf(RouteId id) const {
  MutexLock lock(mutex_);
  const Route& route = routes_[id];
  return {route.bytes, route.blocks, route.first == kNone ? 0 : Load(route.first).host_ns};
}

// Hands out what ReadBatch copied, block by block.
class RingSource final : public BlockSource {
 public:
  RingSource(std::shared_ptr<RecorderRing> ring, RecorderRing::Cursor cursor)
      : ring_(std::move(ring)), cursor_(std::move(cursor)) {}

  bool Next(ReplayBlock* out) override {
    if (at_ == batch_.size()) {
      at_ = 0;
      if (!ring_->ReadBatch(&cursor_, &batch_, &epochs_)) return false;
    }
    RecorderRing::Entry entry;
    std::memcpy(&entry, batch_.data() + at_, sizeof entry);
    out->route = entry.route;
    const uint32_t device = entry.device_channel >> 16;
    const uint32_t channel = entry.device_channel & 0xFFFF;
    const bool is_loss = entry.used == 0;
    out->info = {device, channel, entry.seq, entry.epoch, is_loss ? 0 : entry.records, entry.host_ns};
    if (is_loss) out->lost_for = static_cast<LossReason>(entry.records);
    out->loss = {device, channel, entry.epoch, entry.host_ns, entry.lost_records, entry.lost_bytes};
    out->bytes = std::span(batch_).subspan(at_ + sizeof entry, entry.used);
    out->epoch = nullptr;
    for (const RecorderRing::EpochKey& key : epochs_) {
      if (key.route == entry.route && key.number == entry.epoch) out->epoch = key.epoch;
    }
    out->after_loss = std::exchange(cursor_.lost, false);
    at_ += entry.size;
    return true;
  }
  bool lost_end() const override { return cursor_.lost; }

 private:
  const std::shared_ptr<RecorderRing> ring_;
  RecorderRing::Cursor cursor_;
  std::vector<std::byte> batch_;
  std::vector<RecorderRing::EpochKey> epochs_;
  size_t at_ = 0;
};

// What was reported before, then what is held.
class ChangesFirst final : public BlockSource {
 public:
  using Changes = std::vector<std::shared_ptr<BlockSource>>;
  ChangesFirst(Changes changes, std::shared_ptr<BlockSource> held) : changes_(std::move(changes)), held_(std::move(held)) {}

  bool Next(ReplayBlock* out) override {
    for (; at_ < changes_.size(); ++at_) {
      if (changes_[at_]->Next(out)) return true;
    }
    return held_->Next(out);
  }
  bool lost_end() const override { return held_->lost_end(); }

 private:
  const Changes changes_;
  const std::shared_ptr<BlockSource> held_;
  size_t at_ = 0;
};

std::shared_ptr<BlockSource> RecorderRing::Read(RouteId id, int64_t from_ns) {
  MutexLock lock(mutex_);
  auto changes = ChangesBefore(id, from_ns);
  if (routes_[id].first == kNone) return changes;
  promised_ = tail_;
  Cursor cursor{.next = routes_[id].first, .end = tail_, .from_ns = from_ns, .one_route = true, .route = id};
  auto held = std::make_shared<RingSource>(shared_from_this(), std::move(cursor));
  if (changes == nullptr) return held;
  return std::make_shared<ChangesFirst>(ChangesFirst::Changes{std::move(changes)}, std::move(held));
}

std::shared_ptr<BlockSource> RecorderRing::Read(std::vector<bool> wanted, int64_t from_ns) {
  MutexLock lock(mutex_);
  promised_ = tail_;
  Cursor cursor{.next = head_, .end = tail_, .from_ns = from_ns, .wanted = std::move(wanted)};
  cursor.wanted.resize(routes_.size());
  ChangesFirst::Changes changes;
  for (RouteId id = 0; id < routes_.size(); ++id) {
    auto before = cursor.wanted[id] ? ChangesBefore(id, from_ns) : nullptr;
    if (before != nullptr) changes.push_back(std::move(before));
  }
  auto held = std::make_shared<RingSource>(shared_from_this(), std::move(cursor));
  if (changes.empty()) return held;
  return std::make_shared<ChangesFirst>(std::move(changes), std::move(held));
}

bool RecorderRing::ReadBatch(Cursor* cursor, std::vector<std::byte>* out,
                             std::vector<EpochKey>* epochs) {
  out->clear();
  out->reserve(kBatchBytes);
  epochs->clear();
  while (out->empty()) {
    MutexLock lock(mutex_);
    if (cursor->next < std::min(head_, cursor->end)) {
      // Overtaken: a loss only if what left was wanted.
      cursor->lost = cursor->lost || stats_.complete_from_ns > cursor->from_ns;
      cursor->next = cursor->one_route ? routes_[cursor->route].first : head_;
    }
    for (size_t i = 0; i < kBatchEntries; ++i) {
      Entry entry;
      if (cursor->next >= cursor->end || !SkipPadding(&cursor->next, &entry) ||
          cursor->next >= cursor->end) {
        return !out->empty();
      }
      bool wanted = entry.host_ns > cursor->from_ns &&
                    (cursor->one_route || cursor->wanted[entry.route]);
      if (wanted) {
        if (!out->empty() && out->size() + entry.size > kBatchBytes) break;
        const std::byte* begin = arena_ + cursor->next % capacity_;
        out->insert(out->end(), begin, begin + entry.size);
        bool known = std::ranges::any_of(*epochs, [&](const EpochKey& key) {
          return key.route == entry.route && key.number == entry.epoch;
        });
        const Route& route = routes_[entry.route];
        if (!known && route.of_channel) {
          epochs->push_back({entry.route, entry.epoch, EpochOf(route, entry.epoch)});
        }
      }
      cursor->next = cursor->one_route ? entry.next : cursor->next + entry.size;
    }
  }
  return true;
}

void RingTap::OnEpoch(std::shared_ptr<ChannelEpoch> epoch) {
  if (epoch_ != nullptr && !begun_) left_out_ = epoch_->number;
  epoch_ = std::move(epoch);
  begun_ = false;
  Takes(epoch_->number);
}

void RingTap::OnBlock(const BlockRef& block) {
  if (Takes(block.info().epoch)) ring_->Append(route_, block.info(), block.bytes());
}

void RingTap::OnLoss(const BlockLoss& loss) {
  if (epoch_ == nullptr || Takes(loss.epoch)) ring_->AppendLoss(route_, loss);
}

std::shared_ptr<BlockSource> RingTap::Since(int64_t from_ns) {
  return TakesNow() ? ring_->Read(route_, from_ns) : nullptr;
}

bool RingTap::TakesNow() { return epoch_ == nullptr || Takes(epoch_->number); }

// The recorder may join a run while it lasts, which then begins in the ring.
bool RingTap::Takes(uint32_t epoch) {
  if (epoch_ == nullptr || epoch != epoch_->number) return epoch != left_out_;
  if (!begun_ && !epoch_->for_sessions) {
    ring_->BeginEpoch(route_, epoch_);
    begun_ = true;
  }
  return begun_;
}

}  // namespace profd
