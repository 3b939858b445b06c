#include "driver/channel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "driver/plausible.h"

namespace profd {
namespace {

// How long Add and Remove wait for the thread that is reading the channel.
constexpr int64_t kLockPatienceNs = kNsPerSecond;
constexpr auto kRelaxed = std::memory_order_relaxed;

std::string Name(uint32_t device, uint32_t channel) {
  const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
  return format != nullptr ? fmt::format("device {} channel {}", device, format->name)
                           : fmt::format("device {} channel {}", device, channel);
}

// But for the codes that mean that there is no data now, or that the buffer is too small (driver-abi 1.4).
bool IsReadError(int code) {
  switch (code) {
    case abi::kProfTimeout:
    case abi::kProfStoppedAlready:
    case abi::kProfErestartsys:
    case abi::kProfNotReadableData:
    case abi::kProfNotEnoughBuf:
      return false;
    default:
      return code < 0;
  }
}

}  // namespace

// Written under the channel's lock, read by any thread.
struct ChannelTable::Counts {
  std::atomic<uint64_t> bytes{0}, records{0}, blocks{0}, reads{0}, read_errors{0};
  std::atomic<uint64_t> garbage_bytes{0}, garbage_events{0}, dropped_bytes{0}, dropped_records{0};
  std::atomic<uint64_t> discarded_bytes{0};
  std::atomic<int> last_code{0};
};

// One (device, channel) pair; lives as long as the table, so that counters and sequence numbers go
// on when the channel is started again. Everything but the atomic ones and `counts` is guarded by
// `lock`.
struct ChannelTable::Channel {
  Channel(uint32_t device_id, uint32_t channel_id) : device(device_id), channel(channel_id) {
    tail.reserve(Framer::kMaxTail);
  }
  const uint32_t device;
  const uint32_t channel;
  std::atomic<bool> registered{false};
  std::atomic<bool> open{false};       // since it was registered the driver has started it for us
  std::atomic<bool> ours{false};       // the last start was
  std::atomic<bool> emptied{true};     // the driver's last word was that it holds nothing
  std::atomic<bool> unstopped{false};  // an unwanted run of ours could not be stopped
  std::atomic<int> read_error{0};      // see ReadError
  Counts counts;

  ChannelLock lock;
  uint32_t epoch = 0;
  std::optional<Framer> framer;  // absent: bytes pass as they are
  std::vector<std::byte> tail;   // an incomplete record, never more than reserved
  std::vector<std::byte> padded;  // for DeliverPadded: empty but for its capacity
  uint64_t seq = 0;
};

// Where one reader's bytes go first, and who watches its calls.
struct ChannelTable::Source {
  std::span<std::byte> scratch;
  CallWatch* watch_or_null;
  int64_t until_ns = INT64_MAX;  // no read after the first begins later
};

ChannelTable::ChannelTable(std::shared_ptr<const HalLibrary> hal, const Clock& clock,
                           BlockPool& pool, BlockSink& sink, const Options& options)
    : hal_(std::move(hal)), clock_(clock), pool_(pool), sink_(sink), options_(options) {
  channels_.resize(abi::kMaxHalDevices);
}

std::shared_ptr<ChannelTable::Channel> ChannelTable::Find(uint32_t device, uint32_t channel) const {
  MutexLock lock(mutex_);
  if (device >= channels_.size() || channel >= channels_[device].size()) return nullptr;
  return channels_[device][channel];
}

Status ChannelTable::Add(uint32_t device, uint32_t channel,
                         const abi::ChannelFormat* format_or_null, uint32_t epoch) {
  if (device >= abi::kMaxHalDevices || channel == 0 || channel >= abi::kMaxChannels) {
    return InvalidArgument(fmt::format("no such channel: {}/{}", device, channel));
  }
  if (IsStuck(device)) return Unavailable(Name(device, channel) + ": the device is stuck");
  std::shared_ptr<Channel> entry;
  {
    MutexLock lock(mutex_);
    channels_[device].resize(std::max<size_t>(channels_[device].size(), channel + 1));
    std::shared_ptr<Channel>& slot = channels_[device][channel];
    if (slot == nullptr) slot = std::make_shared<Channel>(device, channel);
    entry = slot;
  }
  if (!entry->lock.LockFor(kLockPatienceNs)) {
    return Unavailable(Name(device, channel) + ": an earlier read has not returned");
  }
  ChannelLockHolder holder(entry->lock);
  if (entry->registered.load()) return AlreadyExists(Name(device, channel) + " is being read");
  entry->framer.reset();
  if (format_or_null != nullptr) entry->framer.emplace(*format_or_null);
  entry->tail.clear();
  entry->epoch = epoch;
  entry->open.store(false);
  entry->read_error.store(0);
  entry->registered.store(true);
  registered_.fetch_add(1, std::memory_order_acq_rel);
  return Status::Ok();
}

void ChannelTable::Open(uint32_t device, uint32_t channel) {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry != nullptr) entry->open.store(true);
}

void ChannelTable::SetOurs(uint32_t device, uint32_t channel, bool ours) {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry == nullptr) return;
  entry->ours.store(ours);
  if (ours) entry->emptied.store(false);
}

void ChannelTable::SetMayHold(uint32_t device, uint32_t channel) {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry != nullptr) entry->emptied.store(false);
}

void ChannelTable::SetUnstopped(uint32_t device, uint32_t channel, bool unstopped) {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry != nullptr) entry->unstopped.store(unstopped);
}

bool ChannelTable::IsUnstopped(uint32_t device, uint32_t channel) const {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  return entry != nullptr && entry->unstopped.load();
}

int ChannelTable::ReadError(uint32_t device, uint32_t channel) const {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  return entry != nullptr && entry->registered.load() ? entry->read_error.load() : 0;
}

Status ChannelTable::Discard(uint32_t device, uint32_t channel, size_t max_bytes) {
  const std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry == nullptr || !entry->ours.load() || IsStuck(device)) return Status::Ok();
  if (!entry->lock.LockFor(kLockPatienceNs)) {
    return Unavailable(Name(device, channel) + ": an earlier read has not returned");
  }
  ChannelLockHolder holder(entry->lock);
  if (entry->registered.load() || entry->emptied.load()) return Status::Ok();
  std::vector<std::byte> scratch(options_.drain_scratch_bytes);
  ReadEnd end = ReadEnd::kFull;
  for (size_t read = 0; end == ReadEnd::kFull && read < max_bytes;) {
    const size_t got = FillScratch(*entry, {scratch, nullptr}, 0, &end);
    entry->counts.discarded_bytes.fetch_add(got, kRelaxed);
    read += got;
  }
  return Status::Ok();
}

Status ChannelTable::Remove(uint32_t device, uint32_t channel) {
  std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry == nullptr || !entry->registered.exchange(false)) {
    return NotFound(Name(device, channel) + " is not being read");
  }
  registered_.fetch_sub(1, std::memory_order_acq_rel);
  if (!entry->lock.LockFor(kLockPatienceNs)) {
    return Unavailable(Name(device, channel) + ": a read has not returned");
  }
  ChannelLockHolder holder(entry->lock);
  std::vector<std::byte> rest = std::exchange(entry->tail, {});
  FrameAndDeliver(*entry, rest, true);
  entry->tail.reserve(Framer::kMaxTail);
  return Status::Ok();
}

Status ChannelTable::Drain(uint32_t device, uint32_t channel, size_t max_bytes, Deadline deadline) {
  std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry == nullptr || !entry->registered.load()) {
    return NotFound(Name(device, channel) + " is not being read");
  }
  std::vector<std::byte> scratch(std::max(options_.drain_scratch_bytes, 4 * Framer::kMaxTail));
  size_t drained = 0;
  while (drained < max_bytes) {
    if (!entry->lock.LockFor(deadline.steady_ns - NowSteadyNs())) {
      return DeadlineExceeded(Name(device, channel) + ": another reader still uses it");
    }
    ChannelLockHolder holder(entry->lock);
    size_t cap = std::min(max_bytes - drained, options_.round_bytes);
    Visit visit = ReadLocked(*entry, {scratch, nullptr, deadline.steady_ns}, cap);
    drained += visit.bytes;
    if (visit.refused) {
      return ResourceExhausted(fmt::format("{}: what the driver still has does not fit into {} bytes",
                                           Name(device, channel), scratch.size()));
    }
    if (!visit.more) return Status::Ok();
    if (NowSteadyNs() >= deadline.steady_ns) {
      return DeadlineExceeded(fmt::format("{}: the driver still has data after {} bytes",
                                          Name(device, channel), drained));
    }
  }
  return ResourceExhausted(
      fmt::format("{}: the driver still has data after {} bytes", Name(device, channel), drained));
}

ChannelTable::Visit ChannelTable::Read(uint32_t device, uint32_t channel,
                                       std::span<std::byte> scratch, CallWatch* watch) {
  std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry == nullptr || !entry->registered.load() || IsStuck(device)) return {};
  if (!entry->open.load()) return {};
  if (!entry->lock.TryLock()) return {.registered = true};
  ChannelLockHolder holder(entry->lock);
  if (!entry->registered.load() || !entry->open.load()) return {};
  return ReadLocked(*entry, {scratch, watch, NowSteadyNs() + options_.round_ns}, options_.round_bytes);
}

// Reads behind `begin` until the scratch is nearly full or the driver has no more. A driver that hands out
// complete records or chunks answers a small buffer with 0 or "not enough", which must not pass for its end.
size_t ChannelTable::FillScratch(Channel& channel, const Source& source, size_t begin, ReadEnd* end) {
  const size_t enough = source.scratch.size() / 2;
  size_t filled = begin;
  *end = ReadEnd::kFull;
  while (*end == ReadEnd::kFull && source.scratch.size() - filled >= enough &&
         (filled == begin || NowSteadyNs() < source.until_ns)) {
    auto space = static_cast<uint32_t>(source.scratch.size() - filled);
    char* to = reinterpret_cast<char*>(source.scratch.data() + filled);
    if (source.watch_or_null != nullptr) {
      source.watch_or_null->BeforeRead(channel.device, channel.channel);
    }
    int got = hal_->ProfRead(channel.device, channel.channel, to, space);
    bool go_on = source.watch_or_null == nullptr || source.watch_or_null->AfterRead();
    if (!go_on) *end = ReadEnd::kDry;
    channel.emptied.store(got == 0, kRelaxed);
    if (got >= 0 || IsReadError(got)) channel.read_error.store(std::min(got, 0));
    // What was read before it is delivered, and the next read has all of the scratch.
    if (got == abi::kProfNotEnoughBuf && filled > begin) break;
    // A driver that claims more than the buffer it was given has not reported how much it wrote.
    bool nonsense = got > 0 && static_cast<uint32_t>(got) > space;
    if (nonsense || (got < 0 && got != abi::kProfStoppedAlready)) {
      channel.counts.read_errors.fetch_add(1, kRelaxed);
      channel.counts.last_code.store(got, kRelaxed);
    }
    if (got <= 0 || nonsense) {
      *end = got == abi::kProfNotEnoughBuf ? ReadEnd::kRefused : ReadEnd::kDry;
      break;
    }
    channel.counts.reads.fetch_add(1, kRelaxed);
    filled += static_cast<size_t>(got);
  }
  channel.counts.bytes.fetch_add(filled - begin, kRelaxed);
  return filled;
}

ChannelTable::Visit ChannelTable::ReadLocked(Channel& channel, const Source& source, size_t cap) {
  Visit visit{.registered = true};
  ReadEnd end = ReadEnd::kFull;
  do {
    size_t begin = channel.tail.size();
    std::memcpy(source.scratch.data(), channel.tail.data(), begin);
    size_t filled = FillScratch(channel, source, begin, &end);
    visit.bytes += filled - begin;
    if (filled > begin) FrameAndDeliver(channel, source.scratch.first(filled), false);
  } while (end == ReadEnd::kFull && visit.bytes < cap && NowSteadyNs() < source.until_ns);
  visit.more = end == ReadEnd::kFull;
  visit.refused = end == ReadEnd::kRefused;
  return visit;
}

void ChannelTable::FrameAndDeliver(Channel& channel, std::span<std::byte> bytes, bool last) {
  if (!channel.framer.has_value()) {
    Deliver(channel, bytes, 0);
    return;
  }
  FrameResult framed = channel.framer->Frame(bytes, last);
  channel.counts.garbage_bytes.fetch_add(framed.garbage_bytes, kRelaxed);
  channel.counts.garbage_events.fetch_add(framed.garbage_events, kRelaxed);
  if (framed.zeros_missing == 0) {
    Deliver(channel, bytes.first(framed.good_bytes), framed.records);
  } else {
    DeliverPadded(channel, bytes.first(framed.good_bytes));
  }
  std::span<std::byte> tail = bytes.subspan(framed.good_bytes, framed.tail_bytes);
  channel.tail.assign(tail.begin(), tail.end());
}

// Lines with all digits of their nanoseconds (dump-format, "How profd writes", 4), in blocks that have space for
// them. Here, since the framer works in place, and so that all readers see the same bytes.
void ChannelTable::DeliverPadded(Channel& channel, std::span<const std::byte> lines) {
  static constexpr std::array<std::byte, kFractionDigits> kZeros = [] {
    std::array<std::byte, kFractionDigits> zeros{};
    zeros.fill(std::byte{'0'});
    return zeros;
  }();
  std::vector<std::byte>& padded = channel.padded;
  uint64_t records = 0;
  while (!lines.empty()) {
    const size_t size = AsText(lines).find('\n') + 1;
    const std::span<const std::byte> line = lines.first(size);
    lines = lines.subspan(size);
    const FractionZeros zeros = ZerosMissing(AsText(line));
    if (padded.size() + size + zeros.count > BlockPool::kMaxBlockBytes) {
      Deliver(channel, padded, std::exchange(records, 0));
      padded.clear();
    }
    const auto split = line.begin() + static_cast<std::ptrdiff_t>(zeros.at);
    padded.insert(padded.end(), line.begin(), split);
    padded.insert(padded.end(), kZeros.begin(), kZeros.begin() + static_cast<std::ptrdiff_t>(zeros.count));
    padded.insert(padded.end(), split, line.end());
    ++records;
  }
  Deliver(channel, padded, records);
  padded.clear();
}

void ChannelTable::Deliver(Channel& channel, std::span<const std::byte> bytes, uint64_t records) {
  if (bytes.empty()) return;
  SharedLock open(open_mutex_);
  BlockBuilder builder = closed_ ? BlockBuilder() : pool_.Get(bytes.size());
  // Also of what is dropped: so the next block shows that something is missing before it.
  const uint64_t seq = ++channel.seq;
  if (!builder) {
    channel.counts.dropped_bytes.fetch_add(bytes.size(), kRelaxed);
    channel.counts.dropped_records.fetch_add(records, kRelaxed);
    if (closed_) return;
    sink_.OnLoss({channel.device, channel.channel, channel.epoch, clock_.MonotonicRawNs(), records,
                  bytes.size()});
    return;
  }
  std::memcpy(builder.buffer().data(), bytes.data(), bytes.size());
  BlockInfo info{.device = channel.device, .channel = channel.channel, .seq = seq, .epoch = channel.epoch,
                 .records = static_cast<uint32_t>(records), .host_ns = clock_.MonotonicRawNs()};
  channel.counts.records.fetch_add(records, kRelaxed);
  channel.counts.blocks.fetch_add(1, kRelaxed);
  sink_.OnBlock(std::move(builder).Finish(info, bytes.size()));
}

void ChannelTable::SetStuck(uint32_t device, bool stuck) {
  if (device < stuck_.size()) stuck_[device].store(stuck, std::memory_order_release);
}

bool ChannelTable::IsStuck(uint32_t device) const {
  return device < stuck_.size() && stuck_[device].load(std::memory_order_acquire);
}

ChannelCounters ChannelTable::Counters(uint32_t device, uint32_t channel) const {
  std::shared_ptr<Channel> entry = Find(device, channel);
  if (entry == nullptr) return {};
  const Counts& c = entry->counts;
  return {c.bytes.load(kRelaxed),           c.records.load(kRelaxed),
          c.blocks.load(kRelaxed),          c.reads.load(kRelaxed),
          c.read_errors.load(kRelaxed),     c.garbage_bytes.load(kRelaxed),
          c.garbage_events.load(kRelaxed),  c.dropped_bytes.load(kRelaxed),
          c.dropped_records.load(kRelaxed), c.discarded_bytes.load(kRelaxed),
          c.last_code.load(kRelaxed)};
}

void ChannelTable::VisitCounters(
    const std::function<void(uint32_t, uint32_t, const ChannelCounters&)>& visit) const {
  std::vector<std::pair<uint32_t, uint32_t>> known;
  {
    MutexLock lock(mutex_);
    size_t most = 0;
    for (const auto& of_device : channels_) most += of_device.size();
    known.reserve(most);
    for (const auto& of_device : channels_) {
      for (const std::shared_ptr<Channel>& entry : of_device) {
        if (entry != nullptr) known.emplace_back(entry->device, entry->channel);
      }
    }
  }
  for (auto [device, channel] : known) visit(device, channel, Counters(device, channel));
}

std::vector<uint32_t> ChannelTable::ChannelsOf(uint32_t device) const {
  std::vector<uint32_t> ids;
  MutexLock lock(mutex_);
  if (device >= channels_.size()) return ids;
  for (const std::shared_ptr<Channel>& entry : channels_[device]) {
    if (entry != nullptr && entry->registered.load()) ids.push_back(entry->channel);
  }
  return ids;
}

int64_t ChannelTable::NowSteadyNs() {
  SharedLock open(open_mutex_);
  return closed_ ? 0 : clock_.SteadyNs();
}

bool ChannelTable::Watched() {
  SharedLock open(open_mutex_);
  return !closed_ && sink_.Watched();
}

void ChannelTable::Close() {
  open_mutex_.Lock();
  closed_ = true;
  open_mutex_.Unlock();
}

void ChannelTable::WithClock(const std::function<void(const Clock&)>& call) {
  SharedLock open(open_mutex_);
  if (!closed_) call(clock_);
}

void ChannelTable::WithSink(const std::function<void(BlockSink&)>& call) {
  SharedLock open(open_mutex_);
  if (!closed_) call(sink_);
}

}  // namespace profd
