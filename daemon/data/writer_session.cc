// What the writer does for one session.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <utility>

#include "base/bytes.h"
#include "daemon/data/dump_writer.h"

namespace profd {
namespace {

// Given in any case, also where the writer ends before it has come to the question.
class Answer {
 public:
  ~Answer() {
    if (!given_) promise.set_value(Unavailable("the dump's writer has ended"));
  }
  void Set(Status status) {
    given_ = true;
    promise.set_value(std::move(status));
  }
  std::promise<Status> promise;

 private:
  bool given_ = false;
};

}  // namespace

DumpFeed* WriterSession::AddFeed(FeedOptions options) {
  auto feed = std::make_unique<DumpFeed>(std::move(options));
  DumpFeed* raw = feed.get();
  // The writer walks the list too, so it changes on the writer's side only.
  MutexLock lock(mutex_);
  feeds_.push_back(std::move(feed));
  return raw;
}

bool WriterSession::Reserve(DumpFeed* feed, const BlockRef& block) {
  if (feed->ended_.load(std::memory_order_relaxed)) return false;
  size_t bytes = block.footprint();
  uint64_t waiting = queued_bytes_.load(std::memory_order_relaxed);
  if (waiting + bytes > queue_limit_.load(std::memory_order_relaxed)) {
    const size_t lost = block.bytes().size();
    feed->CountLoss(LossReason::kQueueFull, block.info().records, lost);
    writer_.dropped_full_.fetch_add(lost, std::memory_order_relaxed);
    return false;
  }
  queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  queued_data_.fetch_add(block.bytes().size(), std::memory_order_relaxed);
  writer_.queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void WriterSession::Push(DumpFeed* feed, BlockRef block) {
  if (!Reserve(feed, block)) return;
  DumpWriter::Item item;
  item.session = shared_from_this();
  item.feed = feed;
  item.block = std::move(block);
  const uint64_t most = std::min(DumpWriter::kWakeBytes,
                                 queue_limit_.load(std::memory_order_relaxed) / 2);
  writer_.Push(std::move(item), writer_.queued_bytes_.load(std::memory_order_relaxed) > most);
}

void WriterSession::SetEpoch(DumpFeed* feed, std::shared_ptr<ChannelEpoch> epoch, bool late) {
  writer_.Post([this, self = shared_from_this(), feed, epoch = std::move(epoch), late] {
    EndRun(*feed);
    if (dump_ != nullptr && (late || feed->epoch_ != nullptr)) {
      feed->losses_.NoteNextRun(PlaceOf(*feed), writer_.clock_.MonotonicRawNs());
    }
    feed->losses_.ForgetRelease();
    feed->epoch_ = epoch;
  });
}

void WriterSession::NoteOutage(DumpFeed* feed, bool over) {
  writer_.Post([self = shared_from_this(), feed, over] {
    over ? feed->losses_.EndOutage() : feed->losses_.BeginOutage();
  });
}

void WriterSession::NoteReleased(DumpFeed* feed) {
  writer_.Post([self = shared_from_this(), feed] { feed->losses_.NoteReleased(); });
}

void WriterSession::NoteLostBefore(DumpFeed* feed, const ManifestLoss& what) {
  writer_.Post([this, self = shared_from_this(), feed, what] {
    if (dump_ != nullptr) feed->losses_.LoseBetween(PlaceOf(*feed), what);
  });
}

void WriterSession::NoteUnfetched(DumpFeed* feed) {
  writer_.Post([this, self = shared_from_this(), feed] {
    if (dump_ != nullptr) feed->losses_.NoteRestart(PlaceOf(*feed), writer_.clock_.MonotonicRawNs(), LossReason::kNotFetched);
  });
}

void WriterSession::SetClocks(std::map<int, std::optional<DumpClocks>> clocks) {
  writer_.Post([self = shared_from_this(), clocks = std::move(clocks)] {
    if (self->dump_ == nullptr) return;
    for (const auto& [device, pair] : clocks) self->SetHealth(self->dump_->SetClocks(device, pair));
  });
}

void WriterSession::BeginProcessFiles(ManifestProcessFiles facts, std::function<void(Result<UniqueFd>)> done) {
  writer_.Post([self = shared_from_this(), facts = std::move(facts), done = std::move(done)] {
    if (self->dump_ == nullptr) return done(Unavailable("there is no dump"));
    done(self->dump_->BeginProcessFiles(facts));
  });
}

Status WriterSession::ReserveForFiles(uint64_t bytes, int64_t until_steady_ns) {
  auto answer = std::make_shared<Answer>();
  std::future<Status> answered = answer->promise.get_future();
  writer_.Post([self = shared_from_this(), bytes, answer] {
    Status status = self->dump_ == nullptr ? Unavailable("there is no dump") : self->dump_->ReserveForFiles(bytes);
    if (status.ok()) self->bytes_.store(self->dump_->bytes_written(), std::memory_order_relaxed);
    answer->Set(std::move(status));
  });
  const auto wait = std::chrono::nanoseconds(std::max<int64_t>(0, until_steady_ns - writer_.clock_.SteadyNs()));
  if (answered.wait_for(wait) == std::future_status::ready) return answered.get();
  return DeadlineExceeded("the dump's writer has not answered in time");
}

void WriterSession::EndProcessFiles(ManifestProcessFiles facts, uint64_t unused, std::vector<ProcessFile> files) {
  writer_.Post([self = shared_from_this(), facts = std::move(facts), unused, files = std::move(files)]() mutable {
    if (self->dump_ == nullptr) return;
    self->dump_->EndProcessFiles(std::move(facts), unused, std::move(files));
    self->bytes_.store(self->dump_->bytes_written(), std::memory_order_relaxed);
  });
}

std::vector<ManifestProcessFiles> WriterSession::process_files() const {
  MutexLock lock(mutex_);
  return process_files_;
}

void WriterSession::AddDevice(SessionDumpOptions::Device device, ManifestDevice described,
                              SampleOptions sample) {
  writer_.Post([self = shared_from_this(), device = std::move(device),
                described = std::move(described), sample = std::move(sample)]() mutable {
    if (self->dump_ == nullptr) return;
    const int id = device.facts.id;
    const std::optional<DumpClocks> clocks = std::exchange(device.clocks, std::nullopt);
    self->dump_->manifest().devices.push_back(std::move(described));
    Status status = self->dump_->AddDevice(std::move(device), sample);
    if (status.ok()) status = self->dump_->SetClocks(id, clocks);
    self->SetHealth(status);
  });
}

void WriterSession::EditManifest(std::function<void(Manifest&)> edit) {
  writer_.Post([this, self = shared_from_this(), edit = std::move(edit)] {
    if (dump_ == nullptr) return;
    edit(dump_->manifest());
    dump_->TouchManifest();
    SetHealth(dump_->WriteManifestIfDue());
  });
}

void WriterSession::Finish(EndFacts end, std::function<void(Manifest&)> last_edit,
                           std::function<void(const Status&)> done) {
  writer_.Post([this, self = shared_from_this(), end = std::move(end),
                last_edit = std::move(last_edit), done = std::move(done)] {
    Status status = health();
    std::erase_if(writer_.live_, [this](const auto& live) { return live.get() == this; });
    if (dump_ == nullptr) return done(status);
    {
      MutexLock lock(mutex_);
      for (const auto& feed : feeds_) {
        feed->losses_.NoteEnd(PlaceOf(*feed), end.raw_ns);
        FinishGaps(*feed, end.raw_ns);
        feed->ended_.store(true, std::memory_order_relaxed);
      }
    }
    UpdateManifest(end.raw_ns);
    CountAged();
    last_edit(dump_->manifest());
    std::vector<ManifestLoss> before;
    VisitFeeds([&](const DumpFeed& feed) { before.push_back(WriteErrorsOf(ManifestOf(feed))); });
    dump_->PlaceProcessFiles(writer_.root_);
    {
      MutexLock lock(mutex_);
      process_files_ = dump_->manifest().process_files;
    }
    Status finished = dump_->Finish(end);
    if (status.ok()) status = finished;
    if (!finished.ok()) unended_ = dump_->manifest();
    CountAged();  // the end needs space, too
    CountGivenUp(before);
    bytes_.store(dump_->bytes_written(), std::memory_order_relaxed);
    std::unique_ptr<SessionDump> dump = std::move(dump_);
    // The disk may be slow, and others' blocks must not wait for it.
    dump->SyncAtEnd([this, self, status, done, name = dump->name(), path = writer_.root_.path()](const Status& synced) {
      // As a later daemon finds it: files of processes that were put in their places are not counted one by one. By a
      // root of its own: this is the sync thread, and the writer may open its root anew meanwhile.
      const Result<DumpRoot> root = DumpRoot::Attach(path);
      const Result<uint64_t> bytes = root.ok() ? root->BytesOf(name) : Result<uint64_t>(root.status());
      if (bytes.ok()) bytes_.store(*bytes, std::memory_order_relaxed);
      writer_.Post([done, result = status.ok() ? synced : status] { done(result); });
    });
  });
}

void WriterSession::SetHealth(const Status& status) {
  MutexLock lock(mutex_);
  if (health_.ok()) health_ = status;
}

Status WriterSession::health() const {
  MutexLock lock(mutex_);
  return health_;
}

void WriterSession::VisitFeeds(const std::function<void(const DumpFeed&)>& visit) const {
  MutexLock lock(mutex_);
  for (const auto& feed : feeds_) visit(*feed);
}

void WriterSession::Fail(const Status& status, DumpFeed& feed, uint64_t bytes, uint64_t records) {
  writer_.dropped_error_.fetch_add(bytes, std::memory_order_relaxed);
  feed.losses_.Lose(PlaceOf(feed), IsAtStorageLimit(status) ? LossReason::kStorageLimit : LossReason::kWriteError, records, bytes,
                    writer_.clock_.MonotonicRawNs());
  // Without its folder no new file can be made in it.
  const Status there = dump_->CheckStillThere();
  SetHealth(there.ok() ? status : there);
}

// One file too many, of a process that attached late, costs only its own data: the session continues.
void WriterSession::LeaveOut(const Status& status, DumpFeed& feed, uint64_t bytes) {
  feed.losses_.Lose(PlaceOf(feed), LossReason::kFileLimit, 1, bytes, writer_.clock_.MonotonicRawNs());
  if (std::exchange(feed.left_out_, true)) return;
  dump_->manifest().warnings.push_back(
      fmt::format("{}: {}; processes that started later are not recorded", feed.options_.collector,
                  status.message()));
}

// What limits have removed, by whose it was.
void WriterSession::CountAged() {
  removed_for_space_.store(dump_->manifest().aged_for_space, std::memory_order_relaxed);
  for (const AgedCount& aged : dump_->closed().TakeAged()) {
    removed_records_.fetch_add(aged.records, std::memory_order_relaxed);
    std::string collector = aged.collector;
    {
      MutexLock lock(mutex_);
      for (const auto& feed : feeds_) {
        const FeedOptions& wish = feed->options_;
        if (wish.device != aged.device || wish.channel != aged.channel) continue;
        if (aged.channel == 0 && wish.collector != aged.collector) continue;
        collector = wish.collector;
        break;
      }
    }
    MutexLock lock(writer_.aged_mutex_);
    writer_.aged_records_[collector] += aged.records;
  }
}

void WriterSession::Write(DumpFeed& feed, const BlockInfo& info,
                          std::span<const std::byte> bytes) {
  if (dump_ == nullptr) return;
  if (feed.options_.format != nullptr) {
    WriteChannel(feed, info, bytes);
  } else {
    WriteTextRecords(feed, AsText(bytes));
  }
  bytes_.store(dump_->bytes_written(), std::memory_order_relaxed);
}

void WriterSession::WriteChannel(DumpFeed& feed, const BlockInfo& info,
                                 std::span<const std::byte> bytes) {
  // There was no memory or no space in the queue for those between, which may be counted before or behind this block.
  const uint64_t before = std::exchange(feed.last_seq_, info.seq);
  if (before != 0 && info.seq > before + 1) feed.losses_.RequestResync();
  if (feed.filter_ == nullptr) {
    const int64_t now = info.host_ns != 0 ? info.host_ns : writer_.clock_.MonotonicRawNs();
    if (feed.epoch_ != nullptr) feed.losses_.NoteRunBegan(PlaceOf(feed), feed.epoch_->start_ns.load(std::memory_order_relaxed), now);
    feed.losses_.NoteNoPast(PlaceOf(feed), now);
    MakeFilter(feed, now);
  }
  feed.losses_.NoteBlock(info.host_ns);
  FindGapsOfSums(feed, bytes, info.host_ns);
  StreamFilter::Output out = feed.filter_->Filter(bytes, info.records);
  feed.counters_.thinned_records.store(feed.thinned_before_ + feed.filter_->counters().thinned,
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
  Status status = dump_->Append(feed.handle_, out.bytes, out.records, info.host_ns);
  if (!status.ok()) {
    Fail(status, feed, out.bytes.size(), out.records);
    return;
  }
  FindGaps(feed, out.bytes, info.host_ns);
  feed.losses_.NoteWritten(info.host_ns);
  feed.counters_.records.fetch_add(out.records, std::memory_order_relaxed);
  feed.counters_.bytes.fetch_add(out.bytes.size(), std::memory_order_relaxed);
  writer_.written_bytes_.fetch_add(out.bytes.size(), std::memory_order_relaxed);
}

// The view of the channel's present run that the session requested.
void WriterSession::MakeFilter(DumpFeed& feed, int64_t now_ns) {
  auto period = [](double hz) { return hz > 0 ? std::llround(1e9 / hz) : int64_t{0}; };
  const FeedOptions& wish = feed.options_;
  StreamFilterOptions options{.format = wish.format, .device_counter_hz = wish.device_counter_hz,
                              .host_counter_hz = wish.host_counter_hz, .chip_id = wish.chip_id};
  if (feed.epoch_ != nullptr) {
    const ChannelEpoch& epoch = *feed.epoch_;
    feed.channel_hz_ = epoch.hz;
    options.channel_period_ns = period(epoch.hz);
    options.session_period_ns = wish.keep_all ? 0 : period(wish.hz);
    // A part that is off in the channel needs no filter to keep it out.
    for (const RecordPart& part : wish.record_parts) {
      const double channel_hz = epoch.part_hz[part.option];
      const double session_hz = wish.part_hz[part.option];
      options.Soc(static_cast<abi::SocProfileType>(part.type)) = {
          part.thin ? period(channel_hz) : 0, wish.keep_all ? 0 : period(session_hz),
          wish.keep_all || session_hz > 0 || channel_hz <= 0};
    }
    // Also where the channel was started for the session: a busy node takes its time to start it.
    const int64_t start = epoch.start_ns.load(std::memory_order_relaxed);
    options.rebase_us = (start - wish.session_start_ns) / 1000;
    options.channel_age_us = std::max<int64_t>(0, (now_ns - start) / 1000);
  }
  GapDetector::Options gap_options;
  gap_options.format = wish.format;
  // The parts of channel 52 have rates of their own.
  const bool one_rate = wish.format->id != abi::kSocProfileChannel;
  if (one_rate) {
    const bool thins = options.session_period_ns > options.channel_period_ns;
    gap_options.period_ns = thins ? options.session_period_ns : options.channel_period_ns;
    gap_options.source_period_ns = thins ? options.channel_period_ns : 0;
  }
  gap_options.device_counter_hz = wish.device_counter_hz;
  gap_options.host_counter_hz = wish.host_counter_hz;
  gap_options.chip_id = wish.chip_id;
  const auto count = [&feed](const GapDetector::Gap& gap) { feed.missing_ += gap.missing; };
  feed.gap_detector_ = std::make_unique<GapDetector>(gap_options, count);
  feed.sum_gaps_.reset();
  if (gap_options.source_period_ns > 0 && wish.format->thinning == abi::Thinning::kSum) {
    gap_options.period_ns = std::exchange(gap_options.source_period_ns, 0);
    feed.sum_gaps_ = std::make_unique<GapDetector>(gap_options, count);
  }
  feed.thinned_before_ = feed.counters_.thinned_records.load(std::memory_order_relaxed);
  feed.filter_ = std::make_unique<StreamFilter>(options);
  if (feed.filter_->thins()) feed.thinned_ = true;
  if (feed.filter_->rebases()) {
    feed.rebased_ = true;
    feed.rebase_us_ = options.rebase_us;
  }
}

}  // namespace profd
