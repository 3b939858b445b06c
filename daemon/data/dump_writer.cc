#include "daemon/data/dump_writer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "daemon/data/host_texts.h"

namespace profd {
namespace {

// The queue is looked at this often even when nobody asks for it: blocks are pushed without waking
// the thread, which makes pushing cheap and writing batched.
constexpr int64_t kBatchNs = 50 * kNsPerMs;
// More than this waiting wakes the thread at once.
constexpr uint64_t kWakeBytes = 1 << 20;
constexpr int64_t kFreeCheckNs = kNsPerSecond;

}  // namespace

DumpWriter::DumpWriter(DumpRoot root, const Clock& clock, BlockPool& pool, const Options& options)
    : root_(std::move(root)), clock_(clock), pool_(pool), options_(options) {
  free_bytes_.store(root_.FreeBytes().value_or(0), std::memory_order_relaxed);
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "profd-writer");
    Run();
  });
}

DumpWriter::~DumpWriter() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DumpWriter::SetOptions(const Options& options) {
  Post([this, options] {
    {
      std::lock_guard lock(mutex_);
      options_ = options;
    }
    for (const auto& session : live_) session->queue_limit_ = options.queue_bytes;
  });
}

void DumpWriter::Push(Item item, bool wake) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    woken_ = woken_ || wake;
  }
  if (wake) wake_.notify_one();
}

void DumpWriter::Post(std::function<void()> task) {
  Item item;
  item.task = std::move(task);
  Push(std::move(item), true);
}

std::shared_ptr<WriterSession> DumpWriter::Open(
    SessionDumpOptions options, std::function<void(const Result<std::string>&)> done) {
  auto session = std::shared_ptr<WriterSession>(new WriterSession(*this));
  {
    std::lock_guard lock(mutex_);
    session->queue_limit_ = options_.queue_bytes;
  }
  Post([this, session, options = std::move(options), done = std::move(done)]() mutable {
    Status ready = FindRoot();
    if (ready.ok()) ready = CheckRoom();
    if (!ready.ok()) {
      done(ready);
      return;
    }
    auto dump = SessionDump::Create(root_, std::move(options));
    if (!dump.ok()) {
      done(dump.status());
      return;
    }
    session->dump_ = std::move(dump).value();
    session->bytes_ = session->dump_->bytes_written();
    live_.push_back(session);
    done(session->dump_->path());
  });
  return session;
}

// A folder that was removed underneath is made again; one that is now mounted over is followed.
Status DumpWriter::FindRoot() {
  if (root_.InPlace()) return {};
  Result<DumpRoot> again = DumpRoot::Open(root_.path());
  if (!again.ok()) {
    return FailedPrecondition("the dump root is gone: " + again.status().message());
  }
  root_ = std::move(again).value();
  return {};
}

Status DumpWriter::CheckRoom() {
  uint64_t min_free = 0;
  {
    std::lock_guard lock(mutex_);
    min_free = options_.min_free_bytes;
  }
  Result<uint64_t> free = root_.FreeBytes();
  if (!free.ok()) return free.status();
  free_bytes_.store(*free, std::memory_order_relaxed);
  if (*free >= min_free) return {};
  return ResourceExhausted("dump volume full: " + std::to_string(*free >> 20) + " MB free, " +
                           std::to_string(min_free >> 20) + " MB needed (dump.min_free_mb)");
}

void DumpWriter::Process(Item& item) {
  if (item.feed == nullptr) {
    item.task();
    return;
  }
  size_t footprint = item.block.footprint();
  item.session->Write(*item.feed, item.block.info(), item.block.bytes());
  item.session->queued_bytes_.fetch_sub(footprint, std::memory_order_relaxed);
  queued_bytes_.fetch_sub(footprint, std::memory_order_relaxed);
}

void DumpWriter::FlushAll(int64_t now_ns) {
  Status room = CheckRoom();
  for (const auto& session : live_) {
    if (session->dump_ == nullptr) continue;
    Status status = session->dump_->Flush();
    if (status.ok()) status = room;
    session->NoteAllLosses(now_ns);
    if (status.ok()) continue;
    std::lock_guard lock(session->mutex_);
    if (session->health_.ok()) session->health_ = status;
  }
}

void DumpWriter::Run() {
  std::vector<Item> batch;
  int64_t next_flush = clock_.SteadyNs();
  for (;;) {
    bool stopping = false;
    int64_t flush_interval = kFreeCheckNs;
    {
      std::unique_lock lock(mutex_);
      // Without a dump only tasks come, and they wake.
      std::chrono::nanoseconds pause(live_.empty() ? kFreeCheckNs : kBatchNs);
      wake_.wait_for(lock, pause, [this] { return woken_ || stop_; });
      woken_ = false;
      batch.swap(queue_);
      stopping = stop_;
      flush_interval = options_.flush_interval_ns;
    }
    for (Item& item : batch) Process(item);
    bool idle = batch.empty();
    batch.clear();
    int64_t now = clock_.SteadyNs();
    if (now >= next_flush) {
      FlushAll(clock_.MonotonicRawNs());
      next_flush = now + flush_interval;
    }
    if (stopping && idle) return;
  }
}

DumpFeed* WriterSession::AddFeed(FeedOptions options) {
  auto feed = std::make_unique<DumpFeed>(std::move(options));
  DumpFeed* raw = feed.get();
  // The writer walks the list too, so it changes on the writer's side only.
  std::lock_guard lock(mutex_);
  feeds_.push_back(std::move(feed));
  return raw;
}

bool WriterSession::Reserve(DumpFeed* feed, const BlockRef& block) {
  size_t bytes = block.footprint();
  uint64_t waiting = queued_bytes_.load(std::memory_order_relaxed);
  if (waiting + bytes > queue_limit_.load(std::memory_order_relaxed)) {
    size_t lost = block.bytes().size();
    feed->counters_.dropped_bytes.fetch_add(lost, std::memory_order_relaxed);
    feed->counters_.dropped_records.fetch_add(block.info().records, std::memory_order_relaxed);
    writer_.dropped_full_.fetch_add(lost, std::memory_order_relaxed);
    return false;
  }
  queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  writer_.queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void WriterSession::Push(DumpFeed* feed, BlockRef block) {
  if (!Reserve(feed, block)) return;
  DumpWriter::Item item;
  item.session = shared_from_this();
  item.feed = feed;
  item.block = std::move(block);
  writer_.Push(std::move(item),
               writer_.queued_bytes_.load(std::memory_order_relaxed) > kWakeBytes);
}

void WriterSession::PushTexts(DumpFeed* feed, std::string_view texts, uint64_t count) {
  BlockBuilder builder = writer_.pool_.Get(texts.size());
  if (!builder) {
    feed->counters_.dropped_bytes.fetch_add(texts.size(), std::memory_order_relaxed);
    feed->counters_.dropped_records.fetch_add(count, std::memory_order_relaxed);
    writer_.dropped_full_.fetch_add(texts.size(), std::memory_order_relaxed);
    return;
  }
  std::memcpy(builder.buffer().data(), texts.data(), texts.size());
  BlockInfo info;
  info.records = static_cast<uint32_t>(count);
  Push(feed, std::move(builder).Finish(info, texts.size()));
}

void WriterSession::SetEpoch(DumpFeed* feed, std::shared_ptr<ChannelEpoch> epoch, bool fresh,
                             bool late) {
  writer_.Post([this, self = shared_from_this(), feed, epoch = std::move(epoch), fresh, late] {
    if (dump_ != nullptr && (late || feed->epoch_ != nullptr)) {
      NoteRestart(*feed, writer_.clock_.MonotonicRawNs());
    }
    feed->epoch_ = epoch;
    feed->fresh_start_ = fresh;
    feed->filter_.reset();
  });
}

void WriterSession::NoteOutage(DumpFeed* feed) {
  writer_.Post([self = shared_from_this(), feed] {
    if (feed->outage_from_ns_ == 0) feed->outage_from_ns_ = feed->last_block_ns_;
  });
}

void WriterSession::SetClocks(std::map<int, std::optional<DumpClocks>> clocks) {
  writer_.Post([self = shared_from_this(), clocks = std::move(clocks)] {
    if (self->dump_ == nullptr) return;
    for (const auto& [device, pair] : clocks) {
      Status status = self->dump_->SetClocks(device, pair);
      std::lock_guard lock(self->mutex_);
      if (!status.ok() && self->health_.ok()) self->health_ = status;
    }
  });
}

void WriterSession::EditManifest(std::function<void(Manifest&)> edit) {
  writer_.Post([this, self = shared_from_this(), edit = std::move(edit)] {
    if (dump_ == nullptr) return;
    edit(dump_->manifest());
    if (Status status = dump_->WriteManifest(); !status.ok()) {
      std::lock_guard lock(mutex_);
      if (health_.ok()) health_ = status;
    }
  });
}

void WriterSession::Finish(EndFacts end, std::function<void(Manifest&)> last_edit,
                           std::function<void(const Status&)> done) {
  writer_.Post([this, self = shared_from_this(), end = std::move(end),
                last_edit = std::move(last_edit), done = std::move(done)] {
    Status status = health();
    if (dump_ != nullptr) {
      NoteAllLosses(end.raw_ns);
      last_edit(dump_->manifest());
      Status finished = dump_->Finish(end);
      if (status.ok()) status = finished;
      bytes_.store(dump_->bytes_written(), std::memory_order_relaxed);
      dump_.reset();
    }
    std::erase_if(writer_.live_, [this](const auto& live) { return live.get() == this; });
    done(status);
  });
}

Status WriterSession::health() const {
  std::lock_guard lock(mutex_);
  return health_;
}

void WriterSession::VisitFeeds(const std::function<void(const DumpFeed&)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const auto& feed : feeds_) visit(*feed);
}

void WriterSession::Fail(const Status& status, DumpFeed& feed, uint64_t bytes, uint64_t records) {
  feed.counters_.dropped_bytes.fetch_add(bytes, std::memory_order_relaxed);
  feed.counters_.dropped_records.fetch_add(records, std::memory_order_relaxed);
  writer_.dropped_error_.fetch_add(bytes, std::memory_order_relaxed);
  bool limit = status.message().starts_with(kStorageLimit);
  NoteLoss(feed, limit ? kStorageLimit : "write_error", records, bytes);
  std::lock_guard lock(mutex_);
  if (health_.ok()) health_ = status;
}

// Losses whose reason is known on the writer's side; what else is dropped was too much for the queue.
void WriterSession::NoteLoss(DumpFeed& feed, std::string_view reason, uint64_t records,
                             uint64_t bytes, int64_t host_ns) {
  ManifestChannel& channel = ManifestOf(feed);
  int64_t now = host_ns != 0 ? host_ns : writer_.clock_.MonotonicRawNs();
  // A loss that goes on is one gap.
  bool same = !channel.gaps.empty() && channel.gaps.back().reason == reason &&
              channel.gaps.back().from_ns == feed.last_written_ns_;
  if (same) {
    channel.gaps.back().host_ns = now;
    channel.gaps.back().lost_records += records;
  } else {
    channel.AddGap({now, records, std::string(reason), feed.last_written_ns_});
  }
  channel.AddLoss(reason, records, bytes);
  feed.noted_dropped_ += records;
  feed.noted_dropped_bytes_ += bytes;
}

// Between the last block of the old run and the new one the driver measured nothing. Attempts that
// failed meanwhile belong to the same gap.
void WriterSession::NoteRestart(DumpFeed& feed, int64_t now, std::string_view reason) {
  ManifestChannel& channel = ManifestOf(feed);
  int64_t from = feed.last_block_ns_ != 0 ? feed.last_block_ns_ : feed.options_.session_start_ns;
  if (int64_t outage = std::exchange(feed.outage_from_ns_, 0); outage != 0) from = outage;
  if (!channel.gaps.empty() && channel.gaps.back().reason == reason &&
      channel.gaps.back().from_ns == from) {
    channel.gaps.back().host_ns = now;
  } else {
    channel.AddGap({now, 0, std::string(reason), from});
  }
}

void WriterSession::Write(DumpFeed& feed, const BlockInfo& info,
                          std::span<const std::byte> bytes) {
  if (dump_ == nullptr) return;
  if (feed.options_.format != nullptr) {
    WriteChannel(feed, info, bytes);
  } else {
    WriteTexts(feed, AsText(bytes));
  }
  bytes_.store(dump_->bytes_written(), std::memory_order_relaxed);
}

void WriterSession::WriteTexts(DumpFeed& feed, std::string_view texts) {
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::string_view file;
  std::string_view lines;
  while (NextHostText(&texts, &file, &lines)) {
    if (feed.renumber_) lines = Renumber(feed, file, lines);
    Status status = AppendText(feed, file, lines);
    if (!status.ok()) {
      Fail(status, feed, lines.size(), 1);
      continue;
    }
    ++records;
    bytes += lines.size();
  }
  feed.counters_.records.fetch_add(records, std::memory_order_relaxed);
  feed.counters_.bytes.fetch_add(bytes, std::memory_order_relaxed);
  writer_.written_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

Status WriterSession::AppendText(const DumpFeed& feed, std::string_view file,
                                 std::string_view lines) {
  const FeedOptions& wish = feed.options_;
  if (!file.empty()) return dump_->AppendHostFile(file, lines);
  if (wish.file.empty()) return dump_->AppendOwn(kOwnSamplesFile, lines);
  if (wish.device >= 0) return dump_->AppendDeviceFile(wish.device, wish.file, lines);
  return dump_->AppendOwn(wish.file, lines);
}

void WriterSession::WriteChannel(DumpFeed& feed, const BlockInfo& info,
                                 std::span<const std::byte> bytes) {
  if (feed.filter_ == nullptr) {
    MakeFilter(feed, info.host_ns != 0 ? info.host_ns : writer_.clock_.MonotonicRawNs());
  }
  if (info.gap_records > 0) {
    feed.counters_.dropped_records.fetch_add(info.gap_records, std::memory_order_relaxed);
    feed.counters_.dropped_bytes.fetch_add(info.gap_bytes, std::memory_order_relaxed);
    NoteLoss(feed, "no_buffer", info.gap_records, info.gap_bytes, info.host_ns);
  }
  feed.last_block_ns_ = info.host_ns;
  StreamFilter::Output out = feed.filter_->Filter(bytes, info.records);
  feed.counters_.thinned_records.store(feed.noted_thinned_ + feed.filter_->counters().thinned,
                                       std::memory_order_relaxed);
  if (out.bytes.empty()) return;
  if (!feed.open_) {
    Result<SessionDump::Channel> handle =
        dump_->OpenChannel(feed.options_.device, feed.options_.channel, feed.options_.file);
    if (!handle.ok()) {
      Fail(handle.status(), feed, out.bytes.size(), out.records);
      return;
    }
    feed.handle_ = *handle;
    feed.open_ = true;
  }
  if (Status status = dump_->Append(feed.handle_, out.bytes, out.records); !status.ok()) {
    Fail(status, feed, out.bytes.size(), out.records);
    return;
  }
  feed.last_written_ns_ = info.host_ns;
  feed.counters_.records.fetch_add(out.records, std::memory_order_relaxed);
  feed.counters_.bytes.fetch_add(out.bytes.size(), std::memory_order_relaxed);
  writer_.written_bytes_.fetch_add(out.bytes.size(), std::memory_order_relaxed);
}

// The view of the channel's present run that the session asked for.
void WriterSession::MakeFilter(DumpFeed& feed, int64_t now_ns) {
  auto period = [](double hz) { return hz > 0 ? static_cast<int64_t>(1e9 / hz + 0.5) : 0; };
  const FeedOptions& wish = feed.options_;
  StreamFilterOptions options;
  options.format = wish.format;
  options.chip_id = wish.chip_id;
  options.device_counter_hz = wish.device_counter_hz;
  options.host_counter_hz = wish.host_counter_hz;
  if (feed.epoch_ != nullptr) {
    const ChannelEpoch& epoch = *feed.epoch_;
    feed.channel_hz_ = epoch.hz;
    options.channel_period_ns = period(epoch.hz);
    options.session_period_ns = wish.keep_all ? 0 : period(wish.hz);
    // A part that is off in the channel needs no filter to keep it out.
    auto part = [&](abi::SocProfileType type, double channel_hz, double session_hz) {
      options.Soc(type) = {period(channel_hz), wish.keep_all ? 0 : period(session_hz),
                           wish.keep_all || session_hz > 0 || channel_hz <= 0};
    };
    part(abi::SocProfileType::kQos, epoch.soc_memory_hz, wish.soc_memory_hz);
    part(abi::SocProfileType::kAccPmu, epoch.soc_memory_hz, wish.soc_memory_hz);
    options.Soc(abi::SocProfileType::kAccPmu).channel_period_ns = 0;  // no rate is told: keep all
    part(abi::SocProfileType::kSocLevels, epoch.soc_memory_hz, wish.soc_memory_hz);
    part(abi::SocProfileType::kSio, epoch.soc_interconnect_hz, wish.soc_interconnect_hz);
    part(abi::SocProfileType::kChipTrans, epoch.soc_interconnect_hz, wish.soc_interconnect_hz);
    options.Soc(abi::SocProfileType::kLowPower) = {0, 0, true};
    if (!feed.fresh_start_) {
      int64_t start = epoch.start_ns.load(std::memory_order_relaxed);
      options.rebase_us = (start - wish.session_start_ns) / 1000;
      options.channel_age_us = std::max<int64_t>(0, (now_ns - start) / 1000);
    }
  }
  feed.noted_thinned_ = feed.counters_.thinned_records.load(std::memory_order_relaxed);
  feed.filter_ = std::make_unique<StreamFilter>(options);
  if (feed.filter_->thins()) feed.thinned_ = true;
  if (feed.filter_->rebases()) {
    feed.rebased_ = true;
    feed.rebase_us_ = options.rebase_us;
  }
}

ManifestChannel& WriterSession::ManifestOf(DumpFeed& feed) {
  Manifest& manifest = dump_->manifest();
  const FeedOptions& wish = feed.options_;
  for (ManifestChannel& channel : manifest.channels) {
    if (channel.collector == wish.collector && channel.device == wish.device &&
        channel.channel == wish.channel) {
      return channel;
    }
  }
  ManifestChannel& channel = manifest.channels.emplace_back();
  channel.collector = wish.collector;
  channel.device = wish.device;
  channel.channel = wish.channel;
  if (wish.format != nullptr && wish.file.empty()) {
    channel.file = wish.format->file;
  } else {
    channel.file = wish.file;
  }
  return channel;
}

void WriterSession::NoteAllLosses(int64_t host_ns) {
  std::lock_guard lock(mutex_);
  for (const auto& feed : feeds_) NoteLosses(*feed, host_ns);
}

// Brings the feed's numbers into the manifest; a loss since the last time becomes a located gap.
void WriterSession::NoteLosses(DumpFeed& feed, int64_t host_ns) {
  if (dump_ == nullptr) return;
  ManifestChannel& channel = ManifestOf(feed);
  uint64_t dropped = feed.counters_.dropped_records.load(std::memory_order_relaxed);
  uint64_t dropped_bytes = feed.counters_.dropped_bytes.load(std::memory_order_relaxed);
  if (dropped > feed.noted_dropped_ || dropped_bytes > feed.noted_dropped_bytes_) {
    uint64_t lost = dropped - feed.noted_dropped_;
    channel.AddGap({host_ns, lost, "queue_full", feed.last_noted_ns_});
    channel.AddLoss("queue_full", lost, dropped_bytes - feed.noted_dropped_bytes_);
    feed.noted_dropped_ = dropped;
    feed.noted_dropped_bytes_ = dropped_bytes;
  }
  feed.last_noted_ns_ = host_ns;
  channel.records = feed.counters_.records.load(std::memory_order_relaxed);
  channel.bytes = feed.counters_.bytes.load(std::memory_order_relaxed);
  channel.thinned = feed.thinned();
  channel.rebased = feed.rebased();
  channel.rebase_us = feed.rebase_us_;
  channel.thinned_records = feed.counters_.thinned_records.load(std::memory_order_relaxed);
  channel.channel_hz = feed.channel_hz_;
  channel.hz_asked = feed.options_.hz;
  bool of_channel = feed.options_.format != nullptr;
  channel.hz_effective = feed.thinned() || !of_channel ? feed.options_.hz : feed.channel_hz_;
}

}  // namespace profd
